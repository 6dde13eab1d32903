"""Places in a list that outlive its changes: a cursor holds what came last, not how many did."""

from __future__ import annotations

import base64
from typing import Final, TypeAlias

import msgspec

from folkmoot.core.errors import ArgumentInvalid
from folkmoot.gateway.model import What

LONGEST: Final = 4_096
Place: TypeAlias = tuple[str, str]
"""A namespace and a name or URI: what lists are sorted by."""

_decoder = msgspec.json.Decoder(tuple[str, str, str])


def make_cursor(what: What, last: Place) -> str:
    """The cursor of what comes after this place in a list."""
    return base64.urlsafe_b64encode(msgspec.json.encode((what, *last))).decode().rstrip("=")


def read_cursor(what: What, cursor: str) -> Place:
    """The place a cursor stands for; an `ArgumentInvalid` for what is no cursor of this list."""
    try:
        if len(cursor) > LONGEST or not cursor.isascii():
            raise ValueError  # noqa: TRY301 - all that is no cursor gets the one answer
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        listed, namespace, key = _decoder.decode(text)
    except (ValueError, msgspec.MsgspecError):
        listed = namespace = key = ""
    if listed != what:
        raise ArgumentInvalid(
            "cursor must be the nextCursor of an earlier answer to the same question.",
            field="cursor",
        )
    return namespace, key
