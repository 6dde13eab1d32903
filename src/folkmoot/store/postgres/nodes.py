"""The nodes of a database: a lease for each by the server's clock, and the rooms each owns.

A *node* says in a row that it uses the database, for some seconds, and renews it in time. One that
could not stores nothing before it has its lease again. Unless nodes reach each other over a bus,
only one may have a lease. A room is owned by the process that took it, as long as that has a lease.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.cluster.lease import Lease, boot_time
from folkmoot.core import errors as e
from folkmoot.core.ports import ListedNode, RoomOwner, Tx, Unit
from folkmoot.settings.comparison import differing_settings
from folkmoot.store.postgres.dialect import limit_idle

LOG = logging.getLogger(__name__)

LEASE_SECONDS: Final = 15.0
"""How long a node that was killed is thought to use the database."""
RENEWALS: Final = 5
"""How often a lease is renewed in the time that it holds."""
LOCK_LEASES: Final = (
    f"SELECT pg_advisory_xact_lock({0x6C656173}, hashtext(coalesce(current_schema(), '')))"
)
"""Locks the leases of this schema; a migration has a lock of its own, since it may take long."""
FORGOTTEN_SECONDS: Final = 86_400.0
"""How long a node that ended without saying so is listed."""

APART, SHARED, CUT_OFF = range(3)
"""Of a node: has no bus; reaches others over a bus; has one, and does not reach it now."""

TAKE_LEASE: Final = """WITH clock AS (SELECT extract(epoch FROM clock_timestamp()) AS now),
other AS (
    SELECT n.address FROM nodes n, clock WHERE n.id <> $1 AND n.until > clock.now
    AND ($4 = 0 OR n.shared = 0 OR (n.address = $3 AND n.address <> '')) LIMIT 1
), known AS (
    SELECT 1 FROM nodes n, clock WHERE n.id = $1 AND n.boot = $2
    AND ($9 OR n.until > clock.now) FOR UPDATE OF n
), mine AS (
    INSERT INTO nodes (id, boot, address, shared, version, settings, started_at, until)
    SELECT $1, $2, $3, $4, $5, $6, clock.now, clock.now + $7 FROM clock
    WHERE NOT EXISTS (SELECT 1 FROM other)
        AND ($8 OR EXISTS (SELECT 1 FROM known))
    ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, address = excluded.address,
        shared = excluded.shared, version = excluded.version, settings = excluded.settings,
        until = excluded.until, draining = CASE WHEN $8 THEN 0 ELSE nodes.draining END,
        started_at = CASE WHEN $8 THEN excluded.started_at ELSE nodes.started_at END
        WHERE $8 OR nodes.boot = excluded.boot
    RETURNING id, draining
) SELECT (SELECT id FROM mine), (SELECT address FROM other), clock.now,
    (SELECT draining FROM mine) FROM clock"""
FORGET_NODES: Final = """DELETE FROM nodes
    WHERE until < extract(epoch FROM clock_timestamp()) - $1"""
DRAIN: Final = "UPDATE nodes SET draining = ? WHERE boot = ? AND draining < ?"
TAKER: Final = f"""WITH living AS (
    SELECT boot, draining, shared FROM nodes WHERE until > extract(epoch FROM clock_timestamp())
) SELECT 1 FROM living WHERE boot <> ? AND draining = 0 AND (shared = {SHARED}
    OR NOT EXISTS (SELECT 1 FROM living WHERE shared = {SHARED})) LIMIT 1"""  # noqa: S608
"""A node that could take rooms: one that does not reach the bus takes none, unless nobody does."""
DRAINING, DRAINED = 1, 2
END_LEASE: Final = "DELETE FROM nodes WHERE id = $1 AND boot = $2"

LIVING: Final = """EXISTS (SELECT 1 FROM nodes n WHERE n.boot = room_owners.owner
    AND n.until > extract(epoch FROM clock_timestamp()))"""
TAKE_ROOM: Final = f"""INSERT INTO room_owners (room_id, owner, owner_epoch, last_seq)
    SELECT r.id, ?, 1, COALESCE((SELECT MAX(m.seq) FROM room_messages m WHERE m.room_id = r.id),
        r.first_seq - 1) FROM rooms r WHERE r.id = ?
    ON CONFLICT (room_id) DO UPDATE SET owner = excluded.owner, last_seq = excluded.last_seq,
        owner_epoch = room_owners.owner_epoch + 1
        WHERE room_owners.owner IS NULL OR room_owners.owner = excluded.owner OR NOT {LIVING}
    RETURNING owner, owner_epoch, last_seq"""  # noqa: S608 - our own words
OWNER: Final = """SELECT o.owner, o.owner_epoch, o.last_seq, n.address FROM room_owners o
    JOIN nodes n ON n.boot = o.owner WHERE o.room_id = ?"""
OWNERS: Final = """SELECT o.room_id, o.owner, o.owner_epoch, o.last_seq, n.address
    FROM room_owners o JOIN nodes n ON n.boot = o.owner WHERE o.room_id IN ({})
    AND n.until > extract(epoch FROM clock_timestamp())"""
RELEASE: Final = """UPDATE room_owners SET owner = ?
    WHERE room_id = ? AND owner_epoch = ? AND owner = ?"""

RELEASE_ALL: Final = "UPDATE room_owners SET owner = NULL WHERE owner = ?"
FIRST: Final = f"""SELECT boot FROM nodes WHERE until > extract(epoch FROM clock_timestamp())
    AND draining = 0 ORDER BY shared = {CUT_OFF}, started_at, id LIMIT 1"""  # noqa: S608
BUS_REACHED: Final = f"""SELECT COUNT(*) FROM nodes WHERE boot <> ? AND shared = {SHARED}
    AND until > extract(epoch FROM clock_timestamp()) + ?"""  # noqa: S608
LIST_NODES: Final = """SELECT n.id, n.boot, n.address, n.version, n.started_at,
    n.until - extract(epoch FROM clock_timestamp()),
    (SELECT COUNT(*) FROM room_owners o WHERE o.owner = n.boot), n.draining, n.settings
    FROM nodes n ORDER BY n.started_at, n.id LIMIT 1000"""
CLOCK_SECONDS: Final = 5.0
"""From so much on it is worth a warning that two clocks differ."""


HearTime: TypeAlias = Callable[[float, float, float], None]
"""Told the server's time, and between which moments (`boot_time`) it was asked and answered."""


