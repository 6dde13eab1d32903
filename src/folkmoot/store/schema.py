"""The schema of a database: `schema.sql`, and what releases after the first have added to it.

A database records the texts that made it. It is opened only if this program has the same ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from typing import Final

import apsw

from folkmoot.core import errors as e
from folkmoot.store.sqlite import has_table, is_empty, run
from folkmoot.store.tx import BEGIN, BEGIN_WRITING, COMMIT, ROLLBACK

logger = logging.getLogger(__name__)

STEPS: Final[tuple[str, ...]] = ()
"""The SQL that each release after the first adds, which SQLite and PostgreSQL both understand.

It only adds: nodes of the release before work on beside those of this one. Once it is released it
is never changed.
"""
RECORDED: Final = "SELECT sha256 FROM schema_migrations ORDER BY version"
WAY_OUT: Final = (
    "Open it with that version. To move on, export each person's data there ('folkmoot export'), "
    "and start this version with {}."
)


def load_schema() -> list[str]:
    """The texts that make a database, in order."""
    return [(files("folkmoot.store") / "schema.sql").read_text(encoding="utf-8"), *STEPS]


def digest_of(sql: str) -> str:
    """What tells a text that was changed; comments, and how lines end, do not count."""
    lines = (line for line in sql.splitlines() if line and not line.startswith("--"))
    return sha256("\n".join(lines).encode()).hexdigest()


def count_applied(
    recorded: Sequence[str], texts: Sequence[str], where: str, empty: str = "a new data folder"
) -> int:
    """How many of the texts a database has; raises if it has others."""
    known = [digest_of(text) for text in texts[: len(recorded)]]
    if known != list(recorded):
        raise e.DatabaseVersion(
            f"{where}: was written by another version of Folkmoot. {WAY_OUT.format(empty)}"
        )
    return len(known)


def check_schema(connection: apsw.Connection, texts: Sequence[str]) -> int:
    """How many of the texts the database has, if this program may use it."""
    path = connection.filename
    if not has_table(connection, "schema_migrations"):
        if not is_empty(connection):
            raise e.DatabaseCorrupt(f"{path}: is not a Folkmoot database; it has other tables.")
        return 0
    return count_applied([row[0] for row in run(connection, RECORDED)], texts, path)


def migrate(connection: apsw.Connection, texts: Sequence[str]) -> None:
    """Make the schema, or bring it to the newest; several processes may try at once."""
    with transaction(connection, BEGIN):
        applied = check_schema(connection, texts)
    if applied == len(texts):
        return
    with transaction(connection, BEGIN_WRITING):
        applied = check_schema(connection, texts)
        for version, text in enumerate(texts[applied:], applied + 1):
            try:
                run(connection, text)
            except apsw.Error as error:
                raise e.MigrationFailed(f"Step {version} of the schema failed: {error}.") from error
            record = "INSERT INTO schema_migrations (version, sha256) VALUES (?, ?)"
            run(connection, record, (version, digest_of(text)))
    tell_migrated(applied, len(texts))


def tell_migrated(before: int, after: int) -> None:
    """Log that a database in use has a newer schema now, which older releases do not open."""
    if before:
        logger.info("the database was migrated", extra={"from_schema": before, "to_schema": after})


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
