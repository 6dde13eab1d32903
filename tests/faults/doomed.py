"""Hubs that are there to be killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
