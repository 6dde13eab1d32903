from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.store import SqliteStore
from folkmoot.store.sqlite import connect, make_private
from folkmoot.store.tx import BEGIN, BEGIN_WRITING, COMMIT, KEEP, ROLLBACK, SAVE, SqliteTx
from tests.store.support import all_notes, in_thread, insert, make_table, opened

TRANSACTIONS = [
    "BEGIN",
    "begin immediate",
    "COMMIT",
    "COMMIT;",
    "commit -- x",
    "end",
    " rollback",
    "SAVEPOINT unit",
    "SAVEPOINT x",
    "release unit",
    "RELEASE unit",
    "ROLLBACK TO unit",
    "/* x */ COMMIT",
    "/* */ COMMIT",
    "-- x\nROLLBACK",
    "-- ;\nROLLBACK",
]
CONNECTION = [
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA cache_size(1)",
    "PRAGMA busy_timeout = 60000",
    "PRAGMA query_only = ON",
    "PRAGMA wal_autocheckpoint = 0",
]
SEVERAL = ["SELECT 1; COMMIT", "SELECT 1;COMMIT", ";COMMIT", "SELECT ';'; SELECT 2", "COMMIT; -- x"]
ONE = [
    "SELECT 1",
    "SELECT 1;",
    "SELECT 1; \n",
    "SELECT ';', 1",
    "SELECT 1 -- ; 2",
    "/* ; */ SELECT 1",
    "PRAGMA table_info(notes)",
    "PRAGMA page_count",
]


async def use_every_word(store: SqliteStore) -> None:
    """Have every word of ours be prepared, on every connection, before a unit says it."""
    for _ in range(3):
        await store.write(make_table)
        await asyncio.gather(*(store.write(make_table) for _ in range(20)))
        await asyncio.gather(*(store.read(all_notes, long=long) for long in (True, False) * 10))


def refused(text: str, match: str):
    async def unit(tx: Tx) -> None:
        for method in (tx.execute, tx.fetch, tx.fetch_one):
            for _ in range(2):
                with pytest.raises(e.StatementFailed, match=match):
                    await method(text)

    return unit


@pytest.mark.parametrize(
    ("text", "match"),
    [(text, "may not begin or end transactions") for text in TRANSACTIONS]
    + [(text, "nor change its connection") for text in CONNECTION]
    + [(text, "one statement at a time") for text in SEVERAL],
)
async def test_a_unit_may_say_nothing_that_outlasts_it_however_often_it_was_said_before(
    tmp_path: Path, text: str, match: str
) -> None:
    async with opened(tmp_path) as store:
        await use_every_word(store)
        unit = refused(text, match)
        await store.write(unit)
        await asyncio.gather(*(store.write(unit) for _ in range(3)))
        await store.read(unit)
        await store.read(unit, long=True)
        await use_every_word(store)


@pytest.mark.parametrize("text", ["COMMIT", "RELEASE unit", "ROLLBACK", "ROLLBACK TO unit"])
async def test_a_unit_that_tries_to_end_its_transaction_takes_nobody_with_it(
    tmp_path: Path, text: str
) -> None:
    async def ends(tx: Tx) -> None:
        await insert(99)(tx)
        await tx.execute(text)

    async with opened(tmp_path) as store:
        await use_every_word(store)
        units = [insert(1), ends, insert(2), ends, insert(3)]
        results = await asyncio.gather(*map(store.write, units), return_exceptions=True)
        assert [isinstance(result, e.StatementFailed) for result in results] == [
            *(False, True, False, True, False)
        ]
        assert await store.read(all_notes) == [1, 2, 3]


@pytest.mark.parametrize("text", ONE)
async def test_one_statement_is_one_however_many_semicolons_it_holds(
    tmp_path: Path, text: str
) -> None:
    async def unit(tx: Tx) -> None:
        rows = await tx.fetch(text)
        assert rows != []
        assert await tx.fetch_one(text) == rows[0]

    async with opened(tmp_path) as store:
        await store.write(make_table)
        for ask in (store.write, store.read, in_thread(store)):
            await ask(unit)


async def test_a_trigger_is_one_statement(tmp_path: Path) -> None:
    trigger = (
        "CREATE TRIGGER copy AFTER INSERT ON notes WHEN new.id < 10 BEGIN "
        "INSERT INTO notes VALUES (new.id + 10, ';'); "
        "INSERT INTO notes VALUES (new.id + 20, ''); END"
    )
    async with opened(tmp_path) as store:
        await store.write(make_table)
        await store.write(lambda tx: tx.execute(trigger))
        await store.write(insert(1))
        assert await store.read(all_notes) == [1, 11, 21]


def test_our_own_words_stay_prepared_and_those_of_units_that_were_refused_do_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "folkmoot.db"
    make_private(path)
    words = (BEGIN, ROLLBACK, BEGIN_WRITING, SAVE, KEEP, COMMIT)
    with closing(connect(path)) as connection:
        tx = SqliteTx(connection)
        for word in words:
            connection.execute(word)
        before = connection.cache_stats()["misses"]
        for _ in range(10):
            for word in words:
                connection.execute(word)
        assert connection.cache_stats()["misses"] == before
        tx.guarding = True
        for _ in range(3):
            with pytest.raises(apsw.AuthError):
                connection.execute("COMMIT")
        kept = {entry["query"] for entry in connection.cache_stats(True)["entries"]}
        assert kept.issuperset(words)
        assert "COMMIT" not in kept


async def test_a_change_of_the_schema_leaves_units_and_our_words_working(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await use_every_word(store)
        with closing(apsw.Connection(str(store.path))) as other:
            for number in range(3):
                other.execute(f"ALTER TABLE notes ADD COLUMN other{number} TEXT")
                await asyncio.gather(*(store.write(insert(number * 5 + n)) for n in range(5)))
                for long in (False, True):
                    notes = await store.read(all_notes, long=long)
                    assert notes == list(range(number * 5 + 5))
                    await store.read(refused("COMMIT", "may not begin or end"), long=long)
