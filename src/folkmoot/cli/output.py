"""What people see: plain text when piped, a little colour on a terminal, errors in one line."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

import msgspec
import typer

from folkmoot.telemetry.redaction import CONTROLS, visible

if TYPE_CHECKING:
    from rich.console import Console

PROGRAM = "folkmoot"
JSON_ESCAPES = {code: f"\\u{code:04x}" for code in CONTROLS if code >= 0x7F}
"""Those characters that the encoder leaves in a string and a terminal would obey."""


def say(text: str = "", *, err: bool = False) -> None:
    """Text, seen at once; whatever is in it, the terminal gets nothing to obey."""
    typer.echo("\n".join(map(visible, text.split("\n"))), err=err)


def complain(*messages: str, kind: str = "error") -> None:
    """Messages on stderr, a line each, with the program's name in front."""
    label = f"{PROGRAM}: {kind}:"
    if coloured(sys.stderr):
        label = typer.style(label, fg="red" if kind == "error" else "yellow", bold=True)
    for message in messages:
        typer.echo(f"{label} {visible(message)}", err=True)


class Complaints(logging.Handler):
    """What is logged in a command that keeps no log: a line like any other warning."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show it without where it came from."""
        said = record.getMessage()
        with suppress(OSError, ValueError):
            complain(f"{said[:1].upper()}{said[1:].rstrip('.')}.", kind="warning")


def say_json(value: Any) -> None:
    """A value as indented JSON."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    typer.echo(text.translate(JSON_ESCAPES))


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
