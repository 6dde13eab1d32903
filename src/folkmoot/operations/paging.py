"""Lists that are kept in memory, a page at a time."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Iterable
from typing import Any, Final

from folkmoot.core.errors import ArgumentInvalid

LONGEST_CURSOR: Final = 100
PAGE_BYTES: Final = 1024 * 1024
"""A page ends early when its entries come to more than this together; one is always shown."""


def make_cursor(place: str) -> str:
    """The cursor of what comes after this place."""
    return urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """The place of a cursor."""
    try:
        place = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (Error, ValueError):
        place = ""
    # Only one spelling: what we did not write ourselves is no cursor.
    if not place or not place.isprintable() or make_cursor(place) != cursor:
        raise wrong_cursor()
    return place


def wrong_cursor() -> ArgumentInvalid:
    """The refusal of a cursor that is none of ours."""
    return ArgumentInvalid(
        "cursor must be the next_cursor of an earlier answer to the same question.",
        field="cursor",
    )


def within(entries: Iterable[tuple[Any, int]], most: int) -> tuple[list[Any], bool]:
    """As many entries, each given with its size, as fit on a page; and whether some did not."""
    page: list[Any] = []
    size = 0
    for entry, bytes_ in entries:
        size += bytes_
        if page and (len(page) >= most or size > PAGE_BYTES):
            return page, True
        page.append(entry)
    return page, False
