"""Other people's text made safe for a terminal: nothing in it can move, hide or colour."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from folkmoot.cli.output import say

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


def moment(seconds: Any) -> str:
    """A point in time as the reader's clock shows it."""
    try:
        return datetime.fromtimestamp(int(seconds)).astimezone().strftime("%Y-%m-%d %H:%M")
    except (TypeError, ValueError, OverflowError, OSError):
        return "some time"
