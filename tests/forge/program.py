"""The loaded program: each order on its socket starts a process, or tells how one has ended.

It runs one thread and reaps no process before it is asked how that ended, so that the number of a
process is its own for as long as a test may signal it. When whoever ordered is gone, it ends them
all, and then itself.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import mmap
import os
import pkgutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.forge import fresh

END_SECONDS = 60
# What the commands load of these, most of it only when it is needed.
PACKAGES = ("folkmoot.cli", "folkmoot.client", "folkmoot.mcp.client", "folkmoot.settings")
# What else they load.
LOADED = """
encodings.idna folkmoot.app folkmoot.bridge.keys folkmoot.bridge.serve folkmoot.export
folkmoot.names.listing folkmoot.offline folkmoot.relay.caller folkmoot.relay.play
folkmoot.relay.proxy folkmoot.relay.tape_server folkmoot.rotation http.client rich.console
rich.padding rich.progress rich.table ssl uvicorn.lifespan.off
"""

# The descriptors that come with an order to start: where to answer, a sign of life, streams.
START = 5


class Orders:
    """The socket on which orders come: a byte each, and with it the socket of that order."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._running: set[int] = set()

    def follow(self) -> list[str] | None:
        """Do what is ordered; the arguments of a command in its own process, or none at the end."""
        while True:
            sign, descriptors, _, _ = socket.recv_fds(self._socket, 1, START)
            if not sign:
                self._end()
                return None
            answer, *others = descriptors
            with socket.socket(fileno=answer) as channel:
                order = heard(channel)
                if order is None:
                    pass
                elif not others:
                    tell(channel, self._reap(order))
                elif pid := os.fork():
                    self._running.add(pid)
                else:
                    self._socket.close()
                    return become(channel, fresh.Surroundings(*order), others)
            for descriptor in others:
                os.close(descriptor)

    def _reap(self, pid: int) -> int:
        self._running.remove(pid)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _end(self) -> None:
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)


def become(
    channel: socket.socket, surroundings: fresh.Surroundings, descriptors: list[int]
) -> list[str]:
    """Be the process that was ordered; the sign of life is open for as long as it lives."""
    _life, *streams = descriptors
    fresh.take(surroundings, streams)
    # Only now: a signal that comes from here on does what it would to any process.
    tell(channel, os.getpid())
    return surroundings.arguments


def heard(channel: socket.socket) -> Any:
    """The order, or nothing if whoever gave it was stopped amid it."""
    with channel.makefile("rb") as reader, suppress(ConnectionError):
        line = reader.readline()
        return json.loads(line) if line.endswith(b"\n") else None


def tell(channel: socket.socket, number: int) -> None:
    with suppress(ConnectionError):
        channel.sendall(f"{number}\n".encode())


class End:
    """Ends a command as Python does, but for taking apart what was loaded, which costs the most."""

    def __init__(self) -> None:
        self.code: int | None = None
        # The first to be registered is the last to be run, after every thread and handler. Those
        # of the log write its last lines: nothing that loads it may be loaded before.
        assert "logging" not in sys.modules
        atexit.register(self._reached)

    def _reached(self) -> None:
        if self.code is not None:
            # What nobody holds any more may have something to say.
            gc.collect()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


def set_clock(ahead: float, jumps: str) -> None:
    """Have the machine's clock be wrong by some seconds, for what looks at it from now on.

    A file that has a number of eight bytes has it jump, whenever that number is another one.
    """
    from folkmoot.clock import SystemClock

    right = time.time
    if jumps:
        with Path(jumps).open("rb") as file:
            jumped = memoryview(mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)).cast("d")
        time.time = lambda: right() + ahead + jumped[0]
        SystemClock.now = staticmethod(time.time)
    elif ahead:
        time.time = lambda: right() + ahead


def perform(arguments: list[str], end: End) -> None:
    from folkmoot.cli import main as command

    ahead = float(os.environ.pop("TEST_CLOCK_AHEAD", "0"))
    set_clock(ahead, os.environ.pop("TEST_CLOCK_JUMPS", ""))
    try:
        command()
    except SystemExit as error:
        if isinstance(error.code, int):
            end.code = error.code
        if arguments[1:2] == ["serve"]:
            # A hub has let go of what was frozen, and to look at all of it takes long. What a hub
            # has to say when it is taken apart is heard from one that is started from nothing.
            gc.freeze()
        raise


def loaded() -> Iterator[str]:
    """The names of everything that any command may load."""
    yield from LOADED.split()
    for package in PACKAGES:
        found = importlib.import_module(package)
        yield from (each.name for each in pkgutil.walk_packages(found.__path__, f"{package}."))


def rehearse() -> None:
    """Load what the parser of commands loads when it is used, and keep what it builds.

    It builds all commands for each one that is run, which takes longer than most of them.
    """
    from folkmoot.cli import program

    program.get_command = cache(program.get_command)  # type: ignore[attr-defined]
    with redirect_stdout(io.StringIO()):
        program.get_command(program.app).main(["serve", "--help"], standalone_mode=False)


def rehearse_hub() -> None:
    """Run a hub once, so that forks share what a process makes for its first one."""
    import asyncio

    from folkmoot.app import Hub
    from folkmoot.settings.load import load

    async def start_and_stop(folder: str) -> None:
        loaded = load(environ={}, options={"data": folder, "port": "0"})
        async with Hub(loaded.settings, loaded=loaded).running():
            pass

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(start_and_stop(folder))


def main(descriptor: int) -> None:
    end = End()
    # Ctrl-C is for the tests, which have something left to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in loaded():
        importlib.import_module(name)
    rehearse()
    rehearse_hub()
    # One of a hub that has stopped may be about to end.
    for thread in {*threading.enumerate()} - {threading.current_thread()}:
        thread.join(END_SECONDS)
    assert threading.active_count() == 1, "a thread would be lost in the fork"
    gc.collect()
    # What is loaded stays as it is, so that forks share its memory.
    gc.freeze()
    arguments = Orders(descriptor).follow()
    if arguments is not None:
        perform(arguments, end)


if __name__ == "__main__":
    main(int(sys.argv[1]))
