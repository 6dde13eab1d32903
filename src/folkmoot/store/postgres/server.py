"""What a hub does at its server besides units: it notices fail-overs, and cleans up."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any

import asyncpg
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.ports import DatabaseIdentity, Tx, Unit
from folkmoot.store import meta

LOG = logging.getLogger(__name__)

TIMELINE = """SELECT CASE WHEN pg_is_in_recovery() THEN ''
    ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"""
"""A server that was promoted names its new timeline here first."""
DELETED_FROM = """SELECT quote_ident(schemaname) || '.' || quote_ident(relname)
    FROM pg_stat_user_tables WHERE schemaname = current_schema() AND n_dead_tup > 0"""


class ServerTimeline(Struct, eq=False):
    """Which of a database's servers answers; after a fail-over it is another.

    A replica that took over may lack writes that were acknowledged, unless every commit waited for
    it (`synchronous`). So it begins a new epoch, which a hub that runs cannot do: it must restart.
    """

    where: str
    synchronous: bool
    _known: str | None = None
    _has_failed_over: bool = False

    async def check(self, connection: Any) -> None:
        """Look at the server of a new connection."""
        try:
            async with connection.transaction():
                found = str(await connection.fetchval(TIMELINE))
        except asyncpg.InsufficientPrivilegeError:
            return
        if self._known is None:
            self._known = found or None
        elif not found:
            # It may take over while the connection is open, which nobody would notice.
            raise asyncpg.ReadOnlySQLTransactionError("it is a replica")
        elif found and found != self._known and not self.synchronous:
            self._has_failed_over = True
            LOG.error("another database server took over, which may lack acknowledged writes")

    def require_same(self) -> None:
        """Raise if another server took over."""
        if self._has_failed_over:
            raise e.DatabaseFailedOver(
                f"{self.where}: another server took over, which may lack what was acknowledged. "
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
            if before is not None and not self.synchronous:
                await meta.put(tx, meta.EPOCH, epoch)
            return await meta.read_identity(tx)

        return unit


async def vacuum(connection: Any) -> bool:
    """Remove deleted rows from the tables that have some; whether all could be removed.

    A transaction that began before they were deleted, such as a dump, keeps them.
    """
    async with connection.transaction():
        tables = await connection.fetch(DELETED_FROM)
    for (table,) in tables:
        await connection.execute(f"VACUUM {table}")
    async with connection.transaction():
        return not await connection.fetch(DELETED_FROM)
