"""A server's notifications of change: watched resources and tasks, and its lists."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.mcp.wire import CHANGES, URIS, members_of
from folkmoot.relay.upstream.inventory import Looking, drain, kept
from folkmoot.relay.upstream.links import wait_after
from folkmoot.relay.upstream.requests import Late, Unanswered

if TYPE_CHECKING:
    from folkmoot.core.message import Notification
    from folkmoot.gateway.model import Inventory
    from folkmoot.relay.upstream.conversation import BackendConversation
    from folkmoot.relay.upstream.requests import Heard, Listen

logger = logging.getLogger("folkmoot.backend")

MOST_WATCHED: Final = 200
"""Resources and tasks of one server that are watched at once; one more is refused."""
EVERY_SECONDS: Final = 0.1
"""Changes of one resource within this time are one."""
LISTEN_SECONDS: Final = 10.0
"""How long a server may take to agree to tell of changes."""

NOT_REACHED: Final = (e.GatewayError, e.ConsentNeeded)

Changed: TypeAlias = Callable[[], None]
Reach: TypeAlias = Callable[[], Awaitable["Announcer"]]
"""Reaches what announces changes; a `GatewayError` says why there is none."""


class Announcer(Protocol):
    """A conversation, or another node that has one."""

    async def listen(self, notifications: dict[str, Any], heard: Heard, seconds: float) -> Listen:
        """Hear of changes from when the server has agreed to tell of them."""


class Spot(NamedTuple):
    """A watched resource or task, and whose conversation it belongs to."""

    person: str
    named: str
    """The URI of a resource, or the id of a task."""
    member: str = URIS
    """Where a filter names such a thing."""


class Watch(Entity):
    """The watchers of one spot, and the task that listens."""

    tellers: list[Changed] = []
    begun: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Done when the server agreed to tell of it, or did not."""
    task: asyncio.Task[None] | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _told_at: float = float("-inf")
    _soon: asyncio.TimerHandle | None = None

    def tell(self, _: Notification | None = None) -> None:
        """Tell everyone, at once or soon: what changes all the time is told now and then."""
        wait = self._told_at + EVERY_SECONDS - self._loop.time()
        if wait <= 0:
            self._tell()
        elif self._soon is None:
            self._soon = self._loop.call_later(wait, self._tell)

    def _tell(self) -> None:
        self._told_at, self._soon = self._loop.time(), None
        for teller in list(self.tellers):
            try:
                teller()
            except Exception:
                logger.exception("a change of a resource could not be announced")

    def settle(self, error: e.FolkmootError | None) -> None:
        """Let those who wait for the server to agree know."""
        if self.begun.done():
            return
        if error is None:
            self.begun.set_result(None)
        else:
            self.begun.set_exception(error)
            # Whoever waited for it may have left.
            self.begun.exception()


class BackendWatches(Entity):
    """The watches of one server, by conversation."""

    tasks: asyncio.TaskGroup
    _watches: dict[Spot, Watch] = {}

    def watched_by(self, person: str) -> bool:
        """Whether someone watches something over a link of their own."""
        return any(spot.person == person for spot in self._watches)

    async def watch(self, key: Spot, changed: Changed, reach: Reach) -> Changed:
        """Have `changed` called when a resource or a task changes, until the answer is called."""
        watch = self._watches.get(key)
        if watch is None:
            if len(self._watches) >= MOST_WATCHED:
                raise e.BackendBusy("Too many resources of the server are watched already.")
            watch = self._watches[key] = Watch()
            watch.task = self.tasks.create_task(self._keep(key, watch, reach))
        watch.tellers.append(changed)
        stop = self._leaving(key, watch, changed)
        try:
            await asyncio.shield(watch.begun)
        except BaseException:
            stop()
            raise
        return stop

    def _leaving(self, key: Spot, watch: Watch, changed: Changed) -> Changed:
        there = [True]

        def stop() -> None:
            if not there:
                return
            there.clear()
            watch.tellers.remove(changed)
            if not watch.tellers and watch.task is not None:
                watch.task.cancel()
                self._forget(key, watch)

        return stop

    def _forget(self, key: Spot, watch: Watch) -> None:
        if self._watches.get(key) is watch:
            del self._watches[key]

    async def _keep(self, key: Spot, watch: Watch, reach: Reach) -> None:
        """Listen, and listen again when the link or the server ends that."""
        failures = 0
        try:
            while True:
                listen = await self._listen(key, watch, reach)
                if listen is not None:
                    if watch.begun.done():
                        # It may have changed while nobody listened.
                        watch.tell()
                    watch.settle(None)
                    failures = 0
                    try:
                        await listen.ended.wait()
                    finally:
                        listen.close()
                failures += 1
                await asyncio.sleep(wait_after(failures))
        except NOT_REACHED as error:
            watch.settle(error)
        finally:
            watch.settle(e.BackendFailed("The backend was stopped."))
            self._forget(key, watch)

    async def _listen(self, key: Spot, watch: Watch, reach: Reach) -> Listen | None:
        """Have the server agree to tell; None to try again, unless this was the first time."""
        try:
            conversation = await reach()
            wanted = {key.member: [key.named]}
            listen = await conversation.listen(wanted, watch.tell, LISTEN_SECONDS)
        except NOT_REACHED:
            if watch.begun.done():
                return None
            raise
        except (Unanswered, Late) as error:
            if watch.begun.done() or (isinstance(error, Unanswered) and error.gone):
                return None
            raise e.BackendFailed("The server does not announce changes.") from None
        if key.named in (listen.agreed.result().get(key.member) or ()):
            return listen
        listen.close()
        what = "resource" if key.member == URIS else "task"
        raise e.BackendFailed(f"The server does not announce changes of this {what}.")


