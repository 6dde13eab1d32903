"""Hubs that are there to be killed, or have no room left, and what they are after it."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness import ask, run
from tests.process import Process


@contextmanager
def doomed(folder: Path, log: list[str]) -> Iterator[Process]:
    """A hub that runs until it is killed, at the latest on leaving; the log keeps what it said."""
    with Process(folder, FOLKMOOT_RATE_LIMITS="off", FOLKMOOT_LOG_LEVEL="warning") as hub:
        yield hub
        hub.child.kill()
        code, said = hub.ended()
        log.append(said)
        assert code == -signal.SIGKILL, said
        assert "Traceback" not in said


def check_starts(folder: Path) -> None:
    """A hub starts in a folder, works, and stops in good order."""
    with Process(folder) as hub:
        assert run(ask(hub.port, "/health/ready")).status == 200
        hub.stop()


def leave_room(hub: Process, size: int = resource.RLIM_INFINITY) -> None:
    """Let a hub make no file longer than this."""
    resource.prlimit(hub.child.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