class HubNode(Struct, frozen=True):
    """What a process says of itself."""

    name: str
    """The same after a restart."""
    process: str
    """Another at each start."""
    address: str = ""
    shared: bool = False
    """Whether it reaches other nodes over a bus."""
    version: str = ""
    settings: Callable[[], str] = str
    """Gives fingerprints of the settings that should not differ (`settings.comparison`)."""
    lease_seconds: float = LEASE_SECONDS


async def list_nodes(tx: Tx) -> list[ListedNode]:
    """The nodes of a database, also those that ended without saying so."""
    rows = await tx.fetch(LIST_NODES)
    first = next((row[8] for row in rows if row[5] > 0), "")
    nodes = []
    for *told, draining, settings in rows:
        node = ListedNode(*told)
        differing = differing_settings(first, settings) if node.lease_seconds > 0 else ()
        nodes.append(
            msgspec.structs.replace(
                node,
                draining=draining >= DRAINING,
                drained=draining == DRAINED,
                differing=tuple(differing),
            )
        )
    return nodes


class NodeLease:
    """That a node uses a database: a row there, and until when it surely holds."""

    def __init__(
        self,
        node: HubNode,
        where: str,
        hear_time: HearTime | None = None,
        is_connected: Callable[[], bool] = lambda: True,
    ) -> None:
        self.node = node
        self._is_connected = is_connected
        """Whether the bus is reached."""
        self._hear_time = hear_time
        self._where = where
        self._lease = Lease(node.lease_seconds)
        self._lock_leases = f"{limit_idle(node.lease_seconds)}; {LOCK_LEASES}"
        self.is_lost = False
        """Whether another node has taken its place."""
        self.is_failing = False
        """Whether the database did not answer when it was to be renewed last."""
        self.wanted = asyncio.Event()
        """Set when someone needs the lease and it has lapsed."""
        self.is_draining = asyncio.Event()
        """Whether an operator wants it to be left."""
        self._is_warned = False
        self._taken_over = f"{where}: another hub has taken this database over."

    @property
    def holds(self) -> bool:
        """Whether the lease holds, whatever the clocks of other machines say."""
        return not self.is_lost and self._lease.holds(boot_time())

    @property
    def until(self) -> float:
        """When the lease ends by `boot_time`, unless it is renewed."""
        return self._lease.until

    def from_now_on(self) -> Callable[[], bool]:
        """Tells whether the lease has held from now on, without a break."""
        term = self._lease.term
        return lambda: not self.is_lost and self._lease.holds(boot_time(), term)

    async def take(self, connection: Any, *, first: bool = True) -> None:
        """Say that this node uses the database, unless another that may not is there too."""
        before, clock = boot_time(), time.time()
        mine = other = now = draining = None
        if not first and self.holds:
            # One statement: if this node is paused now, nobody waits for a lock of its.
            mine, other, now, draining = await self._ask(connection, first=False, locked=False)
            if mine is None:
                # By the database it has lapsed: its rooms may have been another's meanwhile.
                self._lease.ended()
        if mine is None:
            async with connection.transaction():
                await connection.execute(self._lock_leases)
                if first:
                    await connection.execute(FORGET_NODES, FORGOTTEN_SECONDS)
                mine, other, now, draining = await self._ask(connection, first=first, locked=True)
        if mine is None or now is None:
            raise e.DatabaseInUse(self._refusal(other))
        self._lease.renewed(before, boot_time())
        if draining:
            self.is_draining.set()
        self._compare_clocks((clock + time.time()) / 2 - float(now))

    async def _ask(self, connection: Any, *, first: bool, locked: bool) -> Any:
        """Take or renew the lease; without the lock only if it holds. What the database answers."""
        node, asked = self.node, boot_time()
        told = await connection.fetchrow(
            TAKE_LEASE,
            node.name,
            node.process,
            node.address,
            self._sharing(),
            node.version,
            node.settings(),
            node.lease_seconds,
            first,
            locked,
        )
        if self._hear_time is not None:
            self._hear_time(float(told[2]), asked, boot_time())
        return told

    def _sharing(self) -> int:
        if not self.node.shared:
            return APART
        return SHARED if self._is_connected() else CUT_OFF

    def _compare_clocks(self, ahead: float) -> None:
        """Warn once if this machine's clock is far from the server's."""
        if abs(ahead) < CLOCK_SECONDS:
            self._is_warned = False
        elif not self._is_warned:
            self._is_warned = True
            LOG.warning(
                "the clock of this machine is off; the hub goes by the database's",
                extra={"seconds": round(ahead, 1)},
            )

    def _refusal(self, other: str | None) -> str:
        node = self.node
        ended = f"One that was killed keeps it for {node.lease_seconds:.0f} seconds."
        if node.shared and other and other == node.address:
            return f"{self._where}: another node has the address {other}. {ended}"
        if node.shared:
            return f"{self._where}: a hub without bus.url uses this database. {ended}"
        if other:
            return (
                f"{self._where}: the node {other} uses this database. Set bus.url and "
                "cluster.address to run beside it."
            )
        return f"{self._where}: another hub uses this database. {ended} Several nodes need bus.url."

    def require(self) -> None:
        """Raise unless the lease holds; one that was not renewed in time is then taken again."""
        if self.is_lost:
            raise e.DatabaseInUse(self._taken_over)
        if not self.holds:
            self.wanted.set()
            raise ConnectionError("the lease was not renewed")

    async def renew(self, connection: Any) -> None:
        """Go on saying so; whoever was away for too long may have been replaced."""
        try:
            if not self.is_lost:
                await self.take(connection, first=False)
                return
        except e.DatabaseInUse:
            self.is_lost = True
            LOG.error("another hub has taken the database over; this one stores nothing more")  # noqa: TRY400
        raise e.DatabaseInUse(self._taken_over)

    async def release(self, connection: Any) -> None:
        """Leave the database, and all rooms, to others."""
        if not self.is_lost:
            async with connection.transaction():
                # Whoever renews meanwhile has the row locked, or finds it gone.
                await connection.execute(self._lock_leases)
                await connection.execute(END_LEASE, self.node.name, self.node.process)


