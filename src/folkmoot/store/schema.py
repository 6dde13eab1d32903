"""Migrations: numbered SQL files, each applied once, in order, in a transaction of its own."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

import apsw
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.store.sqlite import has_table, is_complete, is_empty, run
from folkmoot.store.tx import BEGIN, BEGIN_WRITING, COMMIT, ROLLBACK

FILE_NAME = re.compile(r"(\d{3})_([a-z0-9_]+)\.sql")

CREATE_RECORD = """CREATE TABLE schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)"""


class Migration(Struct, frozen=True):
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.version:03}_{self.name}.sql"

    @property
    def sha256(self) -> str:
        """What tells an edited file; how lines end does not count."""
        return sha256(self.sql.encode()).hexdigest()

    def statements(self) -> list[str]:
        """Its statements, each ending at the end of a line."""
        found: list[str] = []
        lines: list[str] = []
        for line in self.sql.splitlines():
            if line.strip() and not line.lstrip().startswith("--"):
                lines.append(line)
            if lines and is_complete("\n".join(lines)):
                found.append("\n".join(lines))
                lines = []
        return [*found, "\n".join(lines)] if lines else found


def load_migrations(folder: Traversable | None = None) -> list[Migration]:
    """The migrations this program brings, which count from 1 without a gap."""
    folder = folder or files("folkmoot.store") / "migrations"
    found = []
    for file in folder.iterdir():
        if match := FILE_NAME.fullmatch(file.name):
            sql = file.read_text(encoding="utf-8").replace("\r\n", "\n")
            found.append(Migration(int(match[1]), match[2], sql))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise e.MigrationFailed(
            "The numbers of the migrations do not count from 001 without a gap."
        )
    return found


def schema_version(connection: apsw.Connection) -> int:
    """The number of the newest migration the database has; 0 for an empty one."""
    if not has_table(connection, "schema_migrations"):
        return 0
    return int(run(connection, "SELECT coalesce(max(version), 0) FROM schema_migrations")[0][0])


def check_schema(connection: apsw.Connection, known: list[Migration]) -> int:
    """The version the database is at, if this program may use it; raises what is wrong if not."""
    path = connection.filename
    if not has_table(connection, "schema_migrations"):
        if not is_empty(connection):
            raise e.DatabaseCorrupt(f"{path}: is not a Folkmoot database; it has other tables.")
        return 0
    version = schema_version(connection)
    if version > len(known):
        raise e.DatabaseNewer(
            f"{path}: was written by a newer Folkmoot (schema {version}; this one knows "
            f"{len(known)}). Use that version, or a backup from before."
        )
    applied = run(connection, "SELECT version, sha256 FROM schema_migrations ORDER BY version")
    for number, digest in applied:
        migration = known[number - 1]
        if migration.sha256 != digest:
            raise e.MigrationEdited(
                f"{path}: was created with a different {migration.file} than this program's; an "
                "applied migration must not be edited."
            )
    return version


def migrate(connection: apsw.Connection, known: list[Migration]) -> int:
    """Bring the database to the newest schema and answer its version.

    The version is always looked at inside a transaction, so several processes may try at once.
    """
    with transaction(connection, BEGIN):
        version = check_schema(connection, known)
    while version < len(known):
        with transaction(connection, BEGIN_WRITING):
            version = check_schema(connection, known)
            if version < len(known):
                apply(connection, known[version])
                version += 1
    return version


@contextmanager
def transaction(connection: apsw.Connection, begin: str) -> Iterator[None]:
    """Everything inside sees one state of the database and happens as a whole, or not at all."""
    connection.execute(begin)
    try:
        yield
        connection.execute(COMMIT)
    except BaseException:
        if connection.in_transaction:
            connection.execute(ROLLBACK)
        raise


def apply(connection: apsw.Connection, migration: Migration) -> None:
    """Run a migration's statements and record it, in the transaction that is open."""
    for statement in migration.statements():
        try:
            run(connection, statement)
        except apsw.Error as error:
            first = statement.splitlines()[0]
            raise e.MigrationFailed(f"{migration.file} failed at '{first}': {error}.") from error
    if not has_table(connection, "schema_migrations"):
        run(connection, CREATE_RECORD)
    run(
        connection,
        "INSERT INTO schema_migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)",
        (migration.version, migration.name, migration.sha256, int(time.time())),
    )
