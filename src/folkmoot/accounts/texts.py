"""What people write about themselves and each other: how long it may be, and what may be in it."""

from __future__ import annotations

import re
from typing import NamedTuple

from folkmoot.core.errors import ArgumentInvalid


class Limits(NamedTuple):
    """How many characters a text may have, and whether it may have several lines."""

    least: int
    most: int
    lines: bool = False


TEXTS: dict[str, Limits] = {
    "display_name": Limits(1, 100),
    "bio": Limits(0, 500, lines=True),
    "status": Limits(0, 100),
    "nickname": Limits(0, 100),
}

# Controls, line separators, and what turns the direction of the text around it: with these one
# name can be made to look like another. Halves of surrogate pairs are not text at all.
UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

LINES = re.compile(r"[\t\n\r]")


def check_text(field: str, text: str) -> str:
    """The text, if the field may hold it; else an error that names the field."""
    limits = TEXTS[field]
    if not limits.least <= len(text) <= limits.most:
        raise ArgumentInvalid(
            f"{field} must have {limits.least} to {limits.most} characters.", field=field
        )
    if not is_plain(LINES.sub("", text) if limits.lines else text):
        raise ArgumentInvalid(f"{field} must not have control characters.", field=field)
    if limits.least and not any(map(str.isprintable, text.replace(" ", ""))):
        raise ArgumentInvalid(f"{field} must not be blank.", field=field)
    return text


def is_plain(text: str) -> bool:
    """Whether a text is free of control characters."""
    return UNFIT.search(text) is None
