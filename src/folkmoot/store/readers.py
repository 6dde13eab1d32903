"""A small pool of threads that read: each has a connection, and a query one consistent view."""

from __future__ import annotations

import logging
from threading import Thread

import apsw

from folkmoot.store.jobs import Answer, Job, JobQueue, deliverable
from folkmoot.store.sqlite import translate
from folkmoot.store.tx import BEGIN, ROLLBACK, SqliteTx, drive

LOG = logging.getLogger(__name__)


class Readers:
    """Owns the reading connections and their threads, which share one queue."""

    def __init__(self, connections: list[apsw.Connection], queue: JobQueue) -> None:
        self._queue = queue
        self._readers = [Reader(connection, queue) for connection in connections]

    @property
    def reads(self) -> int:
        """How many queries were answered."""
        return sum(reader.reads for reader in self._readers)

    @property
    def failed(self) -> int:
        """How many queries raised."""
        return sum(reader.failed for reader in self._readers)

    def join(self) -> None:
        """Wait for the threads to end, which they do after the queue was closed and drained."""
        for reader in self._readers:
            reader.thread.join()


class Reader:
    """A reading thread with its connection."""

    def __init__(self, connection: apsw.Connection, queue: JobQueue) -> None:
        self.reads = 0
        self.failed = 0
        self._connection = connection
        self._queue = queue
        self._tx = SqliteTx(connection)
        self.thread = Thread(target=self._work, name="folkmoot-reader", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while (job := self._queue.take()) is not None:
            if not job.caller.cancelled():
                self._queue.answer([self._read(job)])
        try:
            self._connection.close()
        except apsw.Error as error:
            LOG.warning("A reader was not closed cleanly: %s", translate(error).message)

    def _read(self, job: Job) -> Answer:
        self.reads += 1
        try:
            self._connection.execute(BEGIN)
            try:
                return Answer(job.caller, drive(job.unit, self._tx))
            finally:
                if self._connection.in_transaction:
                    self._connection.execute(ROLLBACK)
        except BaseException as error:  # noqa: BLE001 - whatever a query raises is its caller's
            self.failed += 1
            return Answer(job.caller, error=deliverable(error))
