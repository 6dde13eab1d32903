"""Requests to a server: their form, and who waits for the answers.

What is wanted of a server is a request of the stateless era, in the hub's name. `PendingCall` waits
for one answer, `Listen` for changes. Beside them: what nobody waits for, which leaves from a
`LinkOutbox`; the `Pace` at which a server is heard; and how it says that it has forgotten a
session, so that it did nothing of what was asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import field

from folkmoot import __version__
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    ErrorObject,
    Notification,
    Request,
    Response,
)
from folkmoot.core.transport import HttpMetadata
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp import wire
from folkmoot.mcp.wire import members_of, params_of, request_meta

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.mcp.carrier import Carrier
    from folkmoot.mcp.peer import PeerCall

CLIENT: Final = {"name": "folkmoot", "version": __version__}
META: Final = {wire.VERSION_KEY: wire.STATELESS_VERSION, wire.CLIENT_KEY: CLIENT}
NEVER_OFFERED: Final = frozenset(("roots", "tasks"))
"""The folders of someone's machine are not the hub's to tell, nor do clients run tasks for it."""

Offer: TypeAlias = tuple[str, ...]
"""What a handshake tells a server that can be asked of everyone who shares the link."""
EVERYTHING: Final[Offer] = ("elicitation.form", "elicitation.url", "sampling")
"""What the first link offers, which serves all callers that have no other."""
SAMPLING: Final = ("context", "tools")


def request_of(wanted: UpstreamRequest, message_id: int) -> Request:
    """The request; what a caller's `_meta` says of itself stays, but nothing of the protocol's."""
    capabilities = wanted.capabilities
    declared = offered(capabilities) if capabilities else capabilities
    meta: dict[str, Any] = {**META, wire.CAPABILITIES_KEY: declared}
    if wanted.log_level is not None:
        meta[wire.LEVEL_KEY] = wanted.log_level
    if wanted.progress:
        meta["progressToken"] = message_id
    own = wanted.params.get("_meta")
    if type(own) is dict:
        meta = own | meta
        if not wanted.progress:
            meta.pop("progressToken", None)
        if wanted.log_level is None:
            meta.pop(wire.LEVEL_KEY, None)
    return Request(id=message_id, method=wanted.method, params={**wanted.params, "_meta": meta})


def offered(capabilities: dict[str, Any]) -> dict[str, Any]:
    """What a caller's client can be asked for through the hub."""
    if NEVER_OFFERED.isdisjoint(capabilities):
        return capabilities
    return {name: each for name, each in capabilities.items() if name not in NEVER_OFFERED}


def offer_of(capabilities: dict[str, Any]) -> Offer:
    """The offer to make for callers with these capabilities."""
    found = []
    elicitation, sampling = capabilities.get("elicitation"), capabilities.get("sampling")
    if type(elicitation) is dict:
        # Before there were pages to lead to, a form was all there was.
        modes = elicitation if "url" in elicitation else {"form": {}}
        found += [f"elicitation.{mode}" for mode in ("form", "url") if mode in modes]
    if type(sampling) is dict:
        found += ["sampling", *(f"sampling.{each}" for each in SAMPLING if each in sampling)]
    return tuple(found)


def offering(offer: Offer) -> dict[str, Any]:
    """An offer as the capabilities of a client."""
    told: dict[str, Any] = {}
    for name, _, mode in (each.partition(".") for each in offer):
        told.setdefault(name, {}).update({mode: {}} if mode else {})
    return told


def discover(message_id: int, offer: Offer = EVERYTHING) -> Request:
    """A `server/discover` request by a client with these capabilities."""
    return Request(
        id=message_id, method=wire.DISCOVER, params={"_meta": request_meta(CLIENT, offering(offer))}
    )


def listen(message_id: int, notifications: dict[str, Any]) -> Request:
    """The wish to hear of changes."""
    declared: dict[str, Any] = (
        {"extensions": {wire.TASKS_EXTENSION: {}}} if wire.TASK_IDS in notifications else {}
    )
    params = {"notifications": notifications, "_meta": request_meta(CLIENT, declared)}
    return Request(id=message_id, method=wire.LISTEN, params=params)


logger = logging.getLogger("folkmoot.backend")

Heard: TypeAlias = Callable[[Notification], None]


class Unanswered(Exception):
    """A request has no answer."""

    def __init__(self, why: e.FolkmootError, *, begun: bool, gone: bool) -> None:
        super().__init__(why.message)
        self.why = why
        self.begun = begun
        """Whether the server may have done what was asked."""
        self.gone = gone
        """Whether it is the link that failed, and not this request alone."""


