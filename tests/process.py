"""A hub in a process of its own, which runs the command that a person runs."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Self

from tests.forge.forked import Forked
from tests.harness import Answer, ask

STOP_SECONDS = 60


def serving(folder: Path, port: int = 0) -> list[str]:
    """The arguments that make the command a hub, on a free port unless told."""
    return ["serve", "--port", str(port), "--data", str(folder)]


def environment(**variables: str) -> dict[str, str]:
    """Our environment without settings but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLKMOOT_")}
    return {**kept, "PYTHONUNBUFFERED": "1", **variables}


def ran(*command: object, timeout: float = 600, **options: Any) -> CompletedProcess[str]:
    """A program that has run to its end, however it ended."""
    words = list(map(str, command))
    told = {"capture_output": True, "text": True, "timeout": timeout, "check": False}
    return subprocess.run(words, **told, **options)


class Process:
    """A hub that listens; what it writes is read all the time, so that it never waits for us."""

    def __init__(self, folder: Path, *, port: int = 0, **variables: str) -> None:
        self.folder = folder
        self.child = Forked(
            serving(folder, port),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**variables),
        )
        self._logged: list[str] = []
        self._reading = threading.Thread(target=self._read_log)
        self._reading.start()
        assert self.child.stdout
        seen = ""
        while not (found := re.search(r"Listening on\s+\S+:(\d+)", seen)):
            line = self.child.stdout.readline()
            if not line:
                self.__exit__()
                raise AssertionError(f"the hub did not start: {seen}{''.join(self._logged)}")
            seen += line
        self.port = int(found[1])

    def says(self, pattern: str) -> str:
        """What it prints next that a pattern's group takes."""
        assert self.child.stdout
        while not (found := re.search(pattern, self.child.stdout.readline())):
            assert self.child.poll() is None, self.logged(20)
        return found[1]

    def _read_log(self) -> None:
        assert self.child.stderr
        self._logged.extend(self.child.stderr)

    def logged(self, lines: int) -> str:
        """The last lines that it logged until now."""
        return "".join(self._logged[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.wait()
        self._reading.join()
        for stream in (self.child.stdout, self.child.stderr):
            if stream:
                stream.close()

    def signal(self, number: signal.Signals) -> None:
        self.child.send_signal(number)

    def ended(self) -> tuple[int, str]:
        """How the hub ended, and what it said after it began."""
        code = self.child.wait(STOP_SECONDS)
        self._reading.join()
        assert self.child.stdout
        return code, self.child.stdout.read() + "".join(self._logged)

    def stop(self) -> str:
        """Stop in good order and answer what was said."""
        self.signal(signal.SIGTERM)
        code, output = self.ended()
        assert code == 0, output
        assert "Traceback" not in output, output
        return output

    async def held_request(self) -> asyncio.Task[Answer]:
        """A readiness check that is in flight: the hub has it and waits for the database."""
        request = asyncio.ensure_future(ask(self.port, "/health/ready"))
        while "in_flight 2.0" not in (await ask(self.port, "/metrics")).text:
            assert not request.done()
        return request

    async def refusing(self) -> None:
        """Wait until the hub accepts no more connections."""
        while True:
            try:
                await ask(self.port, "/health")
            except (OSError, asyncio.IncompleteReadError):
                return
