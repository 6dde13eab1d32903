"""What PostgreSQL says differently: types, schemas and errors.

Units and migrations are written once, in the SQL that SQLite and PostgreSQL share. Texts sort by
bytes only if a column says so, bytes are `BYTEA`, and sums of integers are decimals.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from folkmoot.core import errors as e

STATEMENTS_KEPT = 256
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 5.0
"""For how long a transaction may ask nothing of the server before that ends it, without a lease."""

RAN_AGAIN: tuple[type[Exception], ...] = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InvalidCachedStatementError,
)
"""A unit that ends with one of these lost a race, or met a migration, and is run again."""
LOST: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TooManyConnectionsError,
)
"""The connection is of no more use: it broke, or its server no longer accepts writes."""
POSTGRES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

FAILURES: tuple[tuple[type[BaseException], type[e.StoreError], str], ...] = (
    (asyncpg.IntegrityConstraintViolationError, e.ConstraintViolated, "A rule was broken"),
    (asyncpg.DiskFullError, e.DiskFull, "The disk of the database server is full"),
    (asyncpg.LockNotAvailableError, e.DatabaseLocked, "Another program holds the database"),
    (asyncpg.SerializationError, e.DatabaseLocked, "Other writers were faster"),
    (asyncpg.DeadlockDetectedError, e.DatabaseLocked, "Other writers were faster"),
    (asyncpg.DataCorruptedError, e.DatabaseCorrupt, "The database is damaged"),
    (asyncpg.IndexCorruptedError, e.DatabaseCorrupt, "The database is damaged"),
    (asyncpg.ReadOnlySQLTransactionError, e.DatabaseUnwritable, "The server accepts no writes"),
    (asyncpg.InsufficientPrivilegeError, e.DatabaseUnwritable, "The database user lacks a right"),
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        e.DatabaseUnwritable,
        "The server refuses the connection",
    ),
    (asyncpg.InvalidCatalogNameError, e.DatabaseUnwritable, "There is no such database"),
    (asyncpg.TooManyConnectionsError, e.DatabaseUnreachable, "The server has no connection left"),
    (asyncpg.PostgresIOError, e.DiskFailed, "The disk of the database server failed"),
    (
        asyncpg.OperatorInterventionError,
        e.DatabaseUnreachable,
        "The server is stopping or starting",
    ),
    (asyncpg.PostgresConnectionError, e.DatabaseUnreachable, "The connection was lost"),
    (
        asyncpg.IdleInTransactionSessionTimeoutError,
        e.DatabaseUnreachable,
        "The connection was lost",
    ),
    (asyncpg.TargetServerAttributeNotMatched, e.DatabaseUnwritable, "No server accepts writes"),
    (asyncpg.DataError, e.StatementFailed, "A value does not fit its place"),
    (asyncpg.PostgresError, e.StatementFailed, "A statement could not be run"),
    (asyncpg.ClientConfigurationError, e.DatabaseUnreachable, "The address is not valid"),
    (asyncpg.InterfaceError, e.DatabaseUnreachable, "The connection was lost"),
    (asyncpg.InternalClientError, e.DatabaseUnreachable, "The connection was lost"),
    (TimeoutError, e.DatabaseUnreachable, "The server does not answer"),
    (OSError, e.DatabaseUnreachable, "The server cannot be reached"),
)


def translate_error(error: BaseException, where: str = "") -> e.StoreError:
    """PostgreSQL's error as one of ours, with its own words behind."""
    kind, sentence = next((k, s) for source, k, s in FAILURES if isinstance(error, source))
    words = words_of(error)
    place = f"{where}: " if where else ""
    return kind(f"{place}{sentence}: {words}." if words else f"{place}{sentence}.")


@contextmanager
def connecting(where: str, named: str = "store.url") -> Iterator[None]:
    """Name the address where the server refuses a parameter in it, as a connection begins."""
    try:
        yield
    except (asyncpg.UndefinedObjectError, asyncpg.CantChangeRuntimeParamError) as error:
        told = f"{named} has a parameter that the server refuses: {words_of(error)}."
        raise e.SettingsError(f"{where}: {told}") from error


def words_of(error: BaseException) -> str:
    """An error's message in one line."""
    if isinstance(error, asyncpg.DataError):
        # What it says besides its kind repeats the value.
        return type(error).__name__
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.errno:
        # asyncio's own words repeat the address; that a host is unknown has a number below 0.
        return os.strerror(error.errno) if error.errno > 0 else str(error.strerror)
    return str(error).strip().split("\n")[0].rstrip(".")


def spelled_schema(sql: str) -> str:
    """A statement of a migration as PostgreSQL takes it."""
    sql = re.sub(r"\bBLOB\b", "BYTEA", sql)
    sql = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', sql)
    return sql.replace("lower(hex(randomblob(12)))", "substr(md5(random()::text), 1, 24)")


def as_number(text: str) -> int | float:
    """A sum of integers, as an integer again."""
    return float(text) if "." in text else int(text)


def limit_idle(seconds: float = IDLE_SECONDS) -> str:
    """The statement that has the server end a transaction in which nothing is asked for so long.

    A node that is paused, or without power, amid a unit keeps its locks until then, and others need
    them to take the node's rooms. It holds for its transaction alone, so it may pass a pooler.
    """
    return f"SET LOCAL idle_in_transaction_session_timeout = '{seconds * 1000:.0f}ms'"


async def use_our_types(connection: Any) -> None:
    """Have a connection answer with the Python types that SQLite answers with."""
    await connection.set_type_codec(
        "numeric", schema="pg_catalog", encoder=str, decoder=as_number, format="text"
    )