class Late(Exception):
    """A request was not answered in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class PendingCall(Entity):
    """Someone who wants something of the server, and waits for the answer."""

    id: int
    wanted: UpstreamRequest
    seconds: float
    call: PeerCall | None = None
    """What the server was asked for it; None if it was not asked anything yet."""
    failure: e.FolkmootError | None = None
    """Why the answer that is on its way is none of the server's."""
    sending: asyncio.Task[Any] | None = None
    """Who waits for the link to take the request, and is to be woken should that take long."""

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.began = loop.time()
        self.answer: asyncio.Future[Response] = loop.create_future()

    def expire(self, now: float) -> None:
        """End the call with a timeout."""
        self.fail(Late(now - self.began))
        if self.sending is not None:
            self.sending.cancel()

    @property
    def late(self) -> bool:
        """Whether it was not answered in time."""
        answer = self.answer
        return answer.done() and not answer.cancelled() and isinstance(answer.exception(), Late)

    def fail(self, error: Exception) -> None:
        """End the call with an error."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def hear(self, notice: Notification) -> None:
        """Pass a notification to the caller."""
        if self.wanted.tell is not None:
            passed_on(self.wanted.tell, notice)


class Listen(Entity):
    """A subscriber to changes; the server confirms first which ones it will send."""

    id: int
    heard: Heard
    on_close: Callable[[Listen], None]
    agreed: asyncio.Future[dict[str, Any]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the server will say nothing more."""

    def close(self) -> None:
        """Hear nothing more, and have the server know."""
        self.on_close(self)

    def hear(self, notice: Notification) -> None:
        """The server agrees to it, or tells of a change."""
        if notice.method != wire.ACKNOWLEDGED:
            passed_on(self.heard, notice)
        elif not self.agreed.done():
            self.agreed.set_result(members_of(params_of(notice).get("notifications")))

    def refused(self, answer: Response) -> None:
        """End the subscription with the error that the server gave."""
        said = answer.error.message if isinstance(answer.error, ErrorObject) else "It ended."
        error = e.FolkmootError(f"The server does not announce changes: {said}")
        self.end(Unanswered(error, begun=False, gone=False))

    def end(self, error: Exception) -> None:
        """There is nothing more to hear."""
        if not self.agreed.done():
            self.agreed.set_exception(error)
            # Whoever waited for it may have left.
            self.agreed.exception()
        self.ended.set()


def passed_on(tell: Heard, notice: Notification) -> None:
    """Call a listener; its error must not end a link that others share."""
    try:
        tell(notice)
    except Exception:
        logger.exception("what a server said could not be passed on")


MOST_WAITING: Final = 256
"""What a server that takes nothing may leave unsent; more is dropped."""


class LinkOutbox(Entity):
    """Sends messages one by one, so that a slow server holds up nobody else."""

    link: Carrier
    _waiting: deque[ProtocolMessage] = field(default_factory=deque)
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: int = 0

    def put(self, message: ProtocolMessage) -> None:
        """Have something sent, unless too much waits already."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(message)
        self._more.set()

    async def run(self) -> None:
        """Send what is put in, until the link is closed."""
        while True:
            while self._waiting:
                try:
                    await self.link.send(self._waiting.popleft())
                except e.TransportClosed:
                    return
                except e.CarryError as error:
                    logger.debug("a server did not take a message", extra={"error": error.message})
            self._more.clear()
            await self._more.wait()


A_SECOND: Final = 4000.0
BURST: Final = 8000.0
"""Messages. For more than these the server waits, and nobody else does."""
A_MESSAGE: Final = 4096
VALUES: Final = 50
"""Bytes, and values, that count as one message more."""
TURN: Final = 64
"""So many messages are taken before others have their turn."""
PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 1.0


class Pace:
    """Counts messages, and pauses their reader."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = BURST
        self._since = self._loop.time()
        self._taken = 0

    def spend(self, raw: bytes) -> None:
        """Count a message; a long one, or one of many values, counts as several."""
        self._room -= 1.0 + len(raw) / A_MESSAGE + raw.count(b",") / VALUES

    async def keep(self) -> None:
        """Yield to others now and then, and slow a server that floods."""
        self._taken += 1
        if self._taken < TURN and self._room > 0:
            return
        self._taken = 0
        now = self._loop.time()
        self._room = min(BURST, self._room + (now - self._since) * A_SECOND)
        self._since = now
        owed = max(PAUSE, min(LONGEST_PAUSE, -self._room / A_SECOND))
        await asyncio.sleep(0 if self._room > 0 else owed)


SAID_WITH: Final = frozenset({400, 404})
"""The statuses it is said with: the second by the specification, the first by many servers."""
WORD: Final = "session"


def session_is_gone(answer: Response, envelope: MessageEnvelope[Any] | None) -> bool:
    """Whether an error only says that the server does not know the session."""
    metadata = None if envelope is None else envelope.context.transport.metadata
    if not isinstance(metadata, HttpMetadata) or metadata.status not in SAID_WITH:
        return False
    return isinstance(answer.error, ErrorObject) and WORD in answer.error.message.lower()
