"""Short queries in the loop itself, where no thread has to be waited for; long ones are given up.

A thread beside a busy loop waits for the interpreter at every statement, which costs more than most
queries do. How long a query will take is not known before it runs, so it begins here with so many
of SQLite's steps to use; one that needs more, or meets a long text, is run anew by the readers'
threads.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from threading import get_ident
from time import perf_counter
from typing import TypeVar

import apsw

from folkmoot.core import errors as e
from folkmoot.core.ports import Unit
from folkmoot.store.jobs import deliverable
from folkmoot.store.sqlite import never_wait, refuse_longer, stop_when, translate
from folkmoot.store.tx import BEGIN, ROLLBACK, SqliteTx, drive

T = TypeVar("T")

LOG = logging.getLogger(__name__)

STEPS_A_LOOK = 1_000
LOOKS = 16
"""A query is given up at this look: after some 16,000 steps, which take about a millisecond."""
LONGEST_VALUE = 8_192
"""Bytes. Steps do not tell how long a text is either, nor what its reader makes of it."""
TURN_SECONDS = 0.0005
"""How long the queries of one turn of the loop may take before each lets others go first."""
SLOW_SECONDS = 0.02
RESTS = 10
"""After a query that took so long and read the disk, all go to the threads for so many times that.

Steps do not tell how slow a disk is; so one on which such queries are the rule has the loop for a
tenth of the time at most.
"""

THIS_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


def blocks_read() -> int:
    """How many blocks this thread has had to wait for: what the system had in memory is none."""
    return resource.getrusage(THIS_THREAD).ru_inblock


class GivenUp(Exception):
    """The query is to be run anew by a thread."""


class LoopReader:
    """Owns the connection that reads in the loop."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.reads = 0
        self.failed = 0
        self.given_up = 0
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._connection = connection
        self._tx = SqliteTx(connection)
        self._looks = 0
        self._in_turn = False
        self.spent = 0.0
        """Seconds that the queries of this turn of the loop have taken."""
        self._resting_until = 0.0
        self._blocks = blocks_read()
        never_wait(connection)
        refuse_longer(connection, LONGEST_VALUE)
        stop_when(connection, self._look, STEPS_A_LOOK)

    def is_free(self) -> bool:
        """Whether a query may begin here: not inside a unit, nor while the disk is slow."""
        if get_ident() != self._thread or self._tx.running:
            return False
        return perf_counter() >= self._resting_until

    def read(self, query: Unit[T]) -> T:
        """Run a query on one consistent view of what is committed, or raise `GivenUp`."""
        if not self._in_turn:
            self._in_turn = True
            self._loop.call_soon(self._end_turn)
        connection, tx = self._connection, self._tx
        started = perf_counter()
        self._looks = 0
        tx.too_big = False
        try:
            connection.execute(BEGIN)
            try:
                result = drive(query, tx)
            finally:
                if connection.in_transaction:
                    connection.execute(ROLLBACK)
        except BaseException as error:
            told = deliverable(error)
            if self._is_given_up() or isinstance(told, e.DatabaseLocked):
                self.given_up += 1
                raise GivenUp from error
            self.reads += 1
            self.failed += 1
            if told is error:
                # It holds this frame, which must not hold it.
                del told
                raise
            raise told from error
        finally:
            self._account(started)
        # A query that caught the error of the statement that was given up is not answered.
        if self._looks >= LOOKS or tx.too_big:
            self.given_up += 1
            raise GivenUp
        self.reads += 1
        return result

    def close(self) -> None:
        """Close the connection; blocks."""
        try:
            self._connection.close()
        except apsw.Error as error:
            LOG.warning("A reader was not closed cleanly: %s", translate(error).message)

    def _look(self) -> bool:
        self._looks += 1
        # What ends the transaction must not be interrupted.
        return self._tx.running and self._is_given_up()

    def _is_given_up(self) -> bool:
        return self._looks >= LOOKS or self._tx.too_big

    def _account(self, started: float) -> None:
        ended = perf_counter()
        took = ended - started
        self.spent += took
        if took > SLOW_SECONDS:
            blocks = blocks_read()
            # A query is slow too when the machine has others to serve; threads would not help.
            if blocks > self._blocks:
                self._resting_until = ended + took * RESTS
            self._blocks = blocks

    def _end_turn(self) -> None:
        self._in_turn = False
        self.spent = 0.0
