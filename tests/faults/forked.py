"""Hubs that are forked from one loaded program, to be killed by the hundred."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.faults import forge
from tests.process import environment


class Forked(NamedTuple):
    """A hub that listens."""

    pid: int
    port: int


class Forge:
    """Starts hubs on one data folder, one after the other."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._log = log
        with log.open("w") as stderr:
            self._child = subprocess.Popen(
                [sys.executable, forge.__file__, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=environment(FOLKMOOT_RATE_LIMITS="off", FOLKMOOT_LOG_LEVEL="warning"),
            )

    @contextmanager
    def hub(self) -> Iterator[Forked]:
        """A hub that is there until it is killed, at the latest on leaving."""
        self._order()
        pid = self._read(r"Forked (\d+)")
        try:
            yield Forked(pid, self._read(r"Listening on .*:(\d+)"))
        finally:
            os.kill(pid, signal.SIGKILL)
            self._order()
            assert self._read(r"Ended (-?\d+)") == -signal.SIGKILL, self._log.read_text()

    def _order(self) -> None:
        assert self._child.stdin
        self._child.stdin.write("\n")
        self._child.stdin.flush()

    def _read(self, pattern: str) -> int:
        assert self._child.stdout
        for line in self._child.stdout:
            if found := re.search(pattern, line):
                return int(found[1])
        raise AssertionError(f"the forge has ended: {self._log.read_text()}")

    def close(self) -> None:
        assert self._child.stdin
        self._child.stdin.close()
        self._child.wait()
        if self._child.stdout:
            self._child.stdout.close()
