"""Which process links a server that only one node may link.

A row names the process, and holds as long as that has its lease. Like a room, such a server is
taken by whoever needs it first when its process is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.core.ports import NodeHome, Tx, Unit

if TYPE_CHECKING:
    from folkmoot.store.postgres.nodes import NodeLease

_LIVES = "n.until > extract(epoch FROM statement_timestamp())"
"""By the time before the leases were read: one that is renewed meanwhile is not seen to be over."""
FIND: Final = f"""SELECT n.boot, n.address FROM backend_homes h JOIN nodes n ON n.boot = h.process
    WHERE h.namespace = ? AND {_LIVES}"""  # noqa: S608 - our own words
TAKE: Final = f"""INSERT INTO backend_homes AS h (namespace, process) VALUES (?, ?)
    ON CONFLICT (namespace) DO UPDATE SET process = excluded.process
        WHERE h.process <> excluded.process AND NOT EXISTS (
            SELECT 1 FROM nodes n WHERE n.boot = h.process AND {_LIVES})"""  # noqa: S608
LOCK: Final = "SELECT process FROM backend_homes WHERE namespace = ? FOR UPDATE"
RELEASE: Final = "DELETE FROM backend_homes WHERE namespace = ? AND process = ?"


class NodeBackends(Struct, eq=False):
    """`core.ports.BackendHomes` of a node."""

    process: str
    write: Callable[..., Awaitable[Any]]
    read: Callable[[Unit[Any]], Awaitable[Any]]
    _lease: NodeLease

    def lease(self) -> Callable[[], bool]:
        """Tells whether the lease has held from now on, without a break that another could use."""
        return self._lease.from_now_on()

    @property
    def until(self) -> float:
        """When the lease ends by `boot_time`, unless it is renewed."""
        return self._lease.until

    async def take(self, namespace: str) -> NodeHome | None:
        """Have a server linked here, unless a living process links it: who does now.

        The row is locked first: what is known of leases is then from after whoever had it last.
        """

        async def unit(tx: Tx) -> NodeHome | None:
            await tx.fetch_one(LOCK, (namespace,))
            await tx.execute(TAKE, (namespace, self.process))
            return await self._find(tx, namespace)

        taken: NodeHome | None = await self.write(unit, any_order=True)
        return taken

    async def find(self, namespace: str) -> NodeHome | None:
        """The living process that links a server; None if there is none."""

        async def query(tx: Tx) -> NodeHome | None:
            return await self._find(tx, namespace)

        found: NodeHome | None = await self.read(query)
        return found

    async def release(self, namespace: str) -> None:
        """Leave a server to whoever takes it first."""

        async def unit(tx: Tx) -> None:
            await tx.execute(RELEASE, (namespace, self.process))

        await self.write(unit, any_order=True)

    async def _find(self, tx: Tx, namespace: str) -> NodeHome | None:
        row = await tx.fetch_one(FIND, (namespace,))
        return None if row is None else NodeHome(*row)
