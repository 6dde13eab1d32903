"""Rooms of many nodes: those that others own, as they are used here, and ours, as others use them.

A room is sought in the database when nothing is known of it, or its owner is silent: then whoever
needs it loads it, or finds out who has. A node that alone does not reach the bus leaves its rooms
to the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from folkmoot.cluster import Owner, Place
from folkmoot.cluster.node import Driven, NodeTraffic
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.entity import Entity
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.ports import NodeBus, RoomOwners, Store
from folkmoot.rooms.fence import RoomElsewhere
from folkmoot.rooms.journal import Spawn
from folkmoot.rooms.limits import (
    ALONE_LOOKS,
    DRAINED_AT_ONCE,
    HAND_OVER_SECONDS,
    LOOK_SECONDS,
    MAX_STATUSES,
    NOTICE_SECONDS,
    REMOTE_IDLE_SECONDS,
    STATUS_SECONDS,
)
from folkmoot.rooms.model import RoomId, RoomRecord
from folkmoot.rooms.options import RoomOptions
from folkmoot.rooms.ports import Crowd, RoomPort, RoomStatus
from folkmoot.rooms.remote import RemoteRoom
from folkmoot.rooms.remote_calls import ChangeRoom
from folkmoot.rooms.server import NodeCrowd, RoomServer

if TYPE_CHECKING:
    from folkmoot.rooms.live import LiveRoom
    from folkmoot.rooms.loading import LiveRooms

logger = logging.getLogger("folkmoot.rooms")

_read_ids: Final = msgspec.msgpack.Decoder(Annotated[list[RoomId], Meta(max_length=MAX_STATUSES)])
_read_statuses: Final = msgspec.msgpack.Decoder(dict[RoomId, RoomStatus])


class RoomNodes(Entity):
    """The rooms of this hub that are elsewhere, and those that others reach here."""

    bus: NodeBus
    owners: RoomOwners
    store: Store
    options: RoomOptions
    new_crowd: Callable[[], Crowd]
    epoch: str
    spawn: Spawn
    _remote: dict[RoomId, RemoteRoom] = {}
    _servers: dict[RoomId, RoomServer] = {}
    _stopping: bool = False
    is_draining: bool = False
    """Whether no room is taken any more, since the node is about to be stopped."""
    is_alone: bool = False
    """Whether this node does not reach the bus, and others do: it takes no room then."""
    _cut_at: float | None = None
    """Since when it does not reach the bus."""
    _looks: int = 0
    """How often in a row that it is alone, or is not, was found to be wrong."""
    _released: set[RoomId] = set()
    """The rooms that were left to others since the hub stops."""

    def __post_init__(self) -> None:
        self.live: LiveRooms
        self.change: ChangeRoom
        """Changes the settings of a room that is here."""
        self.traffic = NodeTraffic(
            self.bus,
            self._serve,
            lambda room: self.live.is_loading(room),
            lambda room, epoch: self.live.give_back(room, epoch),
            self._own_statuses,
        )

    @property
    def rooms(self) -> list[RemoteRoom]:
        """The rooms elsewhere that are used here."""
        return list(self._remote.values())

    def leave(self, room_id: RoomId, error: e.FolkmootError) -> None:
        """Put everyone here out of a room elsewhere."""
        remote = self._remote.pop(room_id, None)
        if remote is not None:
            remote.end(error.close)

    def crowd(self) -> NodeCrowd:
        """Those who hear one room."""
        return NodeCrowd(self.new_crowd())

    async def open(self, record: RoomRecord) -> RoomPort:
        """A room, wherever it is: loaded here if nobody else has it."""
        remote = self._remote.get(record.id)
        if remote is not None and remote.is_reachable:
            remote.used_at = self.traffic.now()
            return remote
        if self.is_alone:
            return self._remote_room(record)
        place = await self._find(record)
        if place.node == self.traffic.node:
            return await self.live.load(record)
        remote = self._remote_room(record)
        remote.found(place)
        return remote

    async def reach(self, record: RoomRecord) -> RoomPort | None:
        """A room that is in use, here or on another node; none is loaded for this."""
        remote = self._remote.get(record.id)
        if remote is None or not remote.is_reachable:
            owner = (await self.owners.owners_of([record.id])).get(record.id)
            if owner is None or owner.process == self.traffic.node:
                if self.live.is_loading(record.id):
                    # What was read of it may be older than what it is to be told.
                    with suppress(e.FolkmootError):
                        return await self.live.load(record)
                # It may have come here meanwhile, or lost its owner and have people here.
                remote = self._remote.get(record.id)
                return self.live.get(record.id) or (
                    remote if remote and not remote.is_idle else None
                )
            remote = self._remote_room(record)
            remote.found(Place(owner.process, owner.epoch))
        remote.used_at = self.traffic.now()
        return remote

    async def statuses(self, room_ids: Sequence[RoomId]) -> dict[RoomId, RoomStatus]:
        """How far rooms are that other nodes have, as far as those answer soon."""
        found: dict[RoomId, RoomStatus] = {}

        async def ask(node: str, its: list[RoomId]) -> None:
            answer = await self.traffic.ask(node, msgspec.msgpack.encode(its))
            with suppress(msgspec.DecodeError):
                found.update(_read_statuses.decode(answer))

        if not self.traffic.is_connected:
            return found
        with suppress(e.FolkmootError, TimeoutError):
            by_node: dict[str, list[RoomId]] = {}
            for room_id, owner in (await self.owners.owners_of(room_ids)).items():
                by_node.setdefault(owner.process, []).append(room_id)
            by_node.pop(self.traffic.node, None)
            async with asyncio.timeout(STATUS_SECONDS), asyncio.TaskGroup() as asking:
                for node, its in by_node.items():
                    asking.create_task(ask(node, its))
        return found

    def _own_statuses(self, body: bytes) -> bytes:
        """Answer another node how far those of some rooms are that this one has."""
        asked: list[RoomId] = []
        with suppress(msgspec.DecodeError):
            asked = _read_ids.decode(body)
        here = ((room_id, self.live.get(room_id)) for room_id in asked)
        return msgspec.msgpack.encode({id_: live.status for id_, live in here if live is not None})

    def _remote_room(self, record: RoomRecord) -> RemoteRoom:
        remote = self._remote.get(record.id)
        if remote is None:
            remote = self._remote[record.id] = self._new_remote_room(record)
        remote.used_at = self.traffic.now()
        return remote

    def _new_remote_room(self, record: RoomRecord) -> RemoteRoom:
        return RemoteRoom(
            record,
            f"{record.epoch}.{self.epoch}" if record.durable else "",
            self.store,
            self.traffic,
            self.new_crowd(),
            self.spawn,
            self._find,
            self.leave,
            self._decode,
            self.options.tool_presence_seconds,
        )

    def _decode(self, raw: bytes) -> McpxMessage:
        options = self.options
        return decode_mcpx(raw, options.limits, options.accept_old_spellings)

    async def _find(self, record: RoomRecord) -> Place:
        """Who owns a room; this node, which then has loaded it, if nobody else does."""
        try:
            live = await self.live.load(record)
        except RoomElsewhere as elsewhere:
            return Place(elsewhere.owner.process, elsewhere.owner.epoch)
        return Place(self.traffic.node, live.owner_epoch)

    def end_idle(self) -> None:
        """Leave the rooms elsewhere that nobody has used for a while."""
        oldest = self.traffic.now() - REMOTE_IDLE_SECONDS
        for room_id, remote in list(self._remote.items()):
            if remote.is_idle and remote.used_at < oldest:
                del self._remote[room_id]
                remote.end(CloseCode.RESTARTING)

    def _serve(self, room_id: int, epoch: int) -> Driven[Owner] | None:
        live = self.live.get(room_id)
        if live is None or live.owner_epoch != epoch or not isinstance(live.crowd, NodeCrowd):
            return None
        server = RoomServer(live, live.crowd, epoch, self.change)
        self._servers[room_id] = server
        if self._stopping or live.is_stopping:
            server.owner.stop_taking()
        if room_id in self._released:
            server.owner.hand_over()
        return server.start(self.traffic, self.spawn)

    def ended(self, live: LiveRoom) -> None:
        """Everyone was put out of a room: those elsewhere are told before it is dropped."""
        server = self._servers.get(live.room_id)
        if server is not None and server.live is live:
            server.driven.run(server.owner.poll(self.traffic.now()))
        self.dropped(live)

    def dropped(self, live: LiveRoom) -> None:
        """A room is here no more: whoever asks is told so, and looks for it anew."""
        server = self._servers.get(live.room_id)
        if server is not None and server.live is live:
            del self._servers[live.room_id]
            server.end()
            self.traffic.remove_owner(live.room_id, live.owner_epoch)

    async def watch(self) -> None:
        """Leave our rooms to others when this node lost the database or, alone, the bus.

        A node that lost the bus with all others may not know yet that they did. Whoever came
        back to it first does not make the rest leave their rooms, which come back in a moment.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except Exception:
                logger.exception("rooms were not left to others")

    async def _look(self) -> None:
        await self._let_go()
        now = self.traffic.now()
        if self.traffic.is_connected:
            self._cut_at, self._looks, self.is_alone = None, 0, False
            return
        if self._cut_at is None:
            self._cut_at = now
        reached = False
        with suppress(e.FolkmootError):
            reached = await self.owners.is_bus_reached(now - self._cut_at - NOTICE_SECONDS)
        self._looks = 0 if reached is self.is_alone else self._looks + 1
        if self._looks >= ALONE_LOOKS and not self.traffic.is_connected:
            self.is_alone, self._looks = reached, 0
            if reached:
                logger.warning("this node does not reach the bus; others go on with its rooms")
            else:
                logger.warning("no other node reaches the bus either; this one takes rooms again")
        if self.is_alone:
            # Also those that were being loaded before.
            await asyncio.gather(*(self._leave_to_others(live) for live in self.live))

    async def _let_go(self) -> None:
        """End the rooms here that another node has, or can have, since the lease lapsed.

        Nobody else would tell those who hear them here. One in memory would be lost, so it stays.
        """
        unsure = [live for live in self.live if live.durable and not live.is_ours]
        if self.owners.is_cut_off:
            for live in unsure:
                live.fail(
                    e.RoomTakenOver("The room goes on at another node. Reconnect and resume.")
                )
        else:
            await asyncio.gather(*(live.make_sure() for live in unsure))

    async def _leave_to_others(self, live: LiveRoom) -> None:
        """Let a room go, once what was said is stored; one in memory would be lost, so it stays."""
        if live.durable:
            live.stop()
            with suppress(e.FolkmootError, TimeoutError):
                async with asyncio.timeout(HAND_OVER_SECONDS):
                    await live.flushed()
            live.end(e.RoomTakenOver("The room goes on at another node. Reconnect and resume."))
            self.live.dropped(live)

    async def drain(self) -> None:
        """Give our rooms away and take none any more; whoever is connected here is closed."""
        self.is_draining = True
        while len(self.live) or self.live.has_loading:
            some = list(self.live)[:DRAINED_AT_ONCE]
            await asyncio.gather(*(self._drain(live) for live in some))
            await asyncio.sleep(0.01)
        self._leave_remote_rooms()

    async def _drain(self, live: LiveRoom) -> None:
        live.stop()
        server = self._servers.get(live.room_id)
        if server is not None:
            server.owner.stop_taking()
        with suppress(e.FolkmootError, TimeoutError):
            async with asyncio.timeout(HAND_OVER_SECONDS):
                await live.flushed()
        await self._hand_over(live)
        live.end(e.NodeDraining("This node is draining. Connect again."))
        self.live.dropped(live)

    def stop_taking(self) -> None:
        """The hub is about to stop: what other nodes send now is for the next owners."""
        self._stopping = True
        for server in self._servers.values():
            server.owner.stop_taking()

    async def hand_over(self) -> None:
        """The hub stops: give our rooms away, and leave those that are elsewhere."""
        rooms = (self._hand_over(live) for live in self.live)
        for error in await asyncio.gather(*rooms, return_exceptions=True):
            if error is not None:
                logger.error("a room was not handed over", exc_info=error)
        self._leave_remote_rooms()

    def _leave_remote_rooms(self) -> None:
        for remote in self._remote.values():
            remote.end(CloseCode.RESTARTING)
        self._remote.clear()

    async def _hand_over(self, live: LiveRoom) -> None:
        server = self._servers.get(live.room_id)
        with suppress(e.FolkmootError, TimeoutError):
            async with asyncio.timeout(HAND_OVER_SECONDS):
                if server is not None:
                    await server.finish()
                await self.live.release(live)
                self._released.add(live.room_id)
                server = self._servers.get(live.room_id)
                if server is not None:
                    server.owner.hand_over()
                    server.touch()
                    while not server.owner.is_received:  # noqa: ASYNC110 - nobody sets an event
                        await asyncio.sleep(0.01)
