"""`PostgresStore`: units and queries on a pool of connections.

A unit is one SERIALIZABLE transaction: what it read is as it was when it commits, or it is run
again. A query of one statement is run by itself; one that asks a second time is run again on one
view of the database, and from then on at once. Nothing is left on a connection between two
transactions, so a pooler in transaction mode may stand before the server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import CodeType
from typing import Any, TypeVar

import asyncpg

from folkmoot.bus import MemoryBus
from folkmoot.core import errors as e
from folkmoot.core.ports import (
    BackendHomes,
    Backup,
    Bus,
    DatabaseIdentity,
    NodeBus,
    Progress,
    RoomOwners,
    Row,
    SessionHomes,
    StoreStats,
    Tx,
    Unit,
)
from folkmoot.settings.types import database_url
from folkmoot.store.postgres.backends import NodeBackends
from folkmoot.store.postgres.changes import ChangeLog
from folkmoot.store.postgres.dialect import (
    CONNECT_SECONDS,
    POSTGRES,
    STATEMENTS_KEPT,
    connecting,
    limit_idle,
    translate_error,
    use_our_types,
)
from folkmoot.store.postgres.gather import Gatherer
from folkmoot.store.postgres.nodes import RENEWALS, HearTime, HubNode, NodeLease, NodeRooms
from folkmoot.store.postgres.rates import SharedRates
from folkmoot.store.postgres.schema import check_server, load_schema, migrate
from folkmoot.store.postgres.server import vacuum
from folkmoot.store.postgres.sessions import NodeSessions
from folkmoot.store.postgres.transactions import (
    ATTEMPT_SECONDS,
    LONGEST_PAUSE,
    Transactions,
    limited,
    terminate,
)
from folkmoot.store.postgres.tx import SecondStatement
from folkmoot.store.tx import Published, emit
from folkmoot.taskgroups import waited

T = TypeVar("T")

LOG = logging.getLogger(__name__)

STATEMENT_SECONDS = 60.0
VACUUM_SECONDS = 30.0
"""How often what was deleted is removed from the tables, where something was."""
CLEAN_SECONDS = 60.0
BACKUP = "A PostgreSQL database is backed up with pg_dump, or by its server's own archive."


class PostgresStore(Transactions):
    """The database of a hub, on one node or many. Open it with `PostgresStore.open`."""

    identity: DatabaseIdentity
    room_owners: RoomOwners | None = None
    session_homes: SessionHomes | None = None
    backend_homes: BackendHomes | None = None
    sole_writer = False

    def __init__(self, url: str, *, queue: int, bus: Bus | None, synchronous_replica: bool) -> None:
        super().__init__(url, synchronous_replica=synchronous_replica)
        self.bus = bus or MemoryBus()
        self._queue = queue
        self._lease_pool: Any = None
        """One connection that nothing else waits for or uses."""
        self._connect_seconds = CONNECT_SECONDS
        self._running: set[asyncio.Task[Any]] = set()
        self._in_views: set[CodeType] = set()
        """Queries known to run more than one statement."""
        self._look_ups: dict[str, Gatherer[str, Row | None]] = {}
        """By statement, of which there are few."""
        self.rates = SharedRates(self._run_alone, self._start, queue)
        self._tasks: list[asyncio.Task[None]] = []
        self._writes = self._reads = 0
        self._units = self._failed_units = self._reads_done = self._failed_reads = 0
        self._seconds = 0.0

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        connections: int = 10,
        prepare: bool = True,
        queue: int = 10_000,
        synchronous_replica: bool = False,
        node: HubNode | None = None,
        bus: Bus | None = None,
        shared: NodeBus | None = None,
        hear_time: HearTime | None = None,
    ) -> PostgresStore:
        """Connect, and bring the database to the newest schema if need be.

        `queue` bounds how many units, and how many queries, may wait; `prepare` keeps statements
        prepared between transactions, which some poolers cannot do. Unless every commit waits for
        a `synchronous_replica`, a server that took over from another begins a new epoch. A `node`
        has a lease, and owns the rooms that it loads; without one, nothing keeps others away.
        Where it is `shared` with other nodes on a bus, changes that no node may miss are logged.
        A node tells the server's time with its lease (`hear_time`).
        """
        store = cls(url, queue=queue, bus=shared or bus, synchronous_replica=synchronous_replica)
        if node is not None:
            store._limit_idle = limit_idle(node.lease_seconds)
            store._connect_seconds = min(CONNECT_SECONDS, node.lease_seconds)
            if shared is not None:
                store._lost_seconds = min(ATTEMPT_SECONDS, node.lease_seconds)
        if not database_url(url):
            raise e.DatabaseUnwritable(f"{store.where}: the address is not valid.")
        try:
            pool = partial(
                asyncpg.create_pool,
                url,
                timeout=store._connect_seconds,
                command_timeout=STATEMENT_SECONDS,
                statement_cache_size=STATEMENTS_KEPT if prepare else 0,
                max_cached_statement_lifetime=0,
                init=store._prepare_connection,
                reset=leave_as_is,
                server_settings={"application_name": "folkmoot"},
            )
            with connecting(store.where):
                store._pool = await pool(min_size=1, max_size=connections)
            async with store._pool.acquire() as connection:
                await check_server(connection, store.where)
                await migrate(connection, load_schema(), store.where)
                if node is not None:
                    wanted = NodeLease(node, store.where, hear_time, partial(_reaches, shared))
                    await wanted.take(connection)
                    store._lease = wanted
                    store.room_owners = NodeRooms(node.process, store.write, store.read, wanted)
                    if shared is not None:
                        store.session_homes = NodeSessions(
                            node.process,
                            store.write,
                            store.read,
                            store._run_alone,
                            store._start,
                            queue,
                        )
                        store.backend_homes = NodeBackends(
                            node.process, store.write, store.read, wanted
                        )
                    store._lease_pool = await pool(min_size=0, max_size=1)
            if shared is not None:
                store._log = ChangeLog(store._connected, shared)
                await store._log.open()
            store.identity = await store.write(store._timeline.settle_identity())
        except POSTGRES as error:
            await store.close()
            raise translate_error(error, store.where) from error
        except ValueError as error:
            await store.close()
            # Its words may repeat a part of the address.
            raise e.DatabaseUnwritable(f"{store.where}: the address is not valid.") from error
        except BaseException:
            await store.close()
            raise
        store._tasks = [asyncio.create_task(each) for each in (store._vacuum(), store._clean())]
        if store._log is not None:
            store._tasks.append(asyncio.create_task(store._log.follow()))
        if store._lease is not None:
            store._tasks.append(asyncio.create_task(store._keep_lease(store._lease)))
        return store

    async def _prepare_connection(self, connection: Any) -> None:
        self._opened.add(connection)
        with limited(connection, self._connect_seconds):
            async with connection.transaction():
                await use_our_types(connection)
            await self._timeline.check(connection)

    async def _keep_lease(self, lease: NodeLease) -> None:
        """Renew the lease in time, as long as nobody has taken this node's place."""
        seconds = lease.node.lease_seconds
        while not lease.is_lost:
            if lease.is_failing and not lease.holds:
                await asyncio.sleep(LONGEST_PAUSE)
            else:
                await waited(lease.wanted, seconds / RENEWALS)
            lease.wanted.clear()
            try:
                async with self._lease_pool.acquire(timeout=seconds / 3) as connection:
                    try:
                        with limited(connection, seconds / 3):
                            await lease.renew(connection)
                    except BaseException:
                        terminate(connection)
                        raise
            except (*POSTGRES, e.StoreError) as error:
                if not lease.is_failing:
                    told = error if isinstance(error, e.StoreError) else translate_error(error)
                    LOG.warning("the lease at the database was not renewed: %s", told.message)
                lease.is_failing = True
                if not lease.holds:
                    self._drop_connections()
            else:
                if lease.is_failing:
                    LOG.info("the lease at the database is renewed again")
                lease.is_failing = False

    async def write(self, unit: Unit[T], *, single: bool = False, any_order: bool = False) -> T:
        """Run a unit and answer when it is committed; if it raises, it alone is undone.

        Whoever is cancelled while waiting cuts nothing in half: the unit goes on to its end.
        """
        self._require_open()
        if self._writes >= self._queue:
            raise e.StoreOverloaded(
                f"More than {self._queue:,} writes are waiting.", setting="store.queue"
            )
        self._writes += 1
        commit = self._run_single if single else partial(self._commit, any_order=any_order)
        return await self._start(self._until_committed(unit, commit))

    async def read(self, query: Unit[T], *, long: bool = False) -> T:  # noqa: ARG002 - of the port
        """Run a query on one consistent view of what is committed."""
        self._require_open()
        if self._reads >= self._queue:
            raise e.StoreOverloaded(
                f"More than {self._queue:,} reads are waiting.", setting="store.queue"
            )
        self._reads += 1
        return await self._start(self._until_read(query))

    async def look_up(self, sql: str, key: str) -> Row | None:
        """The row that a statement finds by a key, together with what others look up."""
        self._require_open()
        if "\x00" in key:
            return None
        if sql not in self._look_ups:
            many = f"{sql.removesuffix('= ?')}= ANY(?)"

            async def ask(keys: list[str]) -> list[Row | None]:
                found = {row[0]: row for row in await self._run_alone(many, (keys,))}
                return [found.get(one) for one in keys]

            self._look_ups[sql] = Gatherer(ask, self._start, self._queue)
        return await self._look_ups[sql].get(key)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run work to its end, even if its caller leaves."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return asyncio.shield(task)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # If its caller has left, nobody else looks at its failure, and asyncio complains.
            task.exception()

    async def _until_committed(
        self, unit: Unit[T], commit: Callable[[Unit[T]], Awaitable[tuple[T, list[Published]]]]
    ) -> T:
        started = time.perf_counter()
        try:
            result, events = await self._repeated(lambda: commit(unit))
        except BaseException:
            self._failed_units += 1
            raise
        finally:
            self._writes -= 1
        self._units += 1
        self._seconds += time.perf_counter() - started
        for event in events:
            emit(self.bus, event)
        return result

    async def _until_read(self, query: Unit[T]) -> T:
        code = getattr(query, "__code__", None)
        try:
            if code is not None and code not in self._in_views:
                try:
                    result = await self._repeated(lambda: self._ask_once(query))
                except SecondStatement:
                    self._in_views.add(code)
                    result = await self._repeated(lambda: self._ask_in_view(query))
            else:
                result = await self._repeated(lambda: self._ask_in_view(query))
        except BaseException:
            self._failed_reads += 1
            raise
        finally:
            self._reads -= 1
        self._reads_done += 1
        return result

    async def _vacuum(self) -> None:
        """Have what was deleted removed from the tables soon, not when the server gets to it."""
        while True:
            await self._to_vacuum.wait()
            await asyncio.sleep(VACUUM_SECONDS)
            self._to_vacuum.clear()
            try:
                done = await self.vacuum()
            except (*POSTGRES, e.StoreError) as error:
                done = False
                LOG.warning("deleted rows were not removed: %s", error)
            if not done:
                self._to_vacuum.set()

    async def _clean(self) -> None:
        """Forget rate limits that are over; every hub does so, and what is gone stays gone."""
        while True:
            await asyncio.sleep(CLEAN_SECONDS)
            try:
                await self.rates.clean()
            except (*POSTGRES, e.StoreError) as error:
                LOG.warning("rate limits that are over were not removed: %s", error)

    async def vacuum(self) -> bool:
        """Remove deleted rows from the tables that have some; whether all could be removed."""
        async with self._connected() as connection:
            return await vacuum(connection)

    async def ready(self) -> None:
        """Raise a `StoreError` when the database cannot be written."""
        self._require_open()

        async def query(tx: Tx) -> Row | None:
            return await tx.fetch_one(
                "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' "
                "FROM health"
            )

        row = await self.read(query)
        if row is None or row[0]:
            raise e.DatabaseUnwritable(f"{self.where}: the server accepts no writes.")

    async def sync(self) -> None:
        """Nothing is left to do: a commit is answered when it is on the server's disk."""

    async def check(self) -> list[str]:
        """What is wrong with the database: the server checks its own pages."""
        await self.ready()
        return []

    async def backup(
        self,
        target: str,  # noqa: ARG002 - of the port
        *,
        overwrite: bool = False,  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> Backup:
        """Refuse: the server's own tools do it better."""
        raise e.BackupFailed(BACKUP)

    def stats(self) -> StoreStats:
        """The store's counters since it was opened."""
        return StoreStats(
            units=self._units,
            failed_units=self._failed_units,
            commits=self._units,
            failed_commits=self._races,
            commit_seconds=self._seconds,
            batch_bounds=(1,),
            batch_sizes=(self._units,),
            reads=self._reads_done,
            failed_reads=self._failed_reads,
            write_queue_depth=self._writes,
            read_queue_depth=self._reads,
        )

    async def close(self) -> None:
        """Refuse what comes now, finish what was accepted, and close; safe to call again."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=ATTEMPT_SECONDS)
        if self._lease is not None and self._pool is not None and not self._running:
            with suppress(*POSTGRES):
                async with asyncio.timeout(CONNECT_SECONDS), self._pool.acquire() as connection:
                    await self._lease.release(connection)
        pools, self._pool, self._lease_pool = (self._lease_pool, self._pool), None, None
        for pool in pools:
            if pool is not None:
                with suppress(*POSTGRES):
                    await asyncio.wait_for(pool.close(), CONNECT_SECONDS)


def _reaches(bus: NodeBus | None) -> bool:
    return bus is None or bus.is_connected


async def leave_as_is(_connection: Any) -> None:
    """Reset nothing: units leave no state on their connection."""
