"""The one writer: a thread that runs waiting units and commits them together.

What arrives while a commit runs goes into the next one, so the cost of a sync is shared by all who
wait for it; the more wait, the more share. The cost of a unit does not depend on what is stored.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from contextlib import suppress
from math import inf
from queue import Empty
from threading import Thread
from time import monotonic, perf_counter
from typing import TypeVar

import apsw
from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.ports import Unit
from folkmoot.store.erasure import PageCleaner
from folkmoot.store.jobs import Answer, Job, JobQueue, answer_all, deliverable
from folkmoot.store.sqlite import copy_log, empty_log, translate
from folkmoot.store.tx import (
    BEGIN_WRITING,
    COMMIT,
    KEEP,
    ROLLBACK,
    SAVE,
    UNDO,
    SqliteTx,
    drive,
)

T = TypeVar("T")

LOG = logging.getLogger(__name__)

BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Upper bounds of the buckets in which the sizes of committed batches are counted."""
MAX_BATCH = BATCH_BOUNDS[-1]
CHECKPOINT_PAGES = 4_000
"""Of the write-ahead log. A page that it has many times is copied once: a longer log costs less."""
RESTART_PAGES = 16_384
RESTART_WAIT_MS = 100
EMPTY_LOG_SECONDS = 30.0
"""How long what was deleted may stay in the write-ahead log while no reader needs it."""
EMPTY_LOG_RETRY_SECONDS = 5.0
IDLE_PAUSE = 0.005
BUSY_PAUSE = 0.05
"""Seconds from cleaning a few pages to cleaning more, while nobody writes and while they do."""

UNCLEANED = "Copies of what was deleted may still be in the database file: %s"
LOST = "The writer failed and undid what it was doing; see the log."


class WriterCounts(Struct):
    """The writer's own counts; only its thread changes them."""

    units: int = 0
    failed_units: int = 0
    commits: int = 0
    failed_commits: int = 0
    commit_seconds: float = 0.0
    batch_sizes: list[int] = field(default_factory=lambda: [0] * len(BATCH_BOUNDS))
    checkpoints: int = 0
    failed_checkpoints: int = 0
    wal_pages: int = 0

    def committed(self, units: int, seconds: float) -> None:
        """Count one commit and its units."""
        self.commits += 1
        self.units += units
        self.commit_seconds += seconds
        self.batch_sizes[bisect_left(BATCH_BOUNDS, units)] += 1


