"""The log of changes: what other nodes must not miss, written with the change itself.

A bus carries events fast and may lose them, and whoever published one may die after the commit. So
an event that caches and open connections depend on is also a row, in the transaction of its unit.
Every node reads the rows once a second, and whenever its bus lost something, and gives its own
listeners what they have not heard. A node that cannot read them for a while doubts what it knows.

Numbers of rows are given before the commit, so a lower one may become visible after a higher one.
Rows are therefore read by their transaction: all that may have ended since the last look.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from folkmoot.cluster.lease import boot_time
from folkmoot.core import errors as e
from folkmoot.core.events import (
    ACCOUNTS,
    CREDENTIALS,
    EXCESS,
    GRANTS,
    MEMBERS,
    PINS,
    ROOMS,
    SESSIONS,
)
from folkmoot.store.postgres.dialect import POSTGRES, translate_error

if TYPE_CHECKING:
    from folkmoot.core.ports import NodeBus
    from folkmoot.store.tx import Published

LOG = logging.getLogger(__name__)

LOGGED: Final = frozenset(
    pattern.partition(".")[0]
    for pattern in (ACCOUNTS, CREDENTIALS, EXCESS, GRANTS, MEMBERS, PINS, ROOMS, SESSIONS)
)
"""The first words of subjects whose events nobody may miss."""
LOOK_SECONDS: Final = 1.0
"""How often the log is read where nothing was missed."""
TRUST_SECONDS: Final = 2.0
"""How long a node believes what it knows without reading the log."""
KEPT_SECONDS: Final = 3_600.0
AWAY_SECONDS: Final = 1_800.0
"""A node that could not read the log for so long may have missed what is kept no more."""
TRIM_SECONDS: Final = 60.0

NOTE: Final = """INSERT INTO changes (subject, event) SELECT subject, event
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS each (subject, event, place)
    ORDER BY place RETURNING id"""
BEGIN: Final = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
READ: Final = """WITH view AS (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS low)
    SELECT low, id, subject, event FROM view
    LEFT JOIN changes ON tx >= $1::text::xid8 ORDER BY id"""
TRIM: Final = "DELETE FROM changes WHERE at < extract(epoch FROM clock_timestamp()) - $1"


class ChangeLog:
    """Writes and follows the log for one node."""

    def __init__(
        self, connected: Callable[[], AbstractAsyncContextManager[Any]], bus: NodeBus
    ) -> None:
        self._connected = connected
        self._bus = bus
        self._from = "0"
        self._read_at = self._trimmed_at = 0.0
        self._woken = asyncio.Event()
        self._doubting: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.is_lost = False
        """Whether changes may have been missed for good."""

    async def open(self) -> None:
        """Begin: what is changed from now on will be read."""
        async with self._connected() as connection:
            asked_at, booted = self._loop.time(), boot_time()
            self._from = await connection.fetchval(BEGIN)
        self._trust(asked_at, booted)

    async def note(self, connection: Any, events: Sequence[Published]) -> list[int]:
        """Write the events of a unit that nobody may miss; the number of each, or 0."""
        logged = [event.subject.partition(".")[0] in LOGGED for event in events]
        if not any(logged):
            return [0] * len(events)
        chosen = [event for event, is_logged in zip(events, logged, strict=True) if is_logged]
        subjects = [event.subject for event in chosen]
        texts = [bytes(event.data).decode() for event in chosen]
        rows = await connection.fetch(NOTE, subjects, texts)
        numbers = iter(sorted(row[0] for row in rows))
        return [next(numbers) if is_logged else 0 for is_logged in logged]

    async def follow(self) -> None:
        """Read the log until cancelled."""
        end = self._bus.listen_missed(self._woken.set)
        is_failing = False
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._woken.wait()
                self._woken.clear()
                try:
                    async with asyncio.timeout(TRUST_SECONDS):
                        await self.look()
                except (*POSTGRES, e.StoreError) as error:
                    if not is_failing:
                        told = error if isinstance(error, e.StoreError) else translate_error(error)
                        LOG.warning("the log of changes was not read: %s", told.message)
                    is_failing = True
                else:
                    if is_failing:
                        LOG.info("the log of changes is read again")
                    is_failing = False
        finally:
            end()
            if self._doubting is not None:
                self._doubting.cancel()

    async def look(self) -> None:
        """Give this node's listeners what they have not heard."""
        asked_at, booted = self._loop.time(), boot_time()
        async with self._connected() as connection:
            rows = await connection.fetch(READ, self._from)
            if asked_at - self._trimmed_at > TRIM_SECONDS:
                self._trimmed_at = asked_at
                await connection.execute(TRIM, KEPT_SECONDS)
        if booted - self._read_at > AWAY_SECONDS:
            self.is_lost = True
        self._from = rows[0][0]
        self._bus.replay([(row[1], row[2], row[3].encode()) for row in rows if row[1] is not None])
        self._trust(asked_at, booted)

    def require(self) -> None:
        """Raise if this node may have missed changes for good."""
        if self.is_lost:
            raise e.DatabaseUnreachable(
                "The database was out of reach for too long to know what changed. Restart the hub."
            )

    def _trust(self, asked_at: float, booted: float) -> None:
        """What is known is as good as when the log was asked for.

        `booted` is that moment on the clock that also runs while the machine sleeps.
        """
        self._read_at = booted
        self._doubt_at(asked_at + TRUST_SECONDS)

    def _doubt_at(self, when: float) -> None:
        if self._doubting is not None:
            self._doubting.cancel()
        self._doubting = self._loop.call_at(when, self._doubt)

    def _doubt(self) -> None:
        self._bus.doubt()
        self._doubt_at(self._loop.time() + LOOK_SECONDS)
