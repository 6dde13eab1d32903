"""Runs the tests in several processes, forked when all tests are collected: `pytest -n 4`.

Collecting, with all that the tests import, takes as long as thousands of tests, and so is done
once. The session hands out the tests, some of one file at a time, to whichever worker has none
left, and reports what comes back. A worker that dies fails the test it ran, and is replaced.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

END_SECONDS = 60
# As many tests of one file are given to a worker at once; the last ones keep it from ending.
MOST_AT_ONCE = 16

# After so many new objects a worker looks for garbage: tests leave little, and end soon.
YOUNG_OBJECTS = 10_000


class Workers:
    """Runs the collected tests; pytest's own way of running them is not used."""

    def __init__(self, count: int, *rehearsals: Callable[[], object]) -> None:
        self._count = count
        # What is done once before the fork, so that workers share what a first time makes.
        self._rehearsals = rehearsals
        self._workers: list[Worker] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            # Tests of several files run at a time: each would begin a line of its own.
            terminal.showfspath = False
        left = deque(portions(session.items))
        prepare(session)
        for rehearse in (*self._rehearsals, try_one_example):
            rehearse()
        freeze()
        try:
            for number in range(min(self._count, len(left))):
                self._workers.append(Worker(session, number, self._workers))
            self._run(session, left)
        finally:
            for worker in self._workers:
                worker.end()
        return True

    def _run(self, session: pytest.Session, left: deque[range]) -> None:
        for worker in self._workers:
            worker.give(left.popleft())
        while busy := [worker for worker in self._workers if worker.portion]:
            for channel in wait([worker.channel for worker in busy]):
                worker = next(worker for worker in busy if worker.channel is channel)
                if not worker.finish_test():
                    self._workers.remove(worker)
                    if worker.portion:
                        left.appendleft(worker.portion)
                    worker = Worker(session, worker.number, self._workers)
                    self._workers.append(worker)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
                if left and not worker.portion:
                    worker.give(left.popleft())


def portions(items: list[pytest.Item]) -> Iterator[range]:
    """Some tests of one file each, as a range of numbers in the list."""
    first = 0
    for number in range(1, len(items) + 1):
        if (
            number == len(items)
            or number - first == MOST_AT_ONCE
            or items[number].path != items[first].path
        ):
            yield range(first, number)
            first = number


def prepare(session: pytest.Session) -> None:
    """Make what the workers share."""
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    if forked := sys.modules.get("tests.forge.forked"):
        forked.forge()


def freeze() -> None:
    """Let the workers begin with what is here."""
    # One of a hub that has stopped may be about to end.
    for thread in {*threading.enumerate()} - {threading.current_thread()}:
        thread.join(END_SECONDS)
    assert threading.active_count() == 1, "a thread would be lost in the fork"
    gc.collect()
    # What was collected stays as it is, so that the workers share its memory.
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


@settings(max_examples=1, database=None, derandomize=True)
@given(text())
def try_one_example(_: str) -> None:
    """Have Hypothesis look for who holds its random numbers before that is frozen and not found.

    It also reads the tables of Unicode, which each worker would otherwise do.
    """


class Worker:
    """A process that runs tests, as the session sees it."""

    def __init__(self, session: pytest.Session, number: int, others: list[Worker]) -> None:
        self.number = number
        # The numbers of the tests it was given and has not finished; it runs the first of them.
        self.portion = range(0)
        self._session = session
        self.channel, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            for each in (self, *others):
                each.channel.close()
            be_worker(session, number, theirs)
        theirs.close()

    def give(self, portion: range) -> None:
        self.portion = portion
        with suppress(ConnectionError):
            self.channel.send(portion)

    def finish_test(self) -> bool:
        """Report the test that it has finished; false if it died of it."""
        item = self._session.items[self.portion[0]]
        self.portion = self.portion[1:]
        hook = item.ihook
        try:
            reports = self.channel.recv()
        except (EOFError, ConnectionError):
            died = f"The process that ran this test {how_it_ended(self.end())}."
            lost = pytest.TestReport(item.nodeid, item.location, {}, "failed", died, "call")
            hook.pytest_runtest_logreport(report=lost)
            return False
        for data in reports:
            report = hook.pytest_report_from_serializable(config=item.config, data=data)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def end(self) -> int:
        """Let it end, at once if it has something to do; its exit status."""
        self.channel.close()
        if self.portion:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def how_it_ended(status: int) -> str:
    return f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"


def be_worker(session: pytest.Session, number: int, channel: Connection) -> None:
    """Run what is given until there is no more, in a process that is a worker and ends as one."""
    status = 1
    try:
        manager = session.config.pluginmanager
        if terminal := manager.unregister(name="terminalreporter"):
            # It writes no more, but others ask it where to write.
            manager.register(Silent(terminal._tw), "terminalreporter")
        # What tests print goes to files that would be shared with the other workers.
        if capture := manager.getplugin("capturemanager"):
            capture.stop_global_capturing()
            capture.start_global_capturing()
        factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.mktemp(f"worker-{number}")
        reports = Reports(session.config)
        manager.register(reports)
        with suppress(EOFError):
            while True:
                portion = channel.recv()
                items = session.items[portion.start : portion.stop]
                for item, following in zip(items, [*items[1:], None], strict=True):
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                    channel.send(reports.take())
        status = 0
    except (KeyboardInterrupt, ConnectionError):
        pass
    except BaseException:  # noqa: BLE001 - nobody is there to catch it
        traceback.print_exc(file=sys.__stderr__)
    finally:
        # Nothing of the session is for a worker to end.
        os._exit(status)


class Silent:
    """Stands for pytest's terminal reporter in a worker."""

    def __init__(self, writer: Any) -> None:
        self._tw = writer


class Reports:
    """The reports of a test in a worker, in a form that can be sent."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(data)

    def take(self) -> list[Any]:
        taken, self._reports = self._reports, []
        return taken
