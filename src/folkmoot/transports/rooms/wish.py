"""What the URL of a request for `/ws` asks for, besides who asks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.core.errors import QueryInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOM: Final = ("room", "topic")
"""The parameter that names the room, and the older word for it."""

_LABEL: Final = (re.compile(r"[ -~]{1,64}"), "1 to 64 printable ASCII characters")
FORMS: Final[dict[str, tuple[re.Pattern[str], str]]] = {
    "after": (re.compile(r"[0-9]{1,18}"), "a whole number from 0 on"),
    "epoch": _LABEL,
    "conn": _LABEL,
    "serve": (re.compile(r"[01]"), "0 or 1"),
}
"""The other parameters, and what each must be."""


class Wish(Struct, frozen=True):
    """Which room is wanted, and how much of it was seen before."""

    room: str
    after: int | None = None
    """The `seq` of the last message that was seen."""
    epoch: str | None = None
    """The epoch in which it was seen."""
    conn: str | None = None
    """The client's own id of the connection, under which it may come back."""
    serve: bool = False
    """Whether the connection offers tools."""


def read_wish(query: Mapping[str, list[str]]) -> Wish:
    """The wish in a query; parameters that nobody knows are not ours to judge."""
    rooms = {name for parameter in ROOM for name in query.get(parameter, ())}
    if len(rooms) > 1:
        raise QueryInvalid("room and topic name different rooms; name one.")
    if not any(rooms):
        raise QueryInvalid("Name the room, as in /ws?room=NAME.")
    given = {name: _value(name, query[name]) for name in FORMS if name in query}
    after = given.get("after")
    return Wish(
        room=rooms.pop(),
        after=None if after is None else int(after),
        epoch=given.get("epoch"),
        conn=given.get("conn"),
        serve=given.get("serve") == "1",
    )


def _value(name: str, values: list[str]) -> str:
    form, words = FORMS[name]
    if len(values) > 1:
        raise QueryInvalid(f"The query parameter {name} occurs twice.")
    if form.fullmatch(values[0]) is None:
        raise QueryInvalid(f"The query parameter {name} must be {words}.")
    return values[0]
