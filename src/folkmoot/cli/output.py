"""What people see: plain text in a pipe, colour on a terminal, errors in one line, exit codes.

Other people's text is made safe for a terminal: nothing in it can move, hide or colour.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import typer

from folkmoot.core import errors as e
from folkmoot.telemetry.redaction import visible

if TYPE_CHECKING:
    from rich.console import Console


PROGRAM = "folkmoot"


def say(text: str = "", *, err: bool = False) -> None:
    """Text, seen at once; whatever is in it, the terminal gets nothing to obey."""
    typer.echo("\n".join(map(visible, text.split("\n"))), err=err)


def complain(*messages: str, kind: str = "error") -> None:
    """Messages on stderr, a line each, with the program's name in front."""
    for handler in logging.getLogger().handlers:
        # A hub's log is written by a thread: what was logged before this stands before it.
        handler.flush()
    label = f"{PROGRAM}: {kind}:"
    if coloured(sys.stderr):
        label = typer.style(label, fg="red" if kind == "error" else "yellow", bold=True)
    for message in messages:
        typer.echo(f"{label} {visible(message)}", err=True)


class Complaints(logging.Handler):
    """Shows log records as warnings, in a command that keeps no log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a log record as one warning."""
        said = record.getMessage()
        with suppress(OSError, ValueError):
            complain(f"{said[:1].upper()}{said[1:].rstrip('.')}.", kind="warning")


def coloured(stream: IO[str]) -> bool:
    """Whether colour is welcome: a terminal that is not dumb, and no `NO_COLOR`."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console() -> Console:
    """A rich console on stdout; rich is slow to import, so only those who draw pay for it."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as lines with their columns aligned, two spaces apart; a cell adds no line."""
    table = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def size(count: int) -> str:
    """A number of bytes for people, such as 1.5 MiB."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def duration(seconds: float) -> str:
    """A time span for people, in its two largest units."""
    left = int(seconds)
    parts: list[str] = []
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, length)
        if count or (parts and len(parts) < 2) or unit == "s":
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


SPANS = (
    (0x00, 0x1F),  # among them ESC, which begins terminal sequences
    (0x7F, 0x9F),  # DEL and C1, among them another way to begin one
    (0xAD, 0xAD),
    (0x061C, 0x061C),
    (0x180E, 0x180E),
    (0x200B, 0x200B),
    (0x200E, 0x200F),  # joiners before them belong to scripts and emoji, and stay
    (0x2028, 0x202E),  # line separators, and what turns the direction around
    (0x2060, 0x206F),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),  # tags: letters nobody sees
)
"""What could act on a terminal or hide in the text, as first and last code point."""

_CLASS = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in SPANS)
_HIDDEN = re.compile(f"[{_CLASS}]")
_HIDDEN_IN_LINES = re.compile(f"(?![\\n\\t])[{_CLASS}]")


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """The text with everything that acts or hides spelled out, line ends too."""
    return _HIDDEN.sub(_spelled, text)


def lines(text: str) -> list[str]:
    """The lines of a longer text, each safe to show; tabs stay."""
    return _HIDDEN_IN_LINES.sub(_spelled, text.replace("\r\n", "\n")).split("\n")


def say_data(value: Any) -> None:
    """A value as indented JSON in which nothing acts on a terminal either."""
    say(escape_json(pretty(value)))


def pretty(value: Any) -> str:
    """A JSON value over several lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def escape_json(text: str) -> str:
    """The same JSON with everything that acts or hides in its strings escaped."""
    return _HIDDEN_IN_LINES.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))


def moment(at: Any) -> str:
    """A point in time, in seconds or as RFC 3339 writes it, as the reader's clock shows it."""
    try:
        read = datetime.fromisoformat if isinstance(at, str) else datetime.fromtimestamp
        return read(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (TypeError, ValueError, OverflowError, OSError):
        return "some time"


class ExitCode(IntEnum):
    """How the `folkmoot` command ends."""

    OK = 0
    FAILED = 1
    USAGE = 2
    SETTINGS = 3
    DATA = 4
    LISTEN = 5
    NOT_RUNNING = 6
    UNREACHABLE = 7
    SIGNED_OUT = 8
    UNEXPECTED = 70
    INTERRUPTED = 130


ENDS: dict[type[e.FolkmootError], ExitCode] = {
    e.SettingsError: ExitCode.SETTINGS,
    e.SettingsUnwritable: ExitCode.SETTINGS,
    e.DataFolderError: ExitCode.DATA,
    e.StoreError: ExitCode.DATA,
    e.BusError: ExitCode.DATA,
    e.BackupFailed: ExitCode.FAILED,
    e.RestoreFailed: ExitCode.FAILED,
    e.ServeError: ExitCode.LISTEN,
    e.HubNotRunning: ExitCode.NOT_RUNNING,
    e.HubUnreachable: ExitCode.UNREACHABLE,
    e.NotSignedIn: ExitCode.SIGNED_OUT,
    e.FolkmootError: ExitCode.FAILED,
}


def exit_code(error: e.FolkmootError) -> ExitCode:
    """The code of the nearest class of the error that has one."""
    return next(ENDS[cls] for cls in type(error).__mro__ if cls in ENDS)


T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOST_PORT: Final = 65_535
ADDRESS: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]*)):([0-9]{1,5})")


def run_until_stopped(main: Coroutine[Any, Any, T]) -> T | None:
    """Run something until it ends or a signal asks it to; then the answer is None."""
    # Most commands never wait for two things at once.
    import asyncio

    import uvloop

    async def stoppable() -> T | None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        stopped = False

        def stop() -> None:
            nonlocal stopped
            stopped = True
            if task is not None:
                task.cancel()

        for each in SIGNALS:
            # `nohup` wants this to outlive the terminal. A shell that starts it with & only keeps
            # the Ctrl-C of others away: who sends SIGINT to it alone means it.
            if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
                loop.add_signal_handler(each, stop)
        try:
            return await main
        except asyncio.CancelledError:
            if not stopped:
                raise
            return None

    # What is loaded by now stays: the collector of garbage need not look through it ever again.
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, suppress(KeyboardInterrupt):
        return runner.run(stoppable())
    return None


def host_and_port(text: str) -> tuple[str, int]:
    """The two halves of an address; `:0` is any free port of this machine."""
    found = ADDRESS.fullmatch(text)
    if found is None or int(found[3]) > MOST_PORT:
        raise typer.BadParameter(
            f"--listen must be HOST:PORT, with a port from 0 to {MOST_PORT}, not {text!r}"
        )
    return found[1] or found[2] or "127.0.0.1", int(found[3])


def announce(what: str, url: str) -> None:
    """Say where clients find it, on standard output for whoever waits for that, and how it ends."""
    lines = (
        f"{what}  {url}/mcp",
        f"{'for HTTP+SSE at':>{len(what)}}  {url}/sse",
        "Press Ctrl-C to stop.",
    )
    # It serves all the same if nobody reads this.
    with suppress(OSError):
        for line in lines:
            say(line)


def explain_waiting(otherwise: str) -> None:
    """Say to a person at a terminal that this waits for a program, and what can be done instead."""
    if sys.stdin is not None and sys.stdin.isatty():
        with suppress(OSError):
            say(
                "This command is meant to be started by an MCP client, which talks to it on",
                err=True,
            )
            say(f"standard input and output; {otherwise}. Press Ctrl-C to stop it.", err=True)
