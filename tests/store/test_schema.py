from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from folkmoot.core import errors as e
from folkmoot.store import SqliteStore
from folkmoot.store.schema import check_schema, digest_of, load_schema, migrate
from folkmoot.store.sqlite import connect, make_private
from tests.store.support import opened

RECORD = "CREATE TABLE schema_migrations (version BIGINT, sha256 TEXT);\n"
FIRST = f"{RECORD}CREATE TABLE one (id BIGINT);\nINSERT INTO one VALUES (1);\n"
SECOND = "-- More.\nCREATE TABLE two (\n    id BIGINT\n);\n"
BROKEN = "CREATE TABLE two (id BIGINT);\nINSERT INTO three VALUES (1);\n"


def database(folder: Path) -> apsw.Connection:
    path = folder / "folkmoot.db"
    make_private(path)
    return connect(path)


def test_a_step_is_added_to_a_database_that_has_those_before_it(tmp_path):
    with closing(database(tmp_path)) as connection:
        assert check_schema(connection, [FIRST]) == 0
        migrate(connection, [FIRST])
        assert check_schema(connection, [FIRST, SECOND]) == 1
        for _ in range(2):
            migrate(connection, [FIRST, SECOND])
            assert check_schema(connection, [FIRST, SECOND]) == 2
        assert connection.execute("SELECT * FROM one").fetchall() == [(1,)]
        assert connection.execute("SELECT * FROM two").fetchall() == []
        recorded = connection.execute("SELECT version, sha256 FROM schema_migrations").fetchall()
        assert recorded == [(1, digest_of(FIRST)), (2, digest_of(SECOND))]


@pytest.mark.parametrize("before", [[], [FIRST]], ids=["new", "in use"])
def test_a_failing_step_is_undone_as_a_whole_and_named(tmp_path, before):
    with closing(database(tmp_path)) as connection:
        migrate(connection, before)
        with pytest.raises(e.MigrationFailed, match=r"Step 2 of the schema failed: .*three"):
            migrate(connection, [FIRST, BROKEN])
        assert check_schema(connection, [FIRST]) == len(before)
        migrate(connection, [FIRST, SECOND])
        assert check_schema(connection, [FIRST, SECOND]) == 2


@pytest.mark.parametrize("other", [[FIRST], [SECOND, FIRST], [FIRST, BROKEN]])
def test_a_database_that_other_texts_made_is_left_alone(tmp_path, other):
    with closing(database(tmp_path)) as connection:
        migrate(connection, [FIRST, SECOND])
        with pytest.raises(e.DatabaseVersion):
            migrate(connection, other)
        assert check_schema(connection, [FIRST, SECOND]) == 2


LATER = "INSERT INTO schema_migrations (version, sha256) VALUES (2, 'later')"
OTHER = "UPDATE schema_migrations SET sha256 = 'other'"


@pytest.mark.parametrize("change", [LATER, OTHER], ids=["newer", "other"])
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
async def test_a_database_of_another_version_is_refused_untouched_and_the_way_out_is_told(
    tmp_path, change, mode
):
    told = r"folkmoot\.db: was written by another version of Folkmoot\..*export.*new data folder"
    async with opened(tmp_path) as store:
        path = store.path
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"{change}; PRAGMA journal_mode = {mode}").fetchall()
    before = path.read_bytes()
    with pytest.raises(e.DatabaseVersion, match=told):
        await SqliteStore.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["folkmoot.db"]


def test_comments_and_how_lines_end_do_not_change_a_text():
    assert digest_of(SECOND.replace("\n", "\r\n").replace("More", "Other")) == digest_of(SECOND)
    assert digest_of(SECOND.replace("two", "too")) != digest_of(SECOND)


def test_a_database_of_another_program_is_refused(tmp_path):
    with closing(database(tmp_path)) as connection:
        connection.execute("CREATE TABLE recipes (id)").fetchall()
        with pytest.raises(e.DatabaseCorrupt, match="not a Folkmoot database"):
            migrate(connection, [FIRST])


def test_a_database_in_use_that_is_migrated_is_logged_and_a_new_one_is_not(tmp_path, caplog):
    caplog.set_level("INFO", "folkmoot.store.schema")
    with closing(database(tmp_path)) as connection:
        migrate(connection, [FIRST])
        assert caplog.messages == []
        migrate(connection, [FIRST, SECOND])
        migrate(connection, [FIRST, SECOND])
    [line] = caplog.records
    assert (line.getMessage(), line.from_schema, line.to_schema) == (
        "the database was migrated", 1, 2,
    )  # fmt: skip


def test_several_processes_may_migrate_at_once(tmp_path):
    make_private(tmp_path / "folkmoot.db")

    def attempt(_: int) -> int:
        with closing(connect(tmp_path / "folkmoot.db")) as connection:
            migrate(connection, [FIRST, SECOND])
            return check_schema(connection, [FIRST, SECOND])

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(attempt, range(8))) == {2}
    with closing(database(tmp_path)) as connection:
        assert connection.execute("SELECT count(*) FROM one").fetchall() == [(1,)]


async def test_a_new_database_has_the_whole_schema_and_no_other_tables(store):
    assert (await store.info()).schema == len(load_schema())
    assert await store.check() == []


async def test_opening_the_same_new_database_twice_at_once_is_safe(tmp_path):
    opening = (SqliteStore.open(tmp_path / "folkmoot.db") for _ in range(4))
    stores = await asyncio.gather(*opening)
    assert len({store.identity.database_id for store in stores}) == 1
    for store in stores:
        await store.close()
