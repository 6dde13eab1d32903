"""How an account changes: its profile, its handle, and what the texts in them may have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from folkmoot.accounts.credentials import check_public_key
from folkmoot.accounts.limits import MAX_FORMATS
from folkmoot.accounts.model import (
    PRIVACY_LEVELS,
)
from folkmoot.core import errors as e
from folkmoot.core.ports import SqlValue


class TextLimits(NamedTuple):
    """How many characters a text may have, and whether it may have several lines."""

    least: int
    most: int
    lines: bool = False


TEXTS: dict[str, TextLimits] = {
    "display_name": TextLimits(1, 100),
    "bio": TextLimits(0, 500, lines=True),
    "status": TextLimits(0, 100),
    "nickname": TextLimits(0, 100),
}

# Controls, line separators, and what turns the direction of the text around it: with these one
# name can be made to look like another. Halves of surrogate pairs are not text at all.
UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

LINES = re.compile(r"[\t\n\r]")


def check_text(field: str, text: str) -> str:
    """The text, if the field may hold it; else an error that names the field."""
    limits = TEXTS[field]
    if not limits.least <= len(text) <= limits.most:
        raise e.ArgumentInvalid(
            f"{field} must have {limits.least} to {limits.most} characters.", field=field
        )
    if not is_plain(LINES.sub("", text) if limits.lines else text):
        raise e.ArgumentInvalid(f"{field} must not have control characters.", field=field)
    if limits.least and not any(map(str.isprintable, text.replace(" ", ""))):
        raise e.ArgumentInvalid(f"{field} must not be blank.", field=field)
    return text


def is_plain(text: str) -> bool:
    """Whether a text is free of control characters."""
    return UNFIT.search(text) is None


SEARCHED = frozenset({"display_name", "privacy"})
KEY: Final = "client_public_key"
FORMATS: Final = "payload_formats"
FORMAT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


def check_formats(formats: Sequence[str]) -> str:
    """The names of formats as they are stored."""
    if len(formats) > MAX_FORMATS or not all(map(FORMAT.fullmatch, formats)):
        raise e.ArgumentInvalid(
            f"{FORMATS} must be at most {MAX_FORMATS} names of lowercase letters, digits, dots, "
            "dashes and underscores, each of at most 40 characters.",
            field=FORMATS,
        )
    return " ".join(dict.fromkeys(formats))


def check_profile(
    given: dict[str, str | None], formats: Sequence[str] | None = None
) -> dict[str, SqlValue]:
    """The fields that were given, each of which may hold its value."""
    changes: dict[str, SqlValue] = {}
    if formats is not None:
        changes[FORMATS] = check_formats(formats)
    for field, value in given.items():
        if value is None:
            continue
        if field in TEXTS:
            check_text(field, value)
        elif field == "privacy" and value not in PRIVACY_LEVELS:
            raise e.PrivacyInvalid
        elif field == KEY:
            # An empty one withdraws the key, for whoever has lost its other half.
            changes[field] = check_public_key(field, value) if value else None
            continue
        changes[field] = value
    if not changes:
        raise e.NothingToUpdate
    return changes
