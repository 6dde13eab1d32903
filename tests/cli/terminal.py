"""A terminal with someone at it: what a command shows is a screen, as an emulator draws it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import pyte

from tests.forge.forked import Forked

PATIENCE = 60.0
HISTORY = 2_000


class Terminal:
    """A command on a pseudo-terminal; everything it writes ever is in `raw`."""

    def __init__(
        self, arguments: Sequence[str], *, env: Any, cwd: Path, columns: int, rows: int = 24
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=HISTORY)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._leader, self._follower = os.openpty()
        self._set_size(columns, rows)
        kept = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES")}
        self.before = termios.tcgetattr(self._follower)
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), self._follower)
        self.process = Forked(arguments, cwd=cwd, env=kept, **streams)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._follower)
        os.close(self._leader)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller, and tell the command as a terminal does."""
        self._set_size(columns, rows)
        fewer = max(0, self._screen.lines - rows)
        self._screen.resize(rows, columns)
        # The rows that go are the upper ones, and the cursor stays with its text.
        self._screen.cursor.y = max(0, self._screen.cursor.y - fewer)
        self.process.send_signal(signal.SIGWINCH)

    def type(self, text: str) -> Self:
        """Press keys."""
        os.write(self._leader, text.encode())
        return self

    @property
    def rows(self) -> list[str]:
        """The rows of the screen."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        """What is on the screen, without empty rows at its end."""
        return "\n".join(self.rows).rstrip()

    @property
    def attributes(self) -> termios._AttrReturn:
        """How the terminal is set."""
        return termios.tcgetattr(self._follower)

    @property
    def echoes(self) -> bool:
        """Whether what is typed can be seen."""
        return bool(self.attributes[3] & termios.ECHO)

    def style_of(self, text: str) -> pyte.screens.Char:
        """How a text is drawn that is on the screen once at least."""
        for number, row in enumerate(self._screen.display):
            at = row.find(text)
            if at >= 0:
                return self._screen.buffer[number][at]
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text}")

    def wait_for(self, wanted: str | Callable[[Terminal], bool]) -> Self:
        """Watch the screen until a text is there, or until something is so."""
        ends = time.monotonic() + PATIENCE
        while not (wanted in self.text if isinstance(wanted, str) else wanted(self)):
            if time.monotonic() > ends:
                raise AssertionError(f"{wanted!r} never came; the screen is:\n{self.text}")
            self._read(0.05)
        return self

    def end(self) -> int:
        """How the command ended, and its last words on the screen."""
        ends = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < ends, self.text
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.wait()

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._leader], [], [], seconds)
        if not ready:
            return False
        data = os.read(self._leader, 65_536)
        self.raw += data
        self._stream.feed(data)
        return True
