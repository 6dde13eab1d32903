"""A process that a test has forked from the loaded program, held as if it were started."""

from __future__ import annotations

import atexit
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Self

from tests.forge.fresh import UNBUFFERED, Surroundings

ROOT = Path(__file__).parents[2]
# How variables begin that are read when Python starts, and so cannot be changed for a fork.
AT_START = ("PYTHON", "LC_", "LANG")
LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
Limits = Mapping[int, tuple[int, int]]


class Forge:
    """The loaded program; it ends when its socket closes, which is at the latest when we end."""

    def __init__(self) -> None:
        self.environ = at_start(os.environ)
        self._socket, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-m", "tests.forge.program", str(number)]
            silent = dict.fromkeys(("stdin", "stdout"), subprocess.DEVNULL)
            self._child = subprocess.Popen(command, cwd=ROOT, pass_fds=[number], **silent)
        atexit.register(self._close)

    def order(self, what: object, *descriptors: int) -> int:
        """Give an order on a socket of its own, so that one nobody waits for harms no other."""
        channel, theirs = socket.socketpair()
        with channel:
            with theirs:
                socket.send_fds(self._socket, [b"!"], [theirs.fileno(), *descriptors])
            channel.sendall(f"{json.dumps(what)}\n".encode())
            with channel.makefile("rb") as answer:
                line = answer.readline()
        assert line, "the loaded program did not answer"
        return int(line)

    def _close(self) -> None:
        self._socket.close()
        self._child.wait()


@cache
def forge() -> Forge:
    """The loaded program of this process, made when it is first needed."""
    return Forge()


def at_start(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that Python reads when it starts."""
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(AT_START) and name != UNBUFFERED
    }


class Streams:
    """The descriptors that a process gets as its streams, and our ends of those that are pipes."""

    def __init__(self, *given: int | IO[Any] | None) -> None:
        self.theirs: list[int] = []
        self.ours: list[int | None] = []
        self._made: list[int] = []
        for number, stream in enumerate(given):
            descriptor, end = self._make(number, stream)
            self.theirs.append(descriptor)
            self.ours.append(end)

    def _make(self, number: int, given: int | IO[Any] | None) -> tuple[int, int | None]:
        if given == subprocess.PIPE:
            reading, writing = os.pipe()
            theirs, ours = (writing, reading) if number else (reading, writing)
            self._made.append(theirs)
            return theirs, ours
        if given == subprocess.DEVNULL:
            self._made.append(os.open(os.devnull, os.O_RDWR))
            return self._made[-1], None
        if given is None:
            return number, None
        return (given if isinstance(given, int) else given.fileno()), None

    def close(self) -> None:
        """Close what is theirs, once they have it."""
        for descriptor in self._made:
            os.close(descriptor)


class Forked:
    """`folkmoot` with these arguments; held like a `subprocess.Popen` that speaks text."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        limits: Limits | None = None,
    ) -> None:
        assert at_start(env) == forge().environ, "run `python -m folkmoot` with these variables"
        self.args = ["folkmoot", *arguments]
        self.returncode: int | None = None
        self._reaping = threading.Lock()
        surroundings = Surroundings(
            self.args,
            dict(env),
            str(cwd or Path.cwd()),
            [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN],
            [(each, (limits or {}).get(each) or resource.getrlimit(each)) for each in LIMITS],
        )
        streams = Streams(stdin, stdout, stderr)
        self._life, theirs = os.pipe()
        try:
            self.pid = forge().order(surroundings, theirs, *streams.theirs)
        finally:
            os.close(theirs)
            streams.close()
        writing, reading, erring = streams.ours
        self.stdin = None if writing is None else os.fdopen(writing, "w")
        self.stdout = None if reading is None else os.fdopen(reading)
        self.stderr = None if erring is None else os.fdopen(erring)

    def poll(self) -> int | None:
        """How it ended, if it has."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has."""
        if self.returncode is None:
            # The sign of life is open in no other process, so that its end is theirs.
            ended, _, _ = select.select([self._life], [], [], timeout)
            if not ended:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            with self._reaping:
                if self.returncode is None:
                    self.returncode = forge().order(self.pid)
                    os.close(self._life)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless its end was told: until then the number is its own."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Tell it to stop."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(
        self,
        input: str | bytes | None = None,  # noqa: A002 - as Popen names it
        timeout: float | None = None,
    ) -> tuple[str, str]:
        """Write to it, read what it says until it ends, and close its streams."""
        ends = None if timeout is None else time.monotonic() + timeout
        readers = [Reader(stream) for stream in (self.stdout, self.stderr)]
        if self.stdin:
            data = input.encode() if isinstance(input, str) else input or b""
            # It may have ended without reading.
            with suppress(BrokenPipeError), self.stdin:
                self.stdin.buffer.write(data)
        for reader in readers:
            reader.join(None if ends is None else max(0, ends - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(None if ends is None else max(0, ends - time.monotonic()))
        out, err = (reader.read for reader in readers)
        return out, err

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                stream.close()
        self.wait()


class Reader(threading.Thread):
    """Reads all of a stream and closes it."""

    def __init__(self, stream: IO[str] | None) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self.read = ""
        self.start()

    def run(self) -> None:
        if self._stream:
            with self._stream:
                self.read = self._stream.read()


def run(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    input: str | bytes | None = None,  # noqa: A002 - as `subprocess.run` names it
    timeout: float | None = None,
    limits: Limits | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `folkmoot` to its end, like `subprocess.run`; without input there is nothing to read."""
    pipe = subprocess.PIPE
    stdin = subprocess.DEVNULL if input is None else pipe
    streams = {"stdin": stdin, "stdout": pipe, "stderr": pipe}
    child = Forked(arguments, env=env, cwd=cwd, limits=limits, **streams)
    try:
        out, err = child.communicate(input, timeout)
    except BaseException:
        child.kill()
        raise
    return subprocess.CompletedProcess(child.args, child.wait(), out, err)
