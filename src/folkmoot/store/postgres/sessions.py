"""Where the sessions of clients are, on many nodes.

A session is at the process that opened it, which its id names, unless another took it over: then a
row says which. How many each process has is counted in a table that no log is kept of: a crash of
the server empties it, and every process says it again within a minute.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from folkmoot.core.events import EXCESS, SESSIONS, subject
from folkmoot.core.ports import NodeHome, Tx, Unit
from folkmoot.store.postgres.gather import Gatherer, Start
from folkmoot.store.postgres.rates import Run, hashed

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
    AND NOT EXISTS (SELECT 1 FROM mcp_sessions s WHERE s.id_hash = ? AND s.state = '')
    ON CONFLICT (id_hash) DO UPDATE SET process = excluded.process
        WHERE h.process = ? OR NOT EXISTS (
            SELECT 1 FROM nodes n WHERE n.boot = h.process AND {_LIVES})
    RETURNING process"""  # noqa: S608
LEAVE: Final = "DELETE FROM session_homes WHERE id_hash = ? AND process = ?"
FORGET: Final = f"""DELETE FROM session_homes h WHERE NOT EXISTS (
    SELECT 1 FROM nodes n WHERE n.boot = h.process AND {_LIVES})"""  # noqa: S608

REPORT: Final = f"""WITH mine AS (
    INSERT INTO session_counts AS c (key, process, number)
        SELECT a.key, ?, a.number FROM unnest(?::text[], ?::bigint[]) AS a (key, number)
        ON CONFLICT (key, process) DO UPDATE SET number = excluded.number
        WHERE c.number <> excluded.number
) SELECT c.key, SUM(c.number)::bigint FROM session_counts c JOIN nodes n ON n.boot = c.process
    WHERE c.key = ANY(?) AND c.process <> ? AND {_LIVES} GROUP BY c.key"""  # noqa: S608
LARGEST: Final = f"""SELECT c.process, extract(epoch FROM clock_timestamp())::float8
    FROM session_counts c JOIN nodes n ON n.boot = c.process
    WHERE c.key = ? AND c.process <> ? AND c.number > 0 AND {_LIVES}
    ORDER BY c.number DESC, c.process LIMIT 1"""  # noqa: S608
FORGET_COUNTS: Final = f"""DELETE FROM session_counts c WHERE c.number = 0 OR NOT EXISTS (
    SELECT 1 FROM nodes n WHERE n.boot = c.process AND {_LIVES})"""  # noqa: S608


class NodeSessions:
    """`core.ports.SessionHomes` of a node."""

    def __init__(
        self,
        process: str,
        write: Callable[..., Awaitable[Any]],
        read: Callable[[Unit[Any]], Awaitable[Any]],
        run: Run,
        start: Start,
        most_waiting: int,
    ) -> None:
        self.process = process
        self._write = write
        self._read = read
        self._run = run
        self._reports = Gatherer[tuple[str, int], int](self._report_all, start, most_waiting)

    async def find(self, id_hash: str, opened_by: str) -> NodeHome | None:
        """The living process that has a session; None if there is none."""

        async def query(tx: Tx) -> NodeHome | None:
            row = await tx.fetch_one(FIND, (id_hash, opened_by))
            return None if row is None else NodeHome(*row)

        found: NodeHome | None = await self._read(query)
        return found

    async def take(self, id_hash: str, opened_by: str, gone: str = "") -> bool:
        """Take a session over, unless a living process has it that is not the one thought gone.

        One that was closed meanwhile is not taken. It is one statement, and whoever comes second
        sees the row of the first.
        """

        async def unit(tx: Tx) -> bool:
            params = (id_hash, self.process, opened_by, gone, id_hash, id_hash, gone)
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

    async def report(self, key: str, number: int) -> int:
        """Say how many sessions of a key this process has; how many other processes have."""
        return await self._reports.get((hashed(key), number))

    async def _report_all(self, asked: list[tuple[str, int]]) -> list[int]:
        # The last of each key counts; rows are always locked in the same order.
        counts = dict(sorted(dict(asked).items()))
        keys = list(counts)
        params = (self.process, keys, list(counts.values()), keys, self.process)
        others = {row[0]: int(row[1]) for row in await self._run(REPORT, params)}
        return [others.get(key, 0) for key, _ in asked]

    async def end_one(self, key: str, account_id: str) -> bool:
        """Ask the process with most sessions of an account to end one; False if no other has any.

        `key` is what they are counted by.
        """

        async def unit(tx: Tx) -> bool:
            row = await tx.fetch_one(LARGEST, (hashed(key), self.process))
            if row is not None:
                tx.publish(subject(EXCESS, row[0]), {"account": account_id, "at": row[1]})
            return row is not None

        return bool(await self._write(unit, any_order=True))

    async def forget(self) -> None:
        """Remove what is known of processes that are gone."""
        for statement in (FORGET, FORGET_COUNTS):
            await self._run(statement, ())
