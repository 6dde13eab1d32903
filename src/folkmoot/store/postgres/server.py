"""What a hub does at its server besides units: its claim, fail-overs, and what was deleted.

One hub at a time uses a database. It says so in a row that holds for some seconds by the server's
clock and is renewed in time. A hub that could not renew it stores nothing before it has it again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from typing import Any

import asyncpg

from folkmoot.core.errors import DatabaseFailedOver, DatabaseInUse
from folkmoot.core.ports import DatabaseIdentity, Tx, Unit
from folkmoot.store import meta
from folkmoot.store.postgres.schema import LOCK

LOG = logging.getLogger(__name__)

CLAIM_SECONDS = 15.0
"""How long a hub that was killed is thought to use the database."""
RENEWAL_SECONDS = CLAIM_SECONDS / 5
CLAIM = """WITH other AS (
    SELECT id FROM nodes WHERE id <> $1 AND until > extract(epoch FROM clock_timestamp()) LIMIT 1
), mine AS (
    INSERT INTO nodes (id, until)
    SELECT $1, extract(epoch FROM clock_timestamp()) + $2 WHERE NOT EXISTS (SELECT 1 FROM other)
    ON CONFLICT (id) DO UPDATE SET until = excluded.until
) SELECT id FROM other"""
TIMELINE = """SELECT CASE WHEN pg_is_in_recovery() THEN ''
    ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"""
"""A server that was promoted names its new timeline here first."""
DELETED_FROM = """SELECT quote_ident(schemaname) || '.' || quote_ident(relname)
    FROM pg_stat_user_tables WHERE schemaname = current_schema() AND n_dead_tup > 0"""


class DatabaseClaim:
    """That one hub uses a database: a row there, and until when it surely holds."""

    def __init__(self, name: str, where: str) -> None:
        self._name = name
        self._where = where
        self._until = 0.0
        self._lock = asyncio.Lock()
        self.is_lost = False
        """Whether another hub has taken the database over."""

    async def take(self, connection: Any) -> None:
        """Say that this hub uses the database, unless another says so too."""
        before = time.monotonic()
        async with connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            other = await connection.fetchval(CLAIM, self._name, CLAIM_SECONDS)
        if other is not None:
            raise DatabaseInUse(
                f"{self._where}: another hub uses this database. One that was killed keeps it for "
                f"{CLAIM_SECONDS:.0f} seconds."
            )
        self._until = before + CLAIM_SECONDS

    async def require(self, connection: Any) -> None:
        """Raise unless the claim holds; one that was not renewed in time is taken again first."""
        if self.is_lost or time.monotonic() >= self._until:
            async with self._lock:
                if self.is_lost or time.monotonic() >= self._until:
                    await self.renew(connection)

    async def renew(self, connection: Any) -> None:
        """Go on saying so; whoever was away for too long may have been replaced."""
        try:
            if not self.is_lost:
                await self.take(connection)
                return
        except DatabaseInUse:
            self.is_lost = True
            LOG.error("another hub has taken the database over; this one stores nothing more")  # noqa: TRY400
        raise DatabaseInUse(f"{self._where}: another hub has taken this database over.")

    async def release(self, connection: Any) -> None:
        """Leave the database to others."""
        if not self.is_lost:
            async with connection.transaction():
                await connection.execute("DELETE FROM nodes WHERE id = $1", self._name)


class ServerTimeline:
    """Which of a database's servers answers; after a fail-over it is another.

    A replica that took over may lack writes that were acknowledged, unless every commit waited for
    it (`synchronous`). So it begins a new epoch, which a hub that runs cannot do: it must restart.
    """

    def __init__(self, where: str, *, synchronous: bool) -> None:
        self._where = where
        self._synchronous = synchronous
        self._known: str | None = None
        self._has_failed_over = False

    async def check(self, connection: Any) -> None:
        """Look at the server of a new connection."""
        try:
            async with connection.transaction():
                found = str(await connection.fetchval(TIMELINE))
        except asyncpg.InsufficientPrivilegeError:
            return
        if self._known is None:
            self._known = found or None
        elif found and found != self._known and not self._synchronous:
            self._has_failed_over = True
            LOG.error("another database server took over, which may lack acknowledged writes")

    def require_same(self) -> None:
        """Raise if another server took over."""
        if self._has_failed_over:
            raise DatabaseFailedOver(
                f"{self._where}: another server took over, which may lack what was acknowledged. "
                "Restart the hub. (With a synchronous replica: store.synchronous_replica = true.)"
            )

    def settle_identity(self) -> Unit[DatabaseIdentity]:
        """Give a new database its identity, and one on another timeline a new epoch."""
        database_id, epoch = secrets.token_hex(16), secrets.token_hex(8)
        settle = meta.settle_identity(database_id, epoch, int(time.time()))

        async def unit(tx: Tx) -> DatabaseIdentity:
            identity = await settle(tx)
            before, now = await meta.get(tx, meta.TIMELINE), self._known
            if now is None or before == now:
                return identity
            await meta.put(tx, meta.TIMELINE, now)
            if before is not None and not self._synchronous:
                await meta.put(tx, meta.EPOCH, epoch)
            return await meta.read_identity(tx)

        return unit


async def vacuum(connection: Any) -> None:
    """Remove deleted rows from the tables that have some."""
    async with connection.transaction():
        tables = await connection.fetch(DELETED_FROM)
    for (table,) in tables:
        await connection.execute(f"VACUUM {table}")
