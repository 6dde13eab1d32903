"""Rate limits that all hubs of a database count together, in a table that no log is kept of.

A crash of the server empties the table, as the end of a hub empties its memory. Each statement
counts for all who came since the last one. It is right at READ COMMITTED: what is counted is the
row as it is when it is locked, and rows are locked in one order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

from folkmoot.core.limits import MAX_RATE_KEYS
from folkmoot.core.ports import Row
from folkmoot.store.postgres.gather import Gatherer, Start

_NOW = "extract(epoch FROM clock_timestamp())::double precision"
_IS_OVER = "(c.taken <= 0 OR excluded.opened - c.opened >= excluded.seconds)"
_GRANTED = f"""CASE WHEN {_IS_OVER} THEN excluded.taken
    ELSE LEAST(excluded.taken, GREATEST(excluded.most - c.taken, 0)) END"""
TAKE: Final = f"""INSERT INTO rate_counts AS c (key, taken, granted, most, seconds, opened)
    SELECT a.key, a.wanted, a.wanted, a.most, a.seconds, {_NOW} FROM
    unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[]) AS a (key, wanted, most, seconds)
    ON CONFLICT (key) DO UPDATE SET
    taken = {_GRANTED} + CASE WHEN {_IS_OVER} THEN 0 ELSE c.taken END,
    granted = {_GRANTED},
    opened = CASE WHEN {_IS_OVER} THEN excluded.opened ELSE c.opened END,
    most = excluded.most, seconds = excluded.seconds
    RETURNING key, taken, granted, opened + seconds - {_NOW}"""  # noqa: S608
GIVE_BACK: Final = """UPDATE rate_counts SET taken = rate_counts.taken - a.given
    FROM unnest(?::text[], ?::bigint[]) AS a (key, given) WHERE rate_counts.key = a.key"""
CLEAN: Final = f"""DELETE FROM rate_counts WHERE opened + seconds <= {_NOW} OR key IN
    (SELECT key FROM (SELECT key, row_number() OVER
    (PARTITION BY most, seconds ORDER BY opened DESC) AS place FROM rate_counts) AS ranked
    WHERE place > {MAX_RATE_KEYS})"""  # noqa: S608
"""Each limit keeps so many keys, so that a flood of one forgets nothing that another counted."""
ALL: Final = 2**62
"""The most of a limit that only slows: everything is counted."""

Run: TypeAlias = Callable[[str, Sequence[Any]], Awaitable[list[Row]]]
"""Runs a statement by itself."""


class RateTake(NamedTuple):
    """One more of what a limit counts."""

    key: str
    most: int
    seconds: int
    overdraw: bool


class SharedRates:
    """`core.ports.RateCounts` on a database."""

    def __init__(self, run: Run, start: Start, most_waiting: int) -> None:
        self._run = run
        self._takes = Gatherer[RateTake, float](self._take_all, start, most_waiting)
        self._given = Gatherer[str, None](self._give_all_back, start, most_waiting)

    async def take(self, key: str, most: int, seconds: int, *, overdraw: bool = False) -> float:
        """Count one more and answer 0, or answer in how many seconds there will be room."""
        return await self._takes.get(RateTake(hashed(key), most, seconds, overdraw))

    async def give_back(self, key: str) -> None:
        """Take one back."""
        await self._given.get(hashed(key))

    async def clean(self) -> None:
        """Remove windows that are over, and the oldest where there are too many."""
        await self._run(CLEAN, ())

    async def _take_all(self, asked: list[RateTake]) -> list[float]:
        places: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(asked):
            places[one.key].append(place)
        rows = []
        for key in sorted(places):
            _, most, seconds, overdraw = asked[places[key][0]]
            most = ALL if overdraw else most
            rows.append((key, min(len(places[key]), most), most, seconds))
        waits = [0.0] * len(asked)
        counted = await self._run(TAKE, list(zip(*rows, strict=True)))
        for key, taken, granted, wait in counted:
            most = asked[places[key][0]].most
            for number, place in enumerate(places[key], taken - granted + 1):
                if number > min(most, taken):
                    waits[place] = max(wait, 0.001)
        return waits

    async def _give_all_back(self, keys: list[str]) -> list[None]:
        counts: dict[str, int] = defaultdict(int)
        for key in keys:
            counts[key] += 1
        await self._run(GIVE_BACK, list(zip(*sorted(counts.items()), strict=True)))
        return [None] * len(keys)


def hashed(key: str) -> str:
    """What a key is called in the table: no address or name of a person is stored there."""
    return blake2b(key.encode(), digest_size=16).hexdigest()
