from __future__ import annotations

import asyncio
from contextlib import closing

import apsw

from tests.store.support import all_notes, insert


async def test_a_change_of_the_schema_leaves_units_and_queries_working(store):
    with closing(apsw.Connection(str(store.path))) as other:
        for number in range(3):
            other.execute(f"ALTER TABLE notes ADD COLUMN other{number} TEXT")
            await asyncio.gather(*(store.write(insert(number * 5 + n)) for n in range(5)))
            for long in (False, True):
                notes = await store.read(all_notes, long=long)
                assert notes == list(range(number * 5 + 5))