QUIET_SECONDS: Final = 0.2
"""Lists are read once no change was told of for so long."""
AT_MOST_EVERY: Final = 2.0
REST: Final = 4.0
"""Lists are not read again for so many times as long as it took to read them and take them over."""
AGAIN_SECONDS: Final = 30.0
MOST_SELDOM: Final = 1800.0
"""After how long a list is asked for again that could not be had, first and at most."""
AGREE_SECONDS: Final = 3.0
"""How long a server may take to agree to tell of changes; then its lists are read all the same."""


class InventoryReader(Entity):
    """Reads the lists of one server, which `reach` has a conversation with when there is one.

    `deliver` gets them when the server was reached anew, and afterwards when they are not the same.
    """

    reach: Callable[[], Awaitable[BackendConversation]]
    deliver: Callable[[Inventory], Awaitable[None]]
    page_seconds: float
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _stale: asyncio.Event = field(default_factory=asyncio.Event)
    _first_change: float = 0.0
    _last_change: float = 0.0
    _taken_at: float = float("-inf")
    _rest: float = field(default_factory=lambda: AT_MOST_EVERY)
    _anew: bool = False
    _again: float = AGAIN_SECONDS
    _looking: Looking = field(default_factory=Looking)
    last: Inventory | None = None

    def reached(self) -> None:
        """Read the lists at once."""
        self._anew = True
        self._stale.set()

    def changed(self, _: Notification | None = None) -> None:
        """The server says that a list changed: read them soon."""
        now = self._loop.time()
        if not self._stale.is_set():
            self._first_change = now
        self._last_change = now
        self._stale.set()

    async def listen(self) -> None:
        """Listen for changed lists, over every conversation to come."""
        while True:
            conversation = await self.reach()
            wants, failures, anew = list_changes(conversation.capabilities), 0, True
            while not conversation.ended.is_set():
                # Before the lists are read, so that no change falls in between.
                ended = await self._hear(conversation, wants) if wants else conversation.ended
                if anew:
                    self.reached()
                    anew = False
                elif ended is not None:
                    self.changed()
                if ended is not None:
                    await ended.wait()
                if not conversation.ended.is_set():
                    failures += 1
                    await asyncio.sleep(wait_after(failures))

    async def _hear(
        self, conversation: BackendConversation, wants: dict[str, Any]
    ) -> asyncio.Event | None:
        try:
            return (await conversation.listen(wants, self.changed, AGREE_SECONDS)).ended
        except (Unanswered, Late):
            return None

    async def run(self) -> None:
        """Take inventories until cancelled."""
        while True:
            await self._stale.wait()
            await self._quiet()
            self._stale.clear()
            anew, self._anew = self._anew, False
            try:
                await self._take(await self.reach(), anew=anew)
            except Unanswered as error:
                # The next conversation begins with reading them.
                logger.debug("lists were not read", extra={"error": error.why.message})
            except Exception:
                logger.exception("the lists of a backend could not be taken over")

    async def _take(self, conversation: BackendConversation, *, anew: bool) -> None:
        began = self._loop.time()
        drained = await drain(conversation, seconds=self.page_seconds, looking=self._looking)
        before, self.last = self.last, kept(drained, self.last)
        if drained.partial:
            self._loop.call_later(self._again, self._stale.set)
            self._again = min(MOST_SELDOM, 2 * self._again)
        else:
            self._again = AGAIN_SECONDS
        try:
            if anew or self.last != before:
                await self.deliver(self.last)
        finally:
            self._taken_at = self._loop.time()
            self._rest = max(AT_MOST_EVERY, REST * (self._taken_at - began))

    async def _quiet(self) -> None:
        while not self._anew:
            settled = min(self._last_change + QUIET_SECONDS, self._first_change + AT_MOST_EVERY)
            wait = max(settled, self._taken_at + self._rest) - self._loop.time()
            if wait <= 0:
                return
            # In short steps, since the server may be reached anew meanwhile.
            await asyncio.sleep(min(wait, QUIET_SECONDS))


def list_changes(capabilities: dict[str, Any]) -> dict[str, Any]:
    """The lists whose changes a server offers to tell of, as a listen names them."""
    return {
        name: True
        for capability, name in CHANGES.values()
        if members_of(capabilities.get(capability)).get("listChanged") is True
    }
