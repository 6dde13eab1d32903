"""What people see: plain text when piped, a little colour on a terminal, errors in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console

PROGRAM = "folkmoot"


def say(text: str = "", *, err: bool = False) -> None:
    """One line, seen at once."""
    typer.echo(text, err=err)


def complain(message: str, *, kind: str = "error") -> None:
    """A message on stderr, each of its lines with the program's name in front."""
    label = f"{PROGRAM}: {kind}:"
    if coloured(sys.stderr):
        label = typer.style(label, fg="red" if kind == "error" else "yellow", bold=True)
    for line in message.splitlines():
        say(f"{label} {line}", err=True)


def say_json(value: Any) -> None:
    """A value as indented JSON."""
    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def coloured(stream: IO[str]) -> bool:
    """Whether colour is welcome: a terminal that is not dumb, and no `NO_COLOR`."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console() -> Console:
    """A rich console on stdout; rich is slow to import, so only those who draw pay for it."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as lines with their columns aligned, two spaces apart, for pipes and files."""
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def on_terminal() -> bool:
    """Whether someone is looking."""
    return sys.stdout.isatty()


def size(count: int) -> str:
    """A number of bytes as people say it."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def duration(seconds: float) -> str:
    """A time span as people say it: its two largest units."""
    left = int(seconds)
    parts: list[str] = []
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, length)
        if count or (parts and len(parts) < 2) or unit == "s":
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
