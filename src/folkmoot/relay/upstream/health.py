"""Backend health: state, reason, reporting."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.gateway.model import BackendState, Inventory
from folkmoot.relay.upstream.model import BackendView
from folkmoot.relay.upstream.requests import Late, Unanswered
from folkmoot.taskgroups import waited
from folkmoot.telemetry.redaction import clean

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock
    from folkmoot.relay.upstream.backend import LiveBackend
    from folkmoot.relay.upstream.conversation import BackendConversation

logger = logging.getLogger("folkmoot.backend")

FAILED_SECONDS: Final = 1.0
GRACE_SECONDS: Final = 5.0
"""A server that is reached again at once was never away, as far as its lists tell: it has the first
of these where an attempt to reach it failed meanwhile, else the second, as long as calls wait.
"""
AWAY: Final = frozenset({BackendState.DOWN, BackendState.BROKEN})


class BackendHealth(Entity):
    """The state of one server. `on_lost` is told once for every time that it stays away, and
    `on_state` of every change.

    `told` adds to the reasons what is for the log alone.
    """

    namespace: str
    clock: Clock
    on_lost: Callable[[str, str], None]
    told: Callable[[str], str] = str
    on_state: Callable[[str, str], None] = lambda _namespace, _state: None
    state: BackendState = BackendState.STARTING
    why: str = "It has not been reached yet."
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _timer: asyncio.TimerHandle | None = None
    _left_at: float | None = None
    _away: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.since = self.clock.now()

    def become(self, state: BackendState, why: str = "", *, planned: bool = False) -> None:
        """Be in a state from now on; one that is `planned` is not warned of."""
        before = self.state
        if (before, self.why) != (state, why):
            level = logging.WARNING if state in AWAY and not planned else logging.INFO
            told = self.told(why) if state in AWAY else why
            extra = {"backend": self.namespace, "state": state.value}
            logger.log(level, "a backend changed", extra=extra | ({"why": told} if told else {}))
        self.why = why
        if state is not before:
            self.state, self.since = state, self.clock.now()
            self.announce()
        if state in AWAY:
            self._went(at_once=before is BackendState.STARTING)
        else:
            self.forget()
        self.tell()

    def announce(self) -> None:
        """Tell those who follow the server that it is to be looked at again."""
        self.on_state(self.namespace, self.state.value)

    def tell(self) -> None:
        """Wake whoever waits for a change."""
        self._news.set()
        self._news = asyncio.Event()

    async def changed(self, seconds: float) -> None:
        """Wait until something has changed, for so long at most."""
        await waited(self._news, seconds)

    def forget(self) -> None:
        """Tell of no loss any more."""
        self._away = False
        self._left_at = None
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _went(self, *, at_once: bool) -> None:
        if at_once:
            self._lost()
        elif not self._away:
            patience = GRACE_SECONDS if self._left_at is None else FAILED_SECONDS
            self._left_at = self._left_at or self._loop.time()
            self._cancel()
            self._timer = self._loop.call_at(self._left_at + patience, self._lost)

    def _lost(self) -> None:
        self._timer = None
        if self._away:
            return
        self._away = True
        try:
            self.on_lost(self.namespace, for_callers(self.why))
        except Exception:
            logger.exception("the loss of a backend could not be announced")


TOO_MANY_REQUESTS: Final = 429
_OUR_ADDRESS: Final = re.compile(r" at https?://\S+")
_ADDRESS: Final = re.compile(r"https?://[^\s,]+")
IN_DOUBT: Final = "What was asked may or may not have been done."


def named(namespace: str, what: str) -> str:
    """A sentence about a backend."""
    return for_callers(f"The backend {namespace} {what}")


def for_callers(why: str) -> str:
    """A reason without addresses: where a server is, and what is secret in that, is not theirs."""
    return _ADDRESS.sub("another address", _OUR_ADDRESS.sub("", why))


def given_up(namespace: str, error: Exception, *, repeatable: bool) -> e.FolkmootError:
    """The error for the caller; `repeatable` says that repeating the call is safe."""
    why = error.why if isinstance(error, Unanswered) else error
    if isinstance(why, e.ConsentNeeded):
        return why
    if isinstance(why, e.SignInRefused):
        return e.BackendFailed(named(namespace, f"cannot do this: {why.message}"))
    if isinstance(error, Late):
        return e.BackendTimeout(
            named(namespace, f"did not answer within {error.seconds:.3g} seconds. {IN_DOUBT}")
        )
    if isinstance(error, Unanswered):
        return _unanswered(namespace, error, repeatable=repeatable)
    if isinstance(error, e.GatewayError):
        if error.message.startswith(named(namespace, "")):
            return error
        verb = "is not available" if isinstance(error, e.BackendUnavailable) else "cannot do this"
        return type(error)(named(namespace, f"{verb}: {error.message}"), **error.data)
    message = error.message if isinstance(error, e.FolkmootError) else "Something went wrong."
    return e.BackendUnavailable(named(namespace, f"is not available: {message}"))


def _unanswered(namespace: str, error: Unanswered, *, repeatable: bool) -> e.GatewayError:
    why = error.why
    if isinstance(why, e.TooManyInFlight) or why.data.get("status") == TOO_MANY_REQUESTS:
        return e.BackendBusy(named(namespace, f"has too much to do: {why.message}"))
    if isinstance(why, e.ServerTimeout):
        return e.BackendTimeout(named(namespace, f"did not answer: {why.message} {IN_DOUBT}"))
    if not error.begun:
        return e.BackendUnavailable(named(namespace, f"is not available: {why.message}"))
    doubt = "" if repeatable else f" {IN_DOUBT}"
    return e.BackendFailed(named(namespace, f"did not answer: {why.message}{doubt}"))


EMPTY = Inventory()
LONGEST = 200


def view_of(backend: LiveBackend) -> BackendView:
    """The view of one server."""
    lists = backend.inventory or EMPTY
    open_ = conversations(backend)
    return BackendView(
        namespace=backend.spec.namespace,
        name=backend.spec.name,
        transport=backend.connecting.transport,
        target=backend.connecting.target,
        state=backend.state.value,
        why=clean(backend.connecting.told(backend.why) if backend.state in AWAY else backend.why),
        since=backend.health.since,
        server=_text(lists.server.get("name")),
        version=_text(lists.server.get("version")),
        # Until its first lists are in the catalogue, nobody can say how much of them is shown.
        era=era_of(lists) if backend.inventory and backend.first_heard.is_set() else "",
        tools=len(lists.tools),
        resources=len(lists.resources),
        templates=len(lists.templates),
        prompts=len(lists.prompts),
        faults=lists.faults,
        advice=backend.advice,
        connections=len(open_),
        in_flight=backend.in_flight,
        calls=backend.tally.calls,
        errors=backend.tally.errors,
        restarts=sum(line.losses for line in backend.lines),
        dropped=sum(conversation.dropped for conversation in open_),
        last_error=backend.tally.last_error,
        median_ms=backend.tally.median_ms,
        outcomes=dict(backend.tally.outcomes),
        buckets=tuple(backend.tally.buckets),
        seconds=backend.tally.seconds,
        retry_after=retry_after(backend),
    )


def era_of(lists: Inventory) -> str:
    """The era of MCP that a server speaks."""
    return "stateless" if lists.stateless else "handshake"


def conversations(backend: LiveBackend, *, own: bool = False) -> list[BackendConversation]:
    """Everything that is open to a server, or what is the hub's own of it."""
    kept = [line.conversation for line in backend.lines if line.conversation is not None]
    return kept if own or backend.pool is None else [*kept, *backend.pool.conversations]


def retry_after(backend: LiveBackend) -> float | None:
    """In how many seconds a server that is not reached is tried again."""
    attempts = [line.next_attempt for line in backend.lines if line.next_attempt is not None]
    if not attempts:
        return None
    return max(0.0, round(min(attempts) - asyncio.get_running_loop().time(), 1))


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""
