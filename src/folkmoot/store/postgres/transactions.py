"""Transactions on a pool of connections, run again when they lose a race or their connection."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakSet

import asyncpg

from folkmoot.core import errors as e
from folkmoot.core.ports import Row, Unit
from folkmoot.settings.types import without_password
from folkmoot.store.postgres.changes import ChangeLog
from folkmoot.store.postgres.dialect import LOST, POSTGRES, RAN_AGAIN, translate_error
from folkmoot.store.postgres.nodes import NodeLease
from folkmoot.store.postgres.server import ServerTimeline
from folkmoot.store.postgres.tx import ColumnTypes, PostgresTx
from folkmoot.store.tx import Published

T = TypeVar("T")

BEGIN = "BEGIN ISOLATION LEVEL SERIALIZABLE"
BEGIN_IN_ANY_ORDER = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
ATTEMPT_SECONDS = 20.0
"""How long a unit that loses races, or its connection, is tried again.

Where other nodes could go on instead, a lost connection is replaced for a lease's time at most.
"""
ENDED: tuple[type[BaseException], ...] = (*LOST, asyncio.CancelledError)
"""The connection is of no more use, or has a statement that nobody waits for."""
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.25


class Transactions:
    """The connections of a store, as long as its server and its lease stay the same."""

    def __init__(self, url: str, *, synchronous_replica: bool) -> None:
        self.where = without_password(url)
        self._pool: Any = None
        self._opened: WeakSet[Any] = WeakSet()
        self._lost_seconds = ATTEMPT_SECONDS
        """How long a lost connection is replaced before whoever needs it is told."""
        self._timeline = ServerTimeline(self.where, synchronous=synchronous_replica)
        self._lease: NodeLease | None = None
        self._log: ChangeLog | None = None
        self._limit_idle = ""
        self._closed = False
        self._types: ColumnTypes = {}
        self._to_vacuum = asyncio.Event()
        self._races = 0

    def _require_open(self) -> None:
        if self._closed:
            raise e.StoreClosed("The database is closed.")
        self._timeline.require_same()
        if self._log is not None:
            self._log.require()

    async def _run_alone(self, sql: str, params: Sequence[Any]) -> list[Row]:
        """The rows of one statement, which is run again if its connection is lost."""
        self._require_open()

        async def attempt() -> list[Row]:
            async with self._connected() as connection:
                return await PostgresTx(connection).fetch(sql, params)

        return await self._repeated(attempt)

    async def _repeated(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until a race is won or a lost connection replaced, but not for ever."""
        began = time.monotonic()
        pause, unique = FIRST_PAUSE, False
        failure: e.StoreError
        cause: BaseException
        while True:
            seconds = ATTEMPT_SECONDS
            try:
                return await attempt()
            except RAN_AGAIN as error:
                self._races += 1
                failure, cause = translate_error(error), error
            except LOST as error:
                failure, cause = translate_error(error, self.where), error
                seconds = self._lost_seconds
            except e.StoreError as error:
                # Someone else may have been first between our look and our insert: look again.
                if unique or not isinstance(error.__cause__, asyncpg.UniqueViolationError):
                    raise
                unique, failure, cause = True, error, error
            if time.monotonic() - began > seconds or self._closed:
                raise failure from cause
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - spreads, hides nothing
            pause = min(pause * 2, LONGEST_PAUSE)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        """A connection of the pool, which is replaced if it turns out to be lost."""
        self._require_lease()
        async with self._pool.acquire() as connection:
            self._timeline.require_same()
            try:
                # It may have ended while all connections were in use.
                self._require_lease()
                yield connection
            except ENDED:
                # The pool would wait for a server that is not there to end the statement.
                terminate(connection)
                raise

    def _require_lease(self) -> None:
        if self._lease is not None:
            self._lease.require()

    def _drop_connections(self) -> None:
        """Wait no longer for a server that does not answer."""
        for connection in list(self._opened):
            terminate(connection)

    @asynccontextmanager
    async def _begun(self, connection: Any, begin: str) -> AsyncIterator[None]:
        """A transaction, which is undone if something is raised in it, and else is to be ended."""
        await connection.execute(f"{begin};{self._limit_idle}")
        try:
            yield
        except ENDED:
            # A connection that is ended has undone it.
            raise
        except BaseException:
            with suppress(*POSTGRES):
                await connection.execute("ROLLBACK")
            raise

    async def _commit(self, unit: Unit[T], *, any_order: bool = False) -> tuple[T, list[Published]]:
        """Run a unit in a transaction of its own."""
        async with self._connected() as connection:
            tx = PostgresTx(connection, self._types, publishes=True)
            async with self._begun(connection, BEGIN_IN_ANY_ORDER if any_order else BEGIN):
                result = await unit(tx)
                tx.require_whole()
                await self._note(tx, connection)
            try:
                await connection.execute("COMMIT")
            except LOST as error:
                terminate(connection)
                raise self._unknown(error) from error
        if tx.changes:
            self._to_vacuum.set()
        return result, tx.events

    async def _run_single(self, unit: Unit[T]) -> tuple[T, list[Published]]:
        """Run a unit of one statement, which is a transaction by itself."""
        async with self._connected() as connection:
            tx = PostgresTx(connection, self._types, publishes=True, single=True)
            try:
                result = await unit(tx)
            except LOST as error:
                terminate(connection)
                raise self._unknown(error) from error
        self._to_vacuum.set()
        return result, []

    async def _note(self, tx: PostgresTx, connection: Any) -> None:
        """Log the events of a unit that other nodes may not miss."""
        if self._log is not None and tx.events:
            numbers = await self._log.note(connection, tx.events)
            tx.events = [
                event._replace(change=number)
                for event, number in zip(tx.events, numbers, strict=True)
            ]

    def _unknown(self, error: BaseException) -> e.StoreError:
        """What is said when the answer of a commit was lost."""
        told = translate_error(error, self.where)
        return type(told)(f"{told.message} It may have been done.")

    async def _ask_once(self, query: Unit[T]) -> T:
        """Run a query of one statement, which sees one view by itself."""
        async with self._connected() as connection:
            return await query(PostgresTx(connection, single=True))

    async def _ask_in_view(self, query: Unit[T]) -> T:
        async with self._connected() as connection:
            async with self._begun(connection, BEGIN_VIEW):
                result = await query(PostgresTx(connection))
            await connection.execute("COMMIT")
            return result


@contextmanager
def limited(connection: Any, seconds: float) -> Iterator[None]:
    """End a connection that is not done by then; cancelling would wait for its server."""
    limit = asyncio.get_running_loop().call_later(seconds, terminate, connection)
    try:
        yield
    finally:
        limit.cancel()


def terminate(connection: Any) -> None:
    """End a connection that is of no more use, which may be known already."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()
