"""Numbers, spans and names as people say them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from folkmoot.cli.output import duration
from folkmoot.cli.text import one_line

if TYPE_CHECKING:
    from folkmoot.proxy.tape.lines import TapeSide


def lapse(seconds: float) -> str:
    """How long something took, in as many digits as matter."""
    if seconds >= 60:
        return duration(seconds)
    if seconds >= 0.9995:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    thousandths = seconds * 1000
    digits = 0 if thousandths >= 99.5 else 1 if thousandths >= 9.95 else 2
    return f"{thousandths:.{digits}f} ms"


def number(count: int, noun: str) -> str:
    """How many of something."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def clock(text: str) -> str:
    """A point in time as the reader's clock shows it."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "some time"


def label(method: str, name: str) -> str:
    """What is called."""
    return one_line(f"{method} {name}".strip())


def side(of: TapeSide) -> str:
    """One side of a conversation."""
    return one_line(f"{of.transport} {of.target}".strip())
