"""The conversations with one server: some that are opened again whenever they end, and others that
are opened when first needed, and closed when idle.

Of the latter there is one for each key: for each person where they have links of their own, or for
what the clients of callers can be asked.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias
from weakref import ReferenceType, ref

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.mcp.wire import AS_TASK, TOOLS_CALL, members_of
from folkmoot.relay.upstream.requests import Offer
from folkmoot.taskgroups import waited

if TYPE_CHECKING:
    from folkmoot.core.message import Response
    from folkmoot.gateway.model import UpstreamRequest
    from folkmoot.relay.upstream.conversation import BackendConversation

logger = logging.getLogger("folkmoot.backend")

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 60.0
DRAIN_SECONDS: Final = 900.0
"""How long a link that was replaced is kept for the calls that are open on it."""
ALONE_DRAIN_SECONDS: Final = 5.0
"""The same where the next is opened only afterwards."""
STEADY_SECONDS: Final = 5.0
"""A conversation that held this long counts as a good one."""


class OpensConversation(Protocol):
    def __call__(self, *, shake: bool = False) -> AbstractAsyncContextManager[BackendConversation]:
        """One, while entered; `shake` offers a handshake first."""


def wait_after(failures: int) -> float:
    """Seconds to wait after so many failures in a row: up to twice as long each time, at random.

    The whole of it is random, so that many hubs of a restarted server do not come all at once.
    """
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 16))
    return random.uniform(0.0, longest)  # noqa: S311 - spreads load, keeps no secret


class KeptConversation(Entity):
    """Keeps one conversation open. `changed` is called when there is one, or none any more.

    Attempts that fail and conversations that break soon, with no call answered, are failures in a
    row. A call that is not answered in time is none; but if the server said nothing at all since it
    was made, it is asked whether it is there, and if it does not answer that, it is not.
    """

    opened: OpensConversation
    changed: Callable[[], None]
    alive_seconds: float
    alone: bool = False
    """Whether one must have ended before the next is opened."""
    _shake: bool = False
    conversation: BackendConversation | None = None
    failures: int = 0
    losses: int = 0
    why: str = ""
    next_attempt: float | None = None
    """By the clock of the loop; None while an attempt is made or none is needed."""

    @property
    def ready(self) -> BackendConversation | None:
        """The conversation, if it may be used now."""
        conversation = self.conversation
        return conversation if conversation is not None and conversation.usable else None

    async def run(self) -> None:
        """Keep it open until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as attempts:
            while True:
                ended = asyncio.Event()
                # A link that takes its time to close does not keep the next from being opened.
                attempts.create_task(self._attempt(ended))
                await ended.wait()
                wait = wait_after(self.failures) if self.failures else 0.0
                self.next_attempt = loop.time() + wait
                await asyncio.sleep(wait)
                self.next_attempt = None

    async def _attempt(self, next_: asyncio.Event) -> None:
        ended = asyncio.Event() if self.alone else next_
        try:
            await self._once(ended)
        except e.FolkmootError as error:
            # A server that cannot bear to be asked what it is may bear a handshake.
            self._shake = not self._shake and isinstance(error, e.ServerUnreachable)
            self._failed(error.message, ended)
        except Exception:
            logger.exception("a link to a server failed")
            self._failed("Something went wrong with the link.", ended)
        finally:
            next_.set()

    async def _once(self, ended: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        async with self.opened(shake=self._shake) as conversation:
            began = loop.time()
            self.conversation = conversation
            try:
                self.changed()
                why = await self._live(conversation)
                if why is None:
                    await self._drain(conversation, ended)
                    return
            finally:
                if self.conversation is conversation:
                    self.conversation = None
            if loop.time() - began >= STEADY_SECONDS:
                self.failures = 0
            self.losses += 1
            self._failed(why.message, ended)

    async def _live(self, conversation: BackendConversation) -> e.FolkmootError | None:
        """Wait for the end, and look into every doubt; None if it is to be replaced."""
        while True:
            await conversation.wakeup.wait()
            conversation.wakeup.clear()
            if conversation.over is None and conversation.suspect:
                self.changed()
                if not await conversation.alive(self.alive_seconds):
                    conversation.end(e.ServerTimeout("The server stopped answering."))
                self.changed()
            if conversation.over is not None:
                return conversation.over
            if conversation.replaced:
                return None

    async def _drain(self, conversation: BackendConversation, ended: asyncio.Event) -> None:
        """Open a replacement at once, and close this one when nobody uses it."""
        logger.info("a link is replaced: requests that were cancelled on it are never answered")
        self.conversation = None
        self.failures = 0
        self.losses += 1
        ended.set()
        conversation.leave()
        self.changed()
        await conversation.drained(ALONE_DRAIN_SECONDS if self.alone else DRAIN_SECONDS)

    def _failed(self, why: str, ended: asyncio.Event) -> None:
        if not ended.is_set():
            ended.set()
            self.failures += 1
            self.why = why
            self.changed()


IDLE_SECONDS: Final = 600.0
MOST_REMEMBERED: Final = 1024
"""Keys whose failures are remembered."""


class PoolKey(NamedTuple):
    """What a conversation is for."""

    person: str = ""
    """Whose it is; empty where all share it."""
    offer: Offer | None = None
    """What a handshake offers; None for a conversation like the first."""
    number: int = 0
    """Which of several processes."""


OpensFor: TypeAlias = Callable[[PoolKey], AbstractAsyncContextManager["BackendConversation"]]


class Pool(Entity):
    """Opens up to `most` conversations on demand, and closes idle ones.

    For one more, the one that was unused for longest is closed. `retry_after` says how long one
    that failed so often is not tried again; `needed` which are not to be closed though idle.
    """

    tasks: asyncio.TaskGroup
    opened: OpensFor
    most: int
    alive_seconds: float
    retry_after: Callable[[PoolKey, int], float]
    needed: Callable[[PoolKey], bool] = lambda _: False
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _own: dict[PoolKey, _PooledLink] = {}
    """Those used last come last."""
    _failures: dict[PoolKey, tuple[int, float]] = {}
    """How often it failed in a row, and until when it is not tried again."""

    @property
    def conversations(self) -> list[BackendConversation]:
        found = (each.conversation for each in self._own.values())
        return [conversation for conversation in found if conversation is not None]

    async def of(self, key: PoolKey) -> BackendConversation:
        """The conversation for a key; raises a `GatewayError` where there can be none."""
        while True:
            own = self._own.pop(key, None)
            if own is None or own.closing:
                own = self._begin(key)
            self._own[key] = own
            conversation = await own.awaited()
            if not conversation.suspect and conversation.over is None:
                return conversation
            if not own.closing:
                await own.settled(self.alive_seconds)

    def drop(self, person: str, *, drain: bool) -> None:
        """Close what is open for a person: at once, or when nobody uses it any more.

        What failed for them before may succeed now.
        """
        self._failures = {key: each for key, each in self._failures.items() if key.person != person}
        for key, own in list(self._own.items()):
            if key.person != person or (drain and own.conversation is None):
                continue
            del self._own[key]
            if drain and own.conversation is not None:
                own.conversation.replace()
                own.conversation.leave()
            else:
                own.close()

    def _begin(self, key: PoolKey) -> _PooledLink:
        failures, until = self._failures.get(key, (0, 0.0))
        wait = until - self._loop.time()
        if failures and wait > 0:
            raise e.BackendUnavailable(
                "It could not be reached just now.", retry_after=round(wait, 1)
            )
        if len(self._own) >= self.most:
            self._close_one()
        own = _PooledLink(self._loop)
        own.task = self.tasks.create_task(self._serve(key, own))
        return own

    def _close_one(self) -> None:
        for key, own in self._own.items():
            if own.closing or (own.idle and not self.needed(key)):
                own.close()
                del self._own[key]
                return
        raise e.BackendBusy("Too many people use the server at once.")

    async def _serve(self, key: PoolKey, own: _PooledLink) -> None:
        try:
            async with self.opened(key) as conversation:
                self._failures.pop(key, None)
                own.come(conversation)
                await self._live(key, own, conversation)
                # Whoever waits need not wait until the link is closed.
                own.closing = True
                own.settle()
                if conversation.over is None and conversation.replaced:
                    await conversation.drained(DRAIN_SECONDS)
        except e.ConsentNeeded as error:
            # The server is there, and lets others in.
            own.fail(error)
        except e.FolkmootError as error:
            self._failed(key, own, error)
        except Exception:
            logger.exception("a link to a server failed")
            self._failed(key, own, e.BackendUnavailable("Something went wrong with the link."))
        finally:
            own.closing = True
            own.fail(e.BackendUnavailable("The link to the server was closed."))
            if self._own.get(key) is own:
                del self._own[key]

    async def _live(
        self, key: PoolKey, own: _PooledLink, conversation: BackendConversation
    ) -> None:
        """Until it breaks, is to be replaced, or is not used for long."""
        while conversation.over is None and not conversation.replaced:
            idle_at = own.used_at + IDLE_SECONDS
            if self._loop.time() >= idle_at:
                if own.idle and not self.needed(key):
                    return
                own.used_at = self._loop.time()
                continue
            await waited(conversation.wakeup, idle_at - self._loop.time())
            conversation.wakeup.clear()
            if conversation.suspect and not await conversation.alive(self.alive_seconds):
                return
            own.settle()

    def _failed(self, key: PoolKey, own: _PooledLink, error: e.FolkmootError) -> None:
        failures = self._failures.pop(key, (0, 0.0))[0] + 1
        if len(self._failures) >= MOST_REMEMBERED:
            del self._failures[next(iter(self._failures))]
        self._failures[key] = (failures, self._loop.time() + self.retry_after(key, failures))
        own.fail(error)


class _PooledLink:
    """The conversation of one key, or the wish for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting = 0
        self.opened: asyncio.Future[BackendConversation] = loop.create_future()
        self.conversation: BackendConversation | None = None
        self.task: asyncio.Task[None] | None = None
        self.used_at = loop.time()
        self.closing = False
        self._news = asyncio.Event()

    @property
    def idle(self) -> bool:
        """Whether the link is open and unused."""
        conversation = self.conversation
        return conversation is not None and not conversation.busy and not self._waiting

    async def awaited(self) -> BackendConversation:
        """The conversation once open; its waiters are counted meanwhile."""
        self._waiting += 1
        try:
            return await asyncio.shield(self.opened)
        finally:
            self._waiting -= 1
            self.used_at = self._loop.time()

    def come(self, conversation: BackendConversation) -> None:
        self.conversation = conversation
        self.opened.set_result(conversation)

    def fail(self, error: e.FolkmootError) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()
        self.settle()

    def settle(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def settled(self, seconds: float) -> None:
        """Wait until a doubt is over."""
        await waited(self._news, seconds)

    def close(self) -> None:
        self.closing = True
        if self.task is not None:
            self.task.cancel()


MOST: Final = 1024
"""Calls, and tasks, that are remembered; the oldest are forgotten, and go wherever there is room.
"""
STATE: Final = "requestState"
TASK_ID: Final = "taskId"


Remembered: TypeAlias = OrderedDict[tuple[str, str], ReferenceType["BackendConversation"]]


class Affinity(Entity):
    """By the state that the server gave, which comes back with the input; or by the task's id.

    Both are good for their person alone.
    """

    _states: Remembered = field(default_factory=OrderedDict)
    _tasks: Remembered = field(default_factory=OrderedDict)

    def note(
        self, wanted: UpstreamRequest, response: Response, conversation: BackendConversation
    ) -> None:
        """Remember where an answer came from that wants input, or is a task."""
        result = response.result
        if type(result) is not dict:
            return
        person = wanted.person
        _remember(self._states, person, result.get(STATE), conversation)
        if wanted.method == TOOLS_CALL:
            plain = result if result.get("resultType") == AS_TASK else {}
            task = members_of(result.get(AS_TASK)) if wanted.tasks else plain
            _remember(self._tasks, person, task.get(TASK_ID), conversation)

    def of(self, wanted: UpstreamRequest) -> BackendConversation | None:
        """The conversation that a repeated call, or a request about a task, belongs to."""
        params = wanted.params
        # Only what is about a task has an id that the hub itself found out.
        about_task = wanted.tasks and wanted.method != TOOLS_CALL
        table, key = (self._tasks, TASK_ID) if about_task else (self._states, STATE)
        named = params.get(key)
        known = table.get((wanted.person, named)) if type(named) is str else None
        return None if known is None else known()


def _remember(
    table: Remembered, person: str, named: Any, conversation: BackendConversation
) -> None:
    if type(named) is str:
        table[person, named] = ref(conversation)
        if len(table) > MOST:
            table.popitem(last=False)
