"""The rooms that are live: each loaded once, when it is first needed, and let go when idle."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.ports import RoomOwners, Store, Tx
from folkmoot.core.uuids import Uuids
from folkmoot.quotas import Quotas
from folkmoot.rooms import queries, queries_members, queries_messages
from folkmoot.rooms.budget import MemoryBudget, RoomBudget, Share
from folkmoot.rooms.fence import Fence, take
from folkmoot.rooms.history import History, MemoryHistory, StoredHistory
from folkmoot.rooms.index import RoomIndex, read_waiting
from folkmoot.rooms.journal import MemoryJournal, StoredJournal
from folkmoot.rooms.limits import RELEASE_SECONDS
from folkmoot.rooms.live import LiveRoom, RoomServices
from folkmoot.rooms.machine import AccountStanding, Facts, HubCheck, HubDenies, Lookup, Room
from folkmoot.rooms.model import RoomId, RoomRecord, Visitor
from folkmoot.rooms.nodes import RoomNodes
from folkmoot.rooms.options import RoomOptions, settings_of
from folkmoot.rooms.ports import Crowd, RoomPort, RoomStatus
from folkmoot.rooms.queries_visits import StoredVisit

logger = logging.getLogger("folkmoot.rooms")

new_id: Final = Uuids(time.time, secrets.token_bytes)
DRAINING: Final = "This node is draining; connect again to reach another."
STOPPING: Final = "The hub is stopping; try again in a moment."


class LiveRooms(Entity):
    """Every room that is in use, by its id."""

    store: Store
    options: RoomOptions
    services: RoomServices
    crowd: Callable[[], Crowd]
    epoch: str
    quotas: Quotas
    owners: RoomOwners | None = None
    nodes: RoomNodes | None = None
    _live: dict[RoomId, LiveRoom] = {}
    _loading: dict[RoomId, asyncio.Future[LiveRoom]] = {}
    _stood: dict[str, AccountStanding] = {}
    """What became of accounts while rooms were being loaded."""
    _giving_back: set[tuple[RoomId, int]] = set()
    _stopping: bool = False

    def __post_init__(self) -> None:
        self.budget = RoomBudget(self.store, self.quotas)
        """What accounts have stored in rooms."""
        self.visits = self.services.visits
        """Where visits are stored, if there are several nodes."""
        self.memory = MemoryBudget(
            room=self.options.memory_room_bytes,
            account=self.options.memory_account_bytes,
            total=self.options.memory_bytes,
        )
        """What the rooms that are in memory alone take."""
        policy = self.services.policy
        self._hub_check: HubCheck | None = None if policy is None else policy.message_check
        self._hub_denies: HubDenies | None = None if policy is None else policy.denied_in

    def stop(self) -> None:
        """From now on no room is used; whoever is disconnected has not left."""
        self._stopping = True
        if self.nodes is not None:
            self.nodes.stop_taking()
        for live in self._live.values():
            live.stop()

    def __iter__(self) -> Iterator[LiveRoom]:
        return iter(list(self._live.values()))

    def __len__(self) -> int:
        return len(self._live)

    def get(self, room_id: RoomId) -> LiveRoom | None:
        """The room, if it is live."""
        return self._live.get(room_id)

    @property
    def process(self) -> str:
        """What this process is called where others may own rooms; else nothing."""
        return "" if self.nodes is None or self.owners is None else self.owners.process

    def is_loading(self, room_id: RoomId) -> bool:
        """Whether a room is being loaded here."""
        return room_id in self._loading

    @property
    def has_loading(self) -> bool:
        """Whether any room is being loaded."""
        return bool(self._loading)

    def in_use(self) -> list[RoomPort]:
        """Every room that someone uses here, wherever it lives."""
        elsewhere = () if self.nodes is None else self.nodes.rooms
        return [*self._live.values(), *elsewhere]

    async def reach(self, room_id: RoomId) -> RoomPort | None:
        """A room that may be in use, here or on another node; None if it is not."""
        live = self._live.get(room_id)
        if live is not None or self.nodes is None:
            return live
        record, _ = await self.store.read(lambda tx: _record(tx, room_id))
        return await self.nodes.reach(record)

    async def statuses(self, room_ids: Sequence[RoomId]) -> dict[RoomId, RoomStatus]:
        """How far each of these rooms is that is in use, here or on another node."""
        here = {one: self._live[one].status for one in room_ids if one in self._live}
        if self.nodes is None:
            return here
        return here | await self.nodes.statuses([one for one in room_ids if one not in here])

    def stand(self, account: str, standing: AccountStanding) -> None:
        """An account was suspended, restored or deleted; rooms that are loaded later read it."""
        for live in self._live.values():
            live.stand(account, standing)
        if self._loading:
            self._stood[account] = standing

    def leave(self, room_id: RoomId, error: e.FolkmootError) -> None:
        """Put everyone here out of a room that is gone, also if another node had it."""
        self.end(room_id, error)
        if self.nodes is not None:
            self.nodes.leave(room_id, error)

    def end_idle(self) -> None:
        """Leave the rooms of other nodes that nobody here has used for a while."""
        if self.nodes is not None:
            self.nodes.end_idle()

    async def open(self, record: RoomRecord) -> RoomPort:
        """The room of a record, wherever it lives."""
        if self.nodes is None or record.id in self._live:
            return await self.load(record)
        return await self.nodes.open(record)

    async def load(self, record: RoomRecord) -> LiveRoom:
        """The live room of a record; concurrent callers get the same one."""
        self._require_running()
        live = self._live.get(record.id)
        if live is None:
            live = await self._load_once(record)
        self._require_running()
        live.used_at = self.services.clock.monotonic()
        return live

    def _require_running(self) -> None:
        if self._stopping:
            raise e.HubStopping(STOPPING)
        if self.nodes is not None and self.nodes.is_draining:
            raise e.NodeDraining(DRAINING)

    async def _load_once(self, record: RoomRecord) -> LiveRoom:
        loading = self._loading.get(record.id)
        if loading is None:
            loading = self._loading[record.id] = asyncio.get_running_loop().create_future()
            # A caller who gives up ends no load: its take-over could be stored after the next one.
            task = self.services.spawn(self._load(record, loading))
            if task is None:
                self._not_loaded(record.id, loading, e.HubStopping(STOPPING))
            else:
                task.add_done_callback(partial(self._ended, record.id, loading))
        return await asyncio.shield(loading)

    async def _load(self, record: RoomRecord, loading: asyncio.Future[LiveRoom]) -> None:
        try:
            visits, live, stood = await self._take(record)
        except Exception as error:  # noqa: BLE001 - raised again by those who wait
            self._not_loaded(record.id, loading, error)
            return
        del self._loading[record.id]
        self._live[record.id] = live
        loading.set_result(live)
        if not self._stopping:
            # What changed while it was loaded comes last.
            for account, standing in {**stood, **self._stood}.items():
                live.stand(account, standing)
            if not self._loading:
                self._stood.clear()
            live.set_backends(anew=True)
            live.visits.restore([one for one in visits if self._may_join(one.visitor, live.name)])

    def _may_join(self, visitor: Visitor, name: str) -> bool:
        policy = self.services.policy
        try:
            if policy is not None:
                policy.check(visitor.principal, "room/join", {"room": name}, attempted=False)
        except e.PolicyError:
            return False
        return True

    def _ended(self, room_id: RoomId, loading: asyncio.Future[LiveRoom], _task: object) -> None:
        if not loading.done():
            self._not_loaded(room_id, loading, e.HubStopping(STOPPING))

    def _not_loaded(
        self, room_id: RoomId, loading: asyncio.Future[LiveRoom], error: Exception
    ) -> None:
        del self._loading[room_id]
        if not self._loading:
            self._stood.clear()
        loading.set_exception(error)
        # All who waited may have given up.
        loading.exception()

    async def _take(
        self, record: RoomRecord
    ) -> tuple[Sequence[StoredVisit], LiveRoom, Mapping[str, AccountStanding]]:
        if self.nodes is not None and self.nodes.is_alone:
            raise e.RoomUnavailable("This node does not reach the others. Try again in a moment.")
        # What is read afterwards stays so: whoever had the room can store nothing more of it.
        fence = await take(self.owners, record.id)
        try:
            visits = () if self.visits is None else await self.visits.of_room(record.id)
            load = self._stored if record.durable else self._fresh
            return visits, *await load(record.id, fence)
        except BaseException:
            if fence is not None:
                self.give_back(record.id, fence.epoch)
            raise

    async def _fresh(
        self, room_id: RoomId, fence: Fence | None
    ) -> tuple[LiveRoom, Mapping[str, AccountStanding]]:
        record, backends = await self.store.read(lambda tx: _record(tx, room_id))
        settings = settings_of(record, self.options, new_id())
        machine = Room(settings, new_id, hub_check=self._hub_check, hub_denies=self._hub_denies)
        history = MemoryHistory(
            self.options.kept_messages(record),
            machine.trim,
            owner=record.created_by,
            budget=self.memory,
        )
        live = self._live_room(record, backends, machine, history)
        live.journal = MemoryJournal(
            self.store,
            record.id,
            carry_out=live.carry_out,
            fail=live.fail,
            spawn=self.services.spawn,
            fence=fence,
        )
        return live, {}

    async def _stored(
        self, room_id: RoomId, fence: Fence | None
    ) -> tuple[LiveRoom, Mapping[str, AccountStanding]]:
        options, now = self.options, self.services.clock.now()
        stood: dict[str, AccountStanding] = {}

        async def query(
            tx: Tx,
        ) -> tuple[RoomRecord, tuple[str, ...], Room, int, Share, dict[str, str]]:
            record, backends = await _record(tx, room_id)
            snapshot = await queries.snapshot_of(tx, room_id)
            machine = Room.rebuild(
                settings_of(record, options, f"{record.epoch}.{self.epoch}"),
                new_id,
                await queries_messages.replayed_since(tx, room_id, snapshot.seq),
                now,
                snapshot=snapshot.data,
                last_seq=record.last_seq,
                first_seq=record.first_seq,
                oldest_seq=record.oldest_seq,
                hub_check=self._hub_check,
                hub_denies=self._hub_denies,
                admit=self.budget.check,
            )
            stood.clear()
            stood.update(await queries_members.fallen(tx, machine.answerable()))
            machine.halt(one for one, standing in stood.items() if standing == "suspended")
            stored = await queries_messages.total_of_room(tx, room_id)
            waiting = await read_waiting(tx, room_id)
            return record, backends, machine, snapshot.seq, stored, waiting

        record, backends, machine, snapshot_seq, stored, waiting = await self.store.read(
            query, long=True
        )
        history = StoredHistory(self.store, room_id, machine.seq)
        live = self._live_room(record, backends, machine, history)
        live.journal = StoredJournal(
            self.store,
            room_id,
            machine,
            snapshot_seq=snapshot_seq,
            share=stored,
            index=RoomIndex(room_id, machine, waiting),
            budget=self.budget,
            carry_out=live.carry_out,
            fail=live.fail,
            spawn=self.services.spawn,
            fence=fence,
        )
        return live, stood

    def _live_room(
        self, record: RoomRecord, backends: Iterable[str], machine: Room, history: History
    ) -> LiveRoom:
        live = LiveRoom(
            record.id,
            machine,
            self.crowd() if self.nodes is None else self.nodes.crowd(),
            history,
            self.services,
            durable=record.durable,
            look_up=partial(self._look_up, record.id),
            budget=self.budget if record.durable else None,
            keep_messages=self.options.kept_messages(record),
        )
        live.serving.namespaces = frozenset(backends)
        return live

    async def _look_up(self, room_id: RoomId, asked: Lookup) -> Facts:
        """What a machine must know of the store before it takes some messages: index reads."""

        async def query(tx: Tx) -> Facts:
            return Facts(
                await queries_messages.used(tx, room_id, asked.ids),
                {name: await queries_members.known_as(tx, room_id, name) for name in asked.names},
            )

        return await self.store.read(query)

    def end(self, room_id: RoomId, error: e.FolkmootError) -> None:
        """Put everyone out of a room, if it is live, and let it go."""
        live = self._live.pop(room_id, None)
        if live is not None:
            live.end(error)
            if self.nodes is not None:
                self.nodes.ended(live)

    async def end_loaded(self, room_id: RoomId, error: e.FolkmootError) -> None:
        """The same once the room's record is gone, also where it was being loaded until then."""
        loading = self._loading.get(room_id)
        if loading is not None:
            await asyncio.wait((loading,))
        self.end(room_id, error)

    async def release(self, live: LiveRoom) -> None:
        """Leave a room that has ended here to whoever takes it first."""
        fence = live.journal.fence
        if self.owners is not None and fence is not None:
            await self.owners.release(live.room_id, fence.epoch)

    def give_back(self, room_id: RoomId, epoch: int) -> None:
        """Leave a room to others that is ours but not live; one that is taken again stays."""
        key = room_id, epoch
        if self.owners is None or key in self._giving_back:
            return
        if self.services.spawn(self._give_back(self.owners, key)) is not None:
            self._giving_back.add(key)

    async def _give_back(self, owners: RoomOwners, key: tuple[RoomId, int]) -> None:
        try:
            await owners.release(*key)
        except e.FolkmootError as error:
            # Whoever asks for it next has it given back again.
            logger.warning("a room was not given back", extra={"error": error.code})
        finally:
            self._giving_back.discard(key)

    async def release_all(self) -> None:
        """Leave all rooms to whoever takes them first, before the hub has quite stopped."""
        if self.owners is not None:
            try:
                async with asyncio.timeout(RELEASE_SECONDS):
                    await self.owners.release_all()
            except (e.FolkmootError, TimeoutError) as error:
                # They are free when the lease ends.
                logger.warning("rooms were not handed over", extra={"error": str(error)})

    def dropped(self, live: LiveRoom) -> None:
        """Forget a failed room; the next caller loads it from the store."""
        if self._live.get(live.room_id) is live:
            del self._live[live.room_id]
        if self.nodes is not None:
            self.nodes.dropped(live)
        if live.owner_epoch:
            self.give_back(live.room_id, live.owner_epoch)


async def _record(tx: Tx, room_id: RoomId) -> tuple[RoomRecord, tuple[str, ...]]:
    """A room, and the backends it has."""
    record = await queries.room_by_id(tx, room_id)
    if record is None:
        raise e.RoomNotFound("There is no such room.")
    return record, await queries.backends_of_room(tx, room_id)
