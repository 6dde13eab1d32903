"""A room on another node, for those who are connected to this one.

What they say goes to the room's owner, and what is said there comes back, over an *edge*. The
history of a durable room is read from the store, so reading needs no other node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

import msgspec
from msgspec import field

from folkmoot.cluster import (
    CallAnswered,
    DrainConnection,
    EdgeEffect,
    FillGap,
    Hearing,
    HoldConnection,
    Overheard,
    Place,
    SeekOwner,
    ShutConnection,
    ToConnection,
)
from folkmoot.cluster.edge import END_OF_ROOM
from folkmoot.cluster.node import NodeTraffic
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.entity import Entity
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal
from folkmoot.core.ports import Store, Tx
from folkmoot.rooms import queries
from folkmoot.rooms.folding import folded_page
from folkmoot.rooms.history import StoredHistory
from folkmoot.rooms.journal import Spawn
from folkmoot.rooms.limits import LOOK_SECONDS, MAX_READ
from folkmoot.rooms.machine import Effect, Grant, Proposal, Role
from folkmoot.rooms.machine.requests import OpenRequest
from folkmoot.rooms.model import Guest, MessagePage, RoomId, RoomRecord, Visitor
from folkmoot.rooms.ports import Crowd, Outlet, RoomStatus, WaitingItems
from folkmoot.rooms.remote_calls import JoinBody, encode_call, encode_refusal, read_answer
from folkmoot.rooms.spec import RoomPatch
from folkmoot.rooms.stream import page_of
from folkmoot.rooms.visits import RemoteVisits

logger = logging.getLogger("folkmoot.rooms")

OnConnection: TypeAlias = ToConnection | Hearing | ShutConnection | HoldConnection | DrainConnection


class RemoteRoom(Entity):
    """One room that another node owns; a `RoomPort`."""

    record: RoomRecord
    epoch: str
    store: Store
    traffic: NodeTraffic
    crowd: Crowd
    spawn: Spawn
    find: Callable[[RoomRecord], Awaitable[Place | None]]
    leave: Callable[[RoomId, e.FolkmootError], None]
    decode: Callable[[bytes], McpxMessage]
    """A message as the room reads it, or an error that says what is wrong with its bytes."""
    visit_seconds: float
    _outlets: dict[Outlet, Visitor] = {}
    _numbers: dict[Outlet, int] = {}
    _by_number: dict[int, Outlet] = {}
    _held: set[Outlet] = set()
    _calls: dict[int, asyncio.Future[bytes | None]] = {}
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _seeking: bool = False
    _ended: bool = False

    def __post_init__(self) -> None:
        self.room_id = self.record.id
        self.name = self.record.name
        self.durable = self.record.durable
        self.used_at = self.traffic.now()
        self.visits = RemoteVisits(self, self.traffic.now, self.visit_seconds)
        self._next = count(1)
        self._status = RoomStatus(
            self.epoch, 0, self.record.first_seq, self.record.first_seq, self.record.last_seq
        )
        self._driven = self.traffic.add_edge(
            self.record.id, self._perform, durable=self.record.durable
        )
        self._edge = self._driven.machine

    @property
    def status(self) -> RoomStatus:
        """How far the room is, as far as is known here."""
        return self._status

    @property
    def outlets(self) -> Mapping[Outlet, Visitor]:
        """The connections of this process, and who is on each."""
        return self._outlets

    @property
    def is_reachable(self) -> bool:
        """Whether the owner was heard of lately."""
        return self._edge.is_reachable

    @property
    def is_idle(self) -> bool:
        """Whether nobody here uses the room."""
        return not self._outlets and not self._calls and self._edge.is_idle

    def found(self, place: Place | None) -> None:
        """Who owns the room, by the database."""
        self._driven.run(self._edge.owner_is(place, self.traffic.now()))

    def end(self, code: CloseCode) -> None:
        """Leave the room; whoever is connected or waits is told."""
        self._ended = True
        for outlet in list(self._outlets):
            self._forget(outlet)
            outlet.close(code)
        for waiting in self._calls.values():
            if not waiting.done():
                waiting.set_result(None)
        self.traffic.remove_edge(self._driven)

    def join(
        self,
        outlet: Outlet,
        visitor: Visitor,
        role: Role,
        *,
        conn: str | None = None,
        after: int | None = None,
        epoch: str | None = None,
        serve: bool = False,
        linger: bool = False,
        credential: str | None = None,
    ) -> None:
        """Let someone in on a connection; the close of the outlet says why not."""
        if not self.traffic.is_connected:
            outlet.close(CloseCode.RESTARTING)
            return
        number = next(self._next)
        self._outlets[outlet] = visitor
        self._numbers[outlet] = number
        self._by_number[number] = outlet
        body = JoinBody(visitor, role, conn, epoch, serve, credential, linger)
        self._edge.join(number, msgspec.msgpack.encode(body), after)
        self._driven.touch()

    def receive(self, outlet: Outlet, *messages: bytes | McpxMessage) -> None:
        """Messages came on a connection."""
        number = self._numbers.get(outlet)
        if number is None:
            return
        raw = [one.raw if isinstance(one, McpxMessage) else one for one in messages]
        self._driven.run(self._edge.send(number, raw))
        if self._edge.is_full and outlet not in self._held:
            self._held.add(outlet)
            outlet.hold()

    def refuse(self, outlet: Outlet, message: bytes | McpxMessage, error: e.FolkmootError) -> None:
        """Something before the room refused a message."""
        number = self._numbers.get(outlet)
        if number is not None:
            raw = message.raw if isinstance(message, McpxMessage) else message
            self._driven.run(self._edge.ask(next(self._next), encode_refusal(number, raw, error)))

    def left(self, outlet: Outlet) -> None:
        """A connection ended; what it said before still counts."""
        number = self._numbers.get(outlet)
        if number is not None:
            self._driven.run(self._edge.leave(number))
            self._forget(outlet)

    def _forget(self, outlet: Outlet) -> None:
        self._outlets.pop(outlet, None)
        self._held.discard(outlet)
        self.crowd.remove(outlet)
        number = self._numbers.pop(outlet, None)
        if number is not None:
            del self._by_number[number]

    def _perform(self, effect: EdgeEffect) -> None:
        if type(effect) is Overheard:
            self.crowd.broadcast(effect.messages)
            self._advanced(self._edge.delivered)
        elif type(effect) is FillGap:
            self.spawn(self._fill(effect))
        elif type(effect) is SeekOwner:
            if not self._seeking:
                self._seeking = True
                self.spawn(self._seek())
        elif type(effect) is CallAnswered:
            waiting = self._calls.pop(effect.call, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(effect.body)
        elif isinstance(effect, OnConnection):
            outlet = self._by_number.get(effect.connection)
            if outlet is not None:
                self._perform_on(outlet, effect)
        if self._held and not self._edge.is_full:
            held, self._held = self._held, set()
            for one in held:
                one.release()

    def _perform_on(self, outlet: Outlet, effect: OnConnection) -> None:
        if type(effect) is ToConnection:
            outlet.tell(effect.data)
        elif type(effect) is Hearing:
            (self.crowd.add if effect.hears else self.crowd.remove)(outlet)
        elif type(effect) is HoldConnection:
            (outlet.hold if effect.held else outlet.release)()
        elif type(effect) is DrainConnection:
            self.spawn(self._drain(outlet, effect.connection))
        elif type(effect) is ShutConnection:
            self._forget(outlet)
            outlet.close(effect.code)

    async def _drain(self, outlet: Outlet, connection: int) -> None:
        await outlet.drained()
        self._edge.drained(connection)
        self._driven.touch()

    async def _seek(self) -> None:
        place = None
        try:
            place = await self.find(self.record)
        except e.RoomNotFound as gone:
            self.leave(self.room_id, gone)
        except e.FolkmootError:
            # It is looked for again in a moment.
            pass
        finally:
            self._seeking = False
            self.found(place)

    async def _fill(self, gap: FillGap) -> None:
        found: list[bytes] = []
        try:
            history = StoredHistory(self.store, self.room_id, END_OF_ROOM)
            found = await history.after(gap.first_seq - 1, gap.through, MAX_READ, whole=True)
            if not found and await self._is_trimmed(gap):
                self._driven.run(self._edge.gone(gap, self.traffic.now()))
                return
        except Exception as error:
            # Whatever it is, those who hear wait for it: it is read again in a moment.
            if not isinstance(error, e.FolkmootError):
                logger.exception("what was said elsewhere could not be read")
        self._driven.run(self._edge.filled(gap, found, self.traffic.now()))

    async def _is_trimmed(self, gap: FillGap) -> bool:
        record = await self._record()
        return gap.first_seq < record.first_seq and gap.through <= record.last_seq

    async def _record(self) -> RoomRecord:
        async def query(tx: Tx) -> RoomRecord | None:
            return await queries.room_by_id(tx, self.room_id)

        record = await self.store.read(query)
        if record is None:
            raise e.RoomNotFound("There is no such room.")
        return record

    async def call(self, name: str, *arguments: Any) -> Any:
        """Ask the owner something, which answers soon or is unreachable."""
        self.used_at = self.traffic.now()
        if self._ended:
            raise e.RoomUnreachable(
                "This node has no connection to the room. Try again in a moment."
            )
        if not self.traffic.is_connected:
            raise e.RoomUnreachable("This node does not reach that of the room. Try again later.")
        if self._edge.is_full:
            raise e.RoomUnreachable(
                "The node of the room has too much to do. Try again in a moment."
            )
        number = next(self._next)
        answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._calls[number] = answer
        self._driven.run(self._edge.ask(number, encode_call(name, *arguments)))
        try:
            body = await answer
        finally:
            self._calls.pop(number, None)
        if body is None:
            raise e.RoomUnreachable(
                "The node of the room does not answer; what you asked for may have been done."
            )
        return read_answer(name, body)

    def cast(self, name: str, *arguments: Any) -> None:
        """Tell the owner something; nobody waits for the answer."""
        if not self._edge.is_full:
            self._driven.run(self._edge.ask(next(self._next), encode_call(name, *arguments)))

    async def prepare(self, account: str) -> None:
        """The owner reads what it must know when someone comes, so nothing is read here."""

    async def post(
        self, principal: Principal, role: Role, message: bytes | McpxMessage
    ) -> list[Effect]:
        """A message from someone who need not be connected; a refusal is raised."""
        raw = message.raw if isinstance(message, McpxMessage) else message
        effects: list[Effect] = (await self.call("post", principal, role, raw)).effects
        return effects

    async def list_tools(
        self, principal: Principal, role: Role, to: str, cursor: str | None, seconds: float
    ) -> dict[str, Any] | None:
        """The answer of a participant that is asked for its tools; None where none came."""
        found: dict[str, Any] | None
        found = await self.call("tools", principal, role, to, cursor, seconds)
        return found

    async def flushed(self) -> None:
        """Wait until all that came before is carried out."""
        await self.call("flushed")

    async def refresh(self) -> RoomStatus:
        """How far the room is now."""
        if self.durable:
            record = await self._record()
            oldest = record.oldest_seq or record.first_seq
            self._status = RoomStatus(
                self.epoch, self._status.participants, record.first_seq, oldest, record.last_seq
            )
        else:
            await self.ask_status()
        return self._status

    async def ask_status(self) -> RoomStatus:
        """How far the room is, and how many are in it, by its owner."""
        self._status = await self.call("status")
        return self._status

    def _advanced(self, seq: int) -> None:
        if seq > self._status.last_seq:
            self._status = self._status._replace(last_seq=seq)
        self.notify()

    def notify(self) -> None:
        """Something was said in the room."""
        self._news.set()
        self._news = asyncio.Event()

    async def wait(self, after: int, seconds: float) -> None:
        """Wait until there is something after a `seq`, for so long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    news = self._news
                    if (await self.refresh()).last_seq > after:
                        return
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_SECONDS):
                            await news.wait()

    async def read(
        self, after: int | None, before: int | None, limit: int, *, fold: bool = False
    ) -> MessagePage:
        """The first messages after a `seq`, or the last ones before one."""
        if not self.durable:
            page: MessagePage = (await self.call("read", after, before, limit, fold)).page
            return page
        status = await self.refresh()
        history = StoredHistory(self.store, self.room_id, END_OF_ROOM)
        return await (folded_page if fold else page_of)(history, status, after, before, limit)

    async def message(self, seq: int) -> bytes | None:
        """The message with a `seq`, as long as the history has it."""
        if not self.durable:
            found: bytes | None = await self.call("message", seq)
            return found
        kept = seq >= (await self.refresh()).oldest_seq
        history = StoredHistory(self.store, self.room_id, END_OF_ROOM)
        page = await history.after(seq - 1, seq, 1) if kept else []
        return page[0] if page else None

    async def participants(self) -> list[dict[str, Any]]:
        """Everyone who is here, as others are told of them, and whether they offer tools now."""
        here: list[dict[str, Any]] = await self.call("participants")
        return here

    async def rights(self) -> tuple[dict[str, list[Any]], list[Grant]]:
        """What each role holds, and the grants that hold."""
        held: tuple[dict[str, list[Any]], list[Grant]] = await self.call("rights")
        return held

    async def proposals(self) -> list[Proposal]:
        """The open proposals and the latest closed ones, the latest first."""
        found: list[Proposal] = await self.call("proposals")
        return found

    async def waiting(self, principal: Principal, role: Role) -> WaitingItems:
        found: WaitingItems = (await self.call("waiting", principal, role)).items
        return found

    async def request(self, id_: str) -> OpenRequest | None:
        """The open request with this id."""
        found: OpenRequest | None = await self.call("request", id_)
        return found

    async def apply_guest_grants(self, principal: Principal, guest: Guest) -> None:
        """A guest comes for the first time: let it hold what its inviter promised."""
        await self.call("apply_guest_grants", principal, guest)

    def set_backends(self) -> None:
        """The owner knows what backends the hub has."""

    def unban(self, account: str) -> None:
        """Someone who was put out has been invited again."""
        self.cast("unban", account)

    def rename(self, principal: Principal) -> None:
        """The owner hears of new names itself."""

    def remove(self, account: str, code: CloseCode) -> None:
        """Put someone out who may be here: on this node at once, whether the owner hears or not."""
        for outlet, visitor in list(self._outlets.items()):
            if visitor.principal.account_id == account:
                self.left(outlet)
                outlet.close(code)
        self.cast("remove", account, int(code))

    async def change(self, visitor: Visitor, patch: RoomPatch) -> None:
        """Change the room's settings."""
        await self.call("change", visitor, patch)
