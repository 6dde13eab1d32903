"""A process of ours with everything it starts: all of it ends when we are done with it."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self, cast

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.mcp.pipes import given
from folkmoot.taskgroups import waited

LEFT_BEHIND_SECONDS: Final = 0.5
"""How long what a process left behind may take to end, at each stage of asking for it."""
LOOK_SECONDS: Final = 0.02

GUARD: Final = """
import os, select, signal, struct, sys, time
told, until, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
server = os.getpid()
if time.clock_gettime(clock) >= until:
    sys.exit("it was to end before it began")
if os.fork():
    os.close(told)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit("%s: %s" % (command[0], error.strerror))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for end in range(3):
    os.close(end)
while os.getppid() == server:
    left = until - time.clock_gettime(clock)
    if left > 0 and not select.select([told], [], [], min(left, 0.1))[0]:
        continue
    renewed = os.read(told, 4096) if left > 0 else b""
    if not renewed:
        os.killpg(0, signal.SIGKILL)
    until = struct.unpack("d", renewed[-8:])[0]
"""
"""Becomes a command, and kills it with its children at a time, or when whoever started it is gone.

The time is on the clock that also runs while the machine sleeps; a later one comes on a pipe.
"""
_REASONS: Final = {
    errno.ENOENT: "it was not found",
    errno.EACCES: "it may not be executed",
    errno.ENOEXEC: "it is not a program",
    errno.E2BIG: "its arguments are too long",
}


class Child(asyncio.SubprocessProtocol):
    """A process in its own process group, so that one signal reaches its children too."""

    def __init__(self, on_exit: Callable[[], object]) -> None:
        self.process_id = 0
        self._on_exit = on_exit
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int | None,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        on_exit: Callable[[], object],
        guard: tuple[int, float] | None = None,
    ) -> Child:
        """Start a command; `ServerUnreachable` says why it cannot be.

        A `guard` is a pipe to read from and until when the command may run at first; see `GUARD`.
        """
        if not command or not command[0]:
            raise e.ServerUnreachable("The server's command is empty.")
        program = command[0]
        if any("\0" in part for part in (*command, *(env or {}), *(env or {}).values())):
            # Everything from there on would be cut off without a word.
            raise e.ServerUnreachable("The server's command or environment holds a null character.")
        if cwd is not None and not Path(cwd).is_dir():  # noqa: ASYNC240 - starting blocks as well
            raise e.ServerUnreachable(f"{program} cannot be started: there is no folder {cwd}.")
        if guard is not None:
            if "/" not in program and not shutil.which(
                program, path=(env or os.environ).get("PATH")
            ):
                raise e.ServerUnreachable(f"{program} cannot be started: it was not found.")
            told, until = guard
            command = (sys.executable, "-I", "-S", "-c", GUARD, str(told), repr(until), *command)
        child = cls(on_exit)
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=None if env is None else dict(env),
                cwd=None if cwd is None else os.fspath(cwd),
                start_new_session=True,
                pass_fds=() if guard is None else guard[:1],
            )
        except OSError as error:
            reason = _REASONS.get(error.errno or 0) or (error.strerror or "unknown").lower()
            raise e.ServerUnreachable(f"{program} cannot be started: {reason}.") from None
        except asyncio.CancelledError:
            # The loop kills what it was just starting, and must not end before it.
            await waited(child._exited, LEFT_BEHIND_SECONDS)
            raise
        return child

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.process_id = self._transport.get_pid()

    def process_exited(self) -> None:
        """The process has ended, whatever its children do."""
        self._exited.set()
        self._on_exit()

    @property
    def returncode(self) -> int | None:
        """The exit code: None while running, negative for the signal that ended it."""
        return None if self._transport is None else self._transport.get_returncode()

    async def code_within(self, seconds: float) -> int | None:
        """The exit code, if the process ends within some seconds."""
        await waited(self._exited, seconds)
        return self.returncode

    def kill(self) -> None:
        """End the process and everything it started, without asking."""
        self._signal(signal.SIGKILL)

    async def end(self, grace: float) -> None:
        """Wait for the process to end; then ask it to, then kill the whole group."""
        gone = False
        try:
            for order in (None, signal.SIGTERM, signal.SIGKILL):
                if order is not None:
                    self._signal(order)
                gone = await self._ended_within(grace)
                if gone:
                    return
        finally:
            # Also where we were cancelled and had no time to ask.
            if not gone:
                self._signal(signal.SIGKILL)
                await waited(self._exited, LEFT_BEHIND_SECONDS)
            if self._transport is not None:
                self._transport.close()

    async def _ended_within(self, seconds: float) -> bool:
        if not await waited(self._exited, seconds):
            return False
        try:
            async with asyncio.timeout(min(seconds, LEFT_BEHIND_SECONDS)):
                # Nobody tells us of the end of what are not our own children.
                while self._signal(0):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            return False
        return True

    def _signal(self, number: int) -> bool:
        """Signal the group; whether there is anyone in it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process_id, number)
            return True
        return False


class Ends(Entity):
    """Pipes to a process that is about to start.

    On leaving, the ends that are the process's are closed here, and those of ours that no loop has.
    """

    _stack: ExitStack = field(default_factory=ExitStack)
    _given: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pipe(self, *, we_read: bool = True, kept: bool = False) -> tuple[int, int]:
        """A pipe: the end of the process, and ours; one that is `kept` is the caller's to close."""
        read, write = os.pipe()
        mine, its = (read, write) if we_read else (write, read)
        self._stack.callback(os.close, its)
        if not kept:
            self._stack.callback(self._close, mine)
        return its, mine

    async def read(self, fd: int, protocol: asyncio.BaseProtocol) -> None:
        """Have the loop read one of our ends."""
        self._given.add(fd)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, given(fd, "rb"))

    async def write(self, fd: int, protocol: asyncio.BaseProtocol) -> None:
        """Have the loop write to one of our ends."""
        self._given.add(fd)
        await asyncio.get_running_loop().connect_write_pipe(lambda: protocol, given(fd, "wb"))

    def _close(self, fd: int) -> None:
        if fd not in self._given:
            os.close(fd)
