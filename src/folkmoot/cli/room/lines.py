"""Messages in pipes and files: a line each, in fields that a script can cut at the spaces."""

from __future__ import annotations

from typing import Final

from folkmoot.cli.room.look import Look
from folkmoot.cli.text import escape_json

NONE: Final = "-"
LINE_END: Final = "\\x0a"
SPACE: Final = "\\x20"


def plain(look: Look) -> str:
    """A message as `seq time from kind text`; only the text has spaces in it."""
    number = NONE if look.seq is None else str(look.seq)
    fields = (number, look.ts or NONE, look.who or NONE, look.kind or NONE)
    head = [field.replace(" ", SPACE) for field in fields]
    return " ".join([*head, LINE_END.join(look.text)]).rstrip()


def verbatim(data: bytes) -> str:
    """An envelope in the bytes it came in, in one line that does nothing to a terminal.

    A line end in JSON stands between its parts only, never inside a string.
    """
    text = data.decode("utf-8", "replace").replace("\r", " ").replace("\n", " ")
    return escape_json(text)
