"""Where the sessions of clients are, on many nodes.

A session is at the process that opened it, which its id names, unless another took it over: then a
row says which.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from folkmoot.core.events import SESSIONS, subject
from folkmoot.core.ports import SessionHome, Tx, Unit

CREATE_HOMES: Final = """CREATE TABLE IF NOT EXISTS session_homes (
    id_hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    process TEXT COLLATE "C" NOT NULL
)"""
_LIVES = "n.until > extract(epoch FROM clock_timestamp())"
FIND: Final = f"""SELECT boot, address FROM (
    SELECT 0 AS place, n.boot, n.address FROM session_homes h JOIN nodes n ON n.boot = h.process
        WHERE h.id_hash = ? AND {_LIVES}
    UNION ALL SELECT 1, n.boot, n.address FROM nodes n WHERE n.boot = ? AND {_LIVES}
) AS found ORDER BY place LIMIT 1"""  # noqa: S608 - our own words
TAKE: Final = f"""INSERT INTO session_homes AS h (id_hash, process)
    SELECT ?, ? WHERE NOT EXISTS (
        SELECT 1 FROM nodes n WHERE n.boot = ? AND n.boot <> ? AND {_LIVES}
        AND NOT EXISTS (SELECT 1 FROM session_homes o WHERE o.id_hash = ?))
    ON CONFLICT (id_hash) DO UPDATE SET process = excluded.process
        WHERE h.process = ? OR NOT EXISTS (
            SELECT 1 FROM nodes n WHERE n.boot = h.process AND {_LIVES})
    RETURNING process"""  # noqa: S608
LEAVE: Final = "DELETE FROM session_homes WHERE id_hash = ? AND process = ?"
FORGET: Final = f"""DELETE FROM session_homes h WHERE NOT EXISTS (
    SELECT 1 FROM nodes n WHERE n.boot = h.process AND {_LIVES})"""  # noqa: S608


class NodeSessions:
    """`core.ports.SessionHomes` of a node."""

    def __init__(
        self,
        process: str,
        write: Callable[..., Awaitable[Any]],
        read: Callable[[Unit[Any]], Awaitable[Any]],
    ) -> None:
        self.process = process
        self._write = write
        self._read = read

    async def find(self, id_hash: str, opened_by: str) -> SessionHome | None:
        """The living process that has a session; None if there is none."""

        async def query(tx: Tx) -> SessionHome | None:
            row = await tx.fetch_one(FIND, (id_hash, opened_by))
            return None if row is None else SessionHome(*row)

        found: SessionHome | None = await self._read(query)
        return found

    async def take(self, id_hash: str, opened_by: str, gone: str = "") -> bool:
        """Take a session over, unless a living process has it that is not the one thought gone.

        It is one statement, and whoever comes second sees the row of the first.
        """

        async def unit(tx: Tx) -> bool:
            params = (id_hash, self.process, opened_by, gone, id_hash, gone)
            if await tx.fetch_one(TAKE, params) is None:
                return False
            tx.publish(subject(SESSIONS, id_hash), {"process": self.process})
            return True

        return bool(await self._write(unit, any_order=True))

    async def leave(self, id_hash: str) -> None:
        """A session that was taken over has ended here."""

        async def unit(tx: Tx) -> None:
            await tx.execute(LEAVE, (id_hash, self.process))

        await self._write(unit, any_order=True)

    async def forget(self) -> None:
        """Remove what is known of processes that are gone."""

        async def unit(tx: Tx) -> None:
            await tx.execute(FORGET)

        await self._write(unit, any_order=True)