@dataclass(eq=False)
class NodeRooms:
    """`core.ports.RoomOwners` of a node."""

    process: str
    write: Callable[[Unit[Any]], Awaitable[Any]]
    read: Callable[[Unit[Any]], Awaitable[Any]]
    _lease: NodeLease | None = None

    def lease(self) -> Callable[[], bool]:
        """Tells whether the lease has held from now on, without a break that another could use."""
        return (lambda: True) if self._lease is None else self._lease.from_now_on()

    @property
    def is_cut_off(self) -> bool:
        """Whether the lease is over, and the database does not answer: others take the rooms."""
        lease = self._lease
        return lease is not None and lease.node.shared and lease.is_failing and not lease.holds

    async def take(self, room_id: int) -> RoomOwner | None:
        """Take a room, unless a living process has it: who owns it now; None without such a room.

        At READ COMMITTED the last `seq` could be from before a write that it waited for; a unit is
        run again instead.
        """

        async def unit(tx: Tx) -> RoomOwner | None:
            row = await tx.fetch_one(TAKE_ROOM, (self.process, room_id))
            row = row or await tx.fetch_one(OWNER, (room_id,))
            return None if row is None else RoomOwner(*row)

        owner: RoomOwner | None = await self.write(unit)
        return owner

    async def owners_of(self, room_ids: Sequence[int]) -> dict[int, RoomOwner]:
        """Which of these rooms living processes have."""
        if not room_ids:
            return {}

        async def query(tx: Tx) -> dict[int, RoomOwner]:
            rows = await tx.fetch(OWNERS.format(", ".join("?" * len(room_ids))), room_ids)
            return {room_id: RoomOwner(*row) for room_id, *row in rows}

        found: dict[int, RoomOwner] = await self.read(query)
        return found

    async def release(self, room_id: int, epoch: int, to: str | None = None) -> bool:
        """Leave a room to a process, or to whoever takes it first; whether it was still ours."""

        async def unit(tx: Tx) -> int:
            return await tx.execute(RELEASE, (to, room_id, epoch, self.process))

        return bool(await self.write(unit))

    async def release_all(self) -> None:
        """Leave every room of this process to whoever takes it first."""

        async def unit(tx: Tx) -> int:
            return await tx.execute(RELEASE_ALL, (self.process,))

        await self.write(unit)

    async def drain(self, process: str) -> bool:
        """Have a process give its rooms away; it notices when it renews its lease.

        False if there is no other that could take them: none runs, or none reaches the bus. Of two
        that are drained at once for each other, the unit of one is run again, and finds the other
        draining.
        """

        async def unit(tx: Tx) -> bool:
            if await tx.fetch_one(TAKER, (process,)) is None:
                return False
            await tx.execute(DRAIN, (DRAINING, process, DRAINING))
            return True

        return bool(await self.write(unit))

    async def drained(self) -> None:
        """Say that this process has given its rooms away."""

        async def unit(tx: Tx) -> int:
            return await tx.execute(DRAIN, (DRAINED, self.process, DRAINED))

        await self.write(unit)

    async def until_draining(self) -> None:
        """Wait until this process is to give its rooms away."""
        await (asyncio.Event() if self._lease is None else self._lease.is_draining).wait()

    async def is_first(self) -> bool:
        """Whether this process removes what is too old, which one does for all."""

        async def query(tx: Tx) -> bool:
            row = await tx.fetch_one(FIRST)
            return row is not None and row[0] == self.process

        return bool(await self.read(query))

    async def list_nodes(self) -> list[ListedNode]:
        """The nodes of the database, also those that ended without saying so."""
        found: list[ListedNode] = await self.read(list_nodes)
        return found

    async def is_bus_reached(self, seconds: float) -> bool:
        """Whether another process said within the last seconds that it reaches the bus."""
        lease_seconds = 0.0 if self._lease is None else self._lease.node.lease_seconds
        # One whose lease is over says nothing any more.
        left = max(lease_seconds - seconds, 0.0)

        async def query(tx: Tx) -> bool:
            row = await tx.fetch_one(BUS_REACHED, (self.process, left))
            return row is not None and row[0] > 0

        return bool(await self.read(query))
