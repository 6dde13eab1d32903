"""Starts those who are measured, each on its processor, and ends them together."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks import proxy_peer
from benchmarks.mail_servers import STOP_SECONDS, Running, started
from benchmarks.proxy_load import PLAIN, HttpSubject, StdioSubject, Words
from benchmarks.proxy_peer import STATELESS
from benchmarks.proxy_servers import http_floor, http_server

START_SECONDS = 20
PAUSE_SECONDS = 0.05
PEER = str(Path(proxy_peer.__file__))
PORT = "{port}"
PLACE = ("--host", "127.0.0.1", "--port", PORT)


class Cores(NamedTuple):
    """The processor of who is measured, and that of all the others."""

    measured: int | None
    others: int | None


class Places:
    """Everyone who was started; `close` ends them."""

    def __init__(self, runner: asyncio.Runner, folder: Path, cores: Cores) -> None:
        folder = Path(tempfile.mkdtemp(dir=folder))
        self._runner = runner
        self._folder = folder
        self._cores = cores
        self._stack = ExitStack()
        self._tapes = 0
        # Nothing is left in the user's own folders.
        homes = dict.fromkeys(("XDG_STATE_HOME", "XDG_RUNTIME_DIR"), str(folder))
        self._homes = {**homes, "PYTHONUNBUFFERED": "1"}

    def close(self) -> None:
        """End everyone, the last first."""
        self._stack.close()

    def server(self, era: str = STATELESS, tools: int = 1) -> Running:
        """The server over HTTP."""
        return self._stack.enter_context(http_server(self._cores.others, era, tools))

    def floor(self, url: str) -> Running:
        """The bare HTTP proxy."""
        return self._stack.enter_context(http_floor(url, self._cores.measured))

    def peer(self, era: str = STATELESS) -> list[str]:
        """The command of the server on standard input and output."""
        core = "-" if self._cores.others is None else str(self._cores.others)
        return [sys.executable, "-S", "-E", PEER, "answer", core, era]

    def pipe(self) -> list[str]:
        """The command of the pipe to it."""
        core = "-" if self._cores.measured is None else str(self._cores.measured)
        return [sys.executable, "-S", "-E", PEER, "pipe", core, *self.peer()]

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "folkmoot", "proxy", *arguments]

    def recording(self) -> list[str]:
        """What has our proxy record on a new tape."""
        self._tapes += 1
        return ["--record", str(self._folder / f"tape-{self._tapes}.jsonl")]

    def proxy(self, *arguments: str) -> Running:
        """Our proxy, over HTTP."""
        command = self.command("--listen", "127.0.0.1:0", *arguments)
        return self._stack.enter_context(started(command, self._homes, self._cores.measured))

    def over_http(
        self, running: Running, *, stateless: bool = False, words: Words = PLAIN
    ) -> HttpSubject:
        """Callers of someone."""
        pids = family(running.pid)
        subject = HttpSubject(self._runner, running.port, pids, stateless=stateless, words=words)
        self._stack.callback(subject.close)
        return subject

    def on_pipes(self, command: Sequence[str], *, measured: bool = True) -> StdioSubject:
        """A client of someone on pipes."""
        core = self._cores.measured if measured else self._cores.others
        subject = StdioSubject(command, core, {**os.environ, **self._homes})
        self._stack.callback(subject.close)
        return subject

    def rival(self, command: str, *arguments: str) -> Running:
        """`mcp-proxy`, in front of a command."""
        return self.stranger(command, *PLACE, "--log-level", "ERROR", "--", *arguments)

    def stranger(self, *command: str) -> Running:
        """Somebody else's server, which is told its port; `{port}` stands for it."""
        port = free_port()
        ours = os.sched_getaffinity(0)
        os.sched_setaffinity(0, ours if self._cores.measured is None else {self._cores.measured})
        child = subprocess.Popen(
            [str(port) if word == PORT else word for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.sched_setaffinity(0, ours)
        self._stack.callback(end_group, child)
        wait_for(port)
        return Running(port, child.pid)


def family(pid: int) -> list[int]:
    """A process and those it started, but for the server behind it."""
    found = [pid]
    for parent in found:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        found += [int(child) for child in children if PEER not in command_of(int(child))]
    return found


def command_of(pid: int) -> str:
    """What a process was started as."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Wait until someone listens."""
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE_SECONDS)
        else:
            return


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a process and those it started."""
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(STOP_SECONDS / 4)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
