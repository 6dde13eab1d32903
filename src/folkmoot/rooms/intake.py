"""Messages on their way into a room, in order for each connection.

Most go straight to the machine. Some must wait: for something that is looked up in the store, since
the machine reads nothing itself, and on a hub with interceptors, for these.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.transport import TransportContext
from folkmoot.rooms.limits import MAX_QUEUED
from folkmoot.rooms.machine import Facts, Lookup
from folkmoot.rooms.ports import Enter, Outlet, Said

if TYPE_CHECKING:
    from folkmoot.rooms.journal import Spawn
    from folkmoot.rooms.live import LiveRoom
    from folkmoot.rooms.model import Visitor
    from folkmoot.rooms.ports import RoomPort

logger = logging.getLogger("folkmoot.rooms")

WEBSOCKET: Final = TransportContext.websocket()

Message: TypeAlias = bytes | McpxMessage
LookUp: TypeAlias = Callable[[Lookup], Awaitable[Facts]]


class Lookups(Entity):
    """Messages that wait for a look-up, one query for all that came meanwhile.

    A connection is not read while one of its messages waits.
    """

    live: LiveRoom
    look_up: LookUp
    spawn: Spawn
    _queue: list[tuple[Outlet, Sequence[Message] | None]] = []
    _behind: Counter[Outlet] = field(default_factory=Counter)
    """How much of each connection waits, or is being looked up."""
    _task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._behind)

    def __contains__(self, outlet: Outlet) -> bool:
        return outlet in self._behind

    def put(self, outlet: Outlet, messages: Sequence[Message]) -> None:
        """Let messages wait, behind those of the connection that wait already."""
        if outlet not in self._behind:
            outlet.hold()
        self._add(outlet, messages)

    def leave(self, outlet: Outlet) -> None:
        """The connection ended; it has left once all that it said is taken."""
        self._add(outlet, None)

    async def drained(self) -> None:
        """Wait until nothing waits."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def _add(self, outlet: Outlet, messages: Sequence[Message] | None) -> None:
        if not self._behind:
            self._task = self.spawn(self._work())
        self._behind[outlet] += 1
        self._queue.append((outlet, messages))

    async def _work(self) -> None:
        try:
            while self._queue:
                waiting, self._queue = self._queue, []
                waiting = [(outlet, self._decoded(messages)) for outlet, messages in waiting]
                try:
                    facts = await self._facts(waiting)
                except e.FolkmootError as error:
                    self._refuse(waiting, error)
                except Exception:
                    logger.exception("what a room needs could not be looked up")
                    self._refuse(waiting, e.InternalError("The room could not be asked."))
                else:
                    self._queue = self._accept_waiting(waiting, facts) + self._queue
        finally:
            self._queue.clear()
            self._behind.clear()

    def _decoded(self, messages: Sequence[Message] | None) -> Sequence[Message] | None:
        if messages is None:
            return None
        read: list[Message] = []
        for message in messages:
            try:
                if not isinstance(message, McpxMessage):
                    message = self.live.machine.decode(message)
            except e.FolkmootError:
                # The machine refuses it in its turn.
                pass
            read.append(message)
        return read

    async def _facts(self, waiting: Sequence[tuple[Outlet, Sequence[Message] | None]]) -> Facts:
        outlets = self.live.outlets
        for account in {
            outlets[one].principal.account_id for one in self._behind if one in outlets
        }:
            await self.live.prepare(account)
        read = (one for _, messages in waiting for one in messages or ())
        asked = self.live.machine.lookup(one for one in read if isinstance(one, McpxMessage))
        return await self.look_up(asked)

    def _accept_waiting(
        self, waiting: Sequence[tuple[Outlet, Sequence[Message] | None]], facts: Facts
    ) -> list[tuple[Outlet, Sequence[Message] | None]]:
        """Pass on what the room can accept; the rest, which needs another lookup, is returned."""
        lacking: list[tuple[Outlet, Sequence[Message] | None]] = []
        behind: set[Outlet] = set()
        for outlet, messages in waiting:
            if outlet not in behind:
                taken = 0 if messages is None else self.live.accept(outlet, messages, facts)
                if messages is None or taken == len(messages):
                    self._done(outlet, left=messages is None)
                    continue
                messages = messages[taken:]
                behind.add(outlet)
            lacking.append((outlet, messages))
        return lacking

    def _refuse(
        self, waiting: Sequence[tuple[Outlet, Sequence[Message] | None]], error: e.FolkmootError
    ) -> None:
        for outlet, messages in waiting:
            for message in messages or ():
                self.live.refuse(outlet, message, error)
            self._done(outlet, left=messages is None)

    def _done(self, outlet: Outlet, *, left: bool) -> None:
        self._behind[outlet] -= 1
        if not self._behind[outlet]:
            del self._behind[outlet]
            outlet.release()
        if left:
            self.live.left(outlet)


class Intake(Entity):
    """The way of one connection's messages past the interceptors, where a hub has some."""

    room: RoomPort
    outlet: Outlet
    visitor: Visitor
    enter: Enter
    spawn: Spawn
    audit_blocked: Callable[[McpxMessage, e.FolkmootError], None]
    _queue: deque[bytes] = field(default_factory=deque)
    _working: bool = False

    def put(self, *messages: bytes) -> None:
        before = len(self._queue)
        self._queue.extend(messages)
        if before < MAX_QUEUED <= len(self._queue):
            self.outlet.hold()
        if not self._working:
            self._working = True
            self.spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._queue and self.outlet.is_open:
                await self._pass_on(self._queue.popleft())
                if len(self._queue) == MAX_QUEUED - 1:
                    self.outlet.release()
        finally:
            self._working = False

    async def _pass_on(self, data: bytes) -> None:
        message: Message = data
        try:
            message = self.room.decode(data)
            blocked = partial(self.audit_blocked, message)
            accept = partial(self._accept, data)
            said = Said(message, self.visitor, accept, blocked, WEBSOCKET, self.room.name)
            await self.enter(said)
        except e.FolkmootError as error:
            self.room.refuse(self.outlet, message, error)
        except Exception:
            logger.exception("an interceptor failed")
            self.room.refuse(self.outlet, message, e.InternalError("An interceptor failed."))

    async def _accept(self, data: bytes) -> None:
        # As it came: whatever was done to the message that was shown does not count.
        if self.outlet.is_open:
            self.room.receive(self.outlet, data)
