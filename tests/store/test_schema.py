from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from folkmoot.core import errors as e
from folkmoot.store import SqliteStore
from folkmoot.store.schema import Migration, load_migrations, migrate, schema_version
from folkmoot.store.sqlite import connect, make_private
from tests.store.support import opened

FIRST = Migration(1, "first", "CREATE TABLE one (id BIGINT);\nINSERT INTO one VALUES (1);\n")
SECOND = Migration(2, "second", "-- More.\nCREATE TABLE two (\n    id BIGINT\n);\n")
BROKEN = Migration(2, "broken", "CREATE TABLE two (id BIGINT);\nINSERT INTO three\nVALUES (1);\n")


def database(folder: Path) -> apsw.Connection:
    path = folder / "folkmoot.db"
    make_private(path)
    return connect(path)


def test_migrations_are_applied_in_order_and_recorded(tmp_path: Path) -> None:
    with closing(database(tmp_path)) as connection:
        assert schema_version(connection) == 0
        assert migrate(connection, [FIRST]) == 1
        assert migrate(connection, [FIRST, SECOND]) == 2
        assert migrate(connection, [FIRST, SECOND]) == 2
        recorded = connection.execute("SELECT version, name, sha256 FROM schema_migrations")
        assert recorded.fetchall() == [(1, "first", FIRST.sha256), (2, "second", SECOND.sha256)]


def test_a_failing_migration_is_undone_as_a_whole_and_names_file_and_statement(
    tmp_path: Path,
) -> None:
    with closing(database(tmp_path)) as connection:
        with pytest.raises(
            e.MigrationFailed, match=r"002_broken\.sql failed at 'INSERT INTO three'"
        ):
            migrate(connection, [FIRST, BROKEN])
        assert schema_version(connection) == 1
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE name = 'two'").fetchall()
        assert tables == []
        assert migrate(connection, [FIRST, SECOND]) == 2


def test_a_database_that_is_newer_than_the_program_is_left_alone(tmp_path: Path) -> None:
    with closing(database(tmp_path)) as connection:
        migrate(connection, [FIRST, SECOND])
        with pytest.raises(e.DatabaseNewer, match="schema 2; this one knows 1"):
            migrate(connection, [FIRST])


async def test_the_store_refuses_a_newer_database_and_leaves_it_as_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        path = store.path
    with closing(connect(path)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'later', '', 0)")
    before = path.read_bytes()
    with pytest.raises(e.DatabaseNewer):
        await SqliteStore.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["folkmoot.db"]


def test_a_migration_that_was_edited_after_it_was_applied_is_refused(tmp_path: Path) -> None:
    edited = Migration(1, "first", FIRST.sql + "-- A word more.\n")
    with closing(database(tmp_path)) as connection:
        migrate(connection, [FIRST])
        with pytest.raises(e.MigrationEdited, match=r"different 001_first\.sql"):
            migrate(connection, [edited, SECOND])
        assert schema_version(connection) == 1


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(database(tmp_path)) as connection:
        connection.execute("CREATE TABLE recipes (id)").fetchall()
        with pytest.raises(e.DatabaseCorrupt, match="not a Folkmoot database"):
            migrate(connection, [FIRST])


def test_several_processes_may_migrate_at_once(tmp_path: Path) -> None:
    make_private(tmp_path / "folkmoot.db")

    def attempt(_: int) -> int:
        with closing(connect(tmp_path / "folkmoot.db")) as connection:
            return migrate(connection, [FIRST, SECOND])

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(attempt, range(8))) == {2}
    with closing(database(tmp_path)) as connection:
        assert connection.execute("SELECT count(*) FROM one").fetchall() == [(1,)]


def test_a_statement_may_hold_semicolons_comments_and_a_trigger() -> None:
    sql = (
        "-- One; two.\nCREATE TABLE a (t TEXT DEFAULT ';');\n\n"
        "CREATE TRIGGER b AFTER INSERT ON a BEGIN\n  DELETE FROM a;\n  SELECT 1;\nEND;\n"
        "INSERT INTO a VALUES ('x;\ny')"
    )
    statements = Migration(1, "a", sql).statements()
    assert [statement.split()[0:2] for statement in statements] == [
        ["CREATE", "TABLE"],
        ["CREATE", "TRIGGER"],
        ["INSERT", "INTO"],
    ]
    assert statements[2].endswith("'x;\ny')")


def test_the_migrations_of_the_program_count_without_a_gap() -> None:
    assert load_migrations()[0].file == "001_foundation.sql"


def test_a_gap_in_the_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "001_a.sql").write_text("")
    (tmp_path / "003_b.sql").write_text("")
    (tmp_path / "README.md").write_text("")
    with pytest.raises(e.MigrationFailed, match="without a gap"):
        load_migrations(tmp_path)


def test_how_lines_end_does_not_change_a_migration(tmp_path: Path) -> None:
    (tmp_path / "001_first.sql").write_bytes(FIRST.sql.replace("\n", "\r\n").encode())
    assert load_migrations(tmp_path)[0].sha256 == FIRST.sha256


async def test_opening_the_same_new_database_twice_at_once_is_safe(tmp_path: Path) -> None:
    path = tmp_path / "folkmoot.db"
    stores = await asyncio.gather(*(SqliteStore.open(path) for _ in range(4)))
    assert len({store.identity.database_id for store in stores}) == 1
    for store in stores:
        await store.close()