class Writer:
    """Owns the writing connection and the thread that uses it."""

    def __init__(
        self,
        connection: apsw.Connection,
        queue: JobQueue,
        cleaner: PageCleaner | None = None,
        *,
        empty_log_seconds: float = EMPTY_LOG_SECONDS,
    ) -> None:
        self.counts = WriterCounts()
        self.damage: e.DatabaseCorrupt | None = None
        """What was found when nobody waited who could be told."""
        self._connection = connection
        self._cleaner = cleaner
        self._clean_at = inf if cleaner is None or not cleaner.is_due else monotonic()
        self._queue = queue
        self._tx = SqliteTx(connection, publishes=True)
        self._checkpoint_at = CHECKPOINT_PAGES
        self._empty_log_seconds = empty_log_seconds
        self._empty_log_at = monotonic() + empty_log_seconds
        """When the write-ahead log is to be emptied: never, while it is empty."""
        connection.set_wal_hook(self._note_wal)
        self._thread = Thread(target=self._work, name="folkmoot-writer", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread to end, which it does after the queue was closed and drained."""
        self._thread.join()

    def _work(self) -> None:
        last = False
        while not last:
            batch, last = self._take_batch()
            if batch:
                self._queue.answer(self._settle(batch))
            # After the answers, so that nobody waits for it.
            self._tidy(idle=not batch)
        self._close()

    def _take_batch(self) -> tuple[list[Job], bool]:
        """Everything that waits, up to a limit, and whether the queue has ended.

        Nothing, if the time to empty the write-ahead log or to clean pages comes first.
        """
        batch: list[Job] = []
        left = min(self._empty_log_at, self._clean_at) - monotonic()
        try:
            job = self._queue.take(timeout=None if left == inf else max(0.0, left))
        except Empty:
            return batch, False
        while job is not None:
            # Whoever went away before the unit began wants nothing done.
            if not job.caller.cancelled():
                batch.append(job)
            if len(batch) == MAX_BATCH:
                return batch, False
            try:
                job = self._queue.take_more()
            except Empty:
                return batch, False
        return batch, True

    def _settle(self, batch: list[Job]) -> list[Answer]:
        """Commit a batch; whatever goes wrong, nobody waits for ever and the writer goes on."""
        try:
            return self._commit_batch(batch)
        except BaseException as error:
            LOG.exception("The writer lost a transaction.")
            self._roll_back()
            told = translate(error) if isinstance(error, apsw.Error) else e.StatementFailed(LOST)
            return answer_all(batch, told)

    def _commit_batch(self, batch: list[Job]) -> list[Answer]:
        """Run and commit a batch: a unit that fails undoes itself, a commit that fails undoes all.

        Units seldom fail after they wrote, so none has a savepoint at first. When one does, or when
        SQLite gives up the whole transaction because a disk fills or fails, the other units are run
        again without it, each with a savepoint of its own: so no unit is run again twice because
        others failed.
        """
        failed: list[Answer] = []
        isolated = False
        while batch:
            done: list[Job] = []
            answers: list[Answer] = []
            try:
                self._connection.execute(BEGIN_WRITING)
            except apsw.Error as error:
                self.counts.failed_commits += 1
                return failed + answer_all(batch, translate(error))
            for position, job in enumerate(batch):
                self._tx.events.clear()
                try:
                    result = self._run_unit(job.unit, isolated=isolated)
                    answers.append(Answer(job.caller, result, events=tuple(self._tx.events)))
                    done.append(job)
                except BaseException as error:  # noqa: BLE001 - whatever a unit raises is its caller's
                    self.counts.failed_units += 1
                    failed.append(Answer(job.caller, error=deliverable(error)))
                    if not self._connection.in_transaction:
                        batch = done + batch[position + 1 :]
                        isolated = len(batch) > 1
                        break
            else:
                return failed + self._commit(done, answers)
        return failed

    def _run_unit(self, unit: Unit[T], *, isolated: bool) -> T:
        """Run a unit; if it raises it is undone, and only if it is isolated without the others."""
        self._tx.wrote = False
        if isolated:
            self._connection.execute(SAVE)
        try:
            result = drive(unit, self._tx)
            if isolated:
                self._connection.execute(KEEP)
        except BaseException:
            if isolated:
                self._undo(UNDO)
            elif self._tx.wrote:
                self._undo((ROLLBACK,))
            raise
        return result

    def _undo(self, statements: tuple[str, ...]) -> None:
        try:
            for statement in statements:
                if self._connection.in_transaction:
                    self._connection.execute(statement)
        except apsw.Error:
            # Rather nothing of the whole batch than something of a unit that failed.
            self._roll_back()

    def _roll_back(self) -> None:
        with suppress(apsw.Error):
            if self._connection.in_transaction:
                self._connection.execute(ROLLBACK)

    def _commit(self, jobs: list[Job], answers: list[Answer]) -> list[Answer]:
        """Commit what was run and answer accordingly."""
        started = perf_counter()
        try:
            self._connection.execute(COMMIT)
        except apsw.Error as error:
            self._roll_back()
            # A rule the schema defers is broken by one of them: let each commit alone.
            if isinstance(error, apsw.ConstraintError) and len(jobs) > 1:
                return [answer for job in jobs for answer in self._commit_batch([job])]
            self.counts.failed_commits += 1
            return answer_all(jobs, translate(error))
        self.counts.committed(len(jobs), perf_counter() - started)
        return answers

    def _note_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self.counts.wal_pages:
            self._checkpoint_at = CHECKPOINT_PAGES
        self.counts.wal_pages = pages
        if self._empty_log_at == inf:
            self._empty_log_at = monotonic() + self._empty_log_seconds
        return apsw.SQLITE_OK

    def _tidy(self, *, idle: bool) -> None:
        try:
            if monotonic() >= self._empty_log_at:
                self._empty_log()
            elif self.counts.wal_pages >= self._checkpoint_at:
                self._checkpoint()
            if monotonic() >= self._clean_at + (0 if idle else BUSY_PAUSE):
                self._clean_pages()
        except BaseException:
            LOG.exception("The write-ahead log was not copied.")

    def _checkpoint(self) -> None:
        """Copy the write-ahead log into the database, so that the log can begin anew.

        Readers that overlap without a pause keep a plain checkpoint from ever reaching the log's
        end. Past a limit we wait for them, briefly; reads are short.
        """
        pages = self.counts.wal_pages
        self._checkpoint_at = pages + CHECKPOINT_PAGES
        wait = RESTART_WAIT_MS if pages >= RESTART_PAGES else None
        self._note_changed_pages()
        try:
            if copy_log(self._connection, restart_within_ms=wait):
                self.counts.checkpoints += 1
            else:
                self._checkpoint_at = pages + RESTART_PAGES
        except apsw.Error as error:
            self.counts.failed_checkpoints += 1
            failure = translate(error)
            if isinstance(failure, e.DatabaseCorrupt):
                self.damage = failure
            LOG.warning("The write-ahead log was not copied: %s", failure.message)

    def _empty_log(self) -> None:
        """Empty the write-ahead log, which holds what was deleted until it is overwritten.

        It is done some time after any commit, since a change may erase as well as a deletion. A
        reader that needs the log, such as a backup, delays it.
        """
        self._empty_log_at = monotonic() + self._empty_log_seconds
        self._note_changed_pages()
        try:
            if empty_log(self._connection, RESTART_WAIT_MS):
                if self._cleaner is not None:
                    self._cleaner.log_is_empty()
                    self._clean_at = monotonic()
                self.counts.checkpoints += 1
                self.counts.wal_pages = 0
                self._checkpoint_at = CHECKPOINT_PAGES
                self._empty_log_at = inf
            else:
                retry = min(EMPTY_LOG_RETRY_SECONDS, self._empty_log_seconds)
                self._empty_log_at = monotonic() + retry
        except apsw.Error as error:
            self.counts.failed_checkpoints += 1
            LOG.warning("The write-ahead log was not emptied: %s", translate(error).message)

    def _note_changed_pages(self) -> None:
        if self._cleaner is not None and self.counts.wal_pages:
            try:
                self._cleaner.note_log(self.counts.wal_pages)
            except OSError as error:
                LOG.warning("The write-ahead log could not be looked at: %s", error.strerror)

    def _clean_pages(self) -> None:
        """Clean a few pages of what was deleted, and the others after a pause."""
        self._clean_at = inf
        if self._cleaner is None:
            return
        try:
            self._cleaner.clean()
        except OSError as error:
            LOG.warning(UNCLEANED, error.strerror)
            self._clean_at = monotonic() + self._empty_log_seconds
        else:
            if self._cleaner.is_due:
                self._clean_at = monotonic() + IDLE_PAUSE

    def _close(self) -> None:
        try:
            # Closing removes the log unless another program reads the database at this moment.
            self._empty_log()
            self._connection.close()
        except apsw.Error as error:
            LOG.warning("The database was not closed cleanly: %s", translate(error).message)
        if self._cleaner is not None:
            try:
                while self._cleaner.is_due:
                    self._cleaner.clean()
            except OSError as error:
                LOG.warning(UNCLEANED, error.strerror)
            self._cleaner.close()
