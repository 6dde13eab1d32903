"""What is wrong with a rule, told as people read it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_NEEDED = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


class Wrong(Exception):
    """Something about one rule; whoever reads the file says which rule of which file it is."""


def converted(values: Any, shape: type[T], what: str) -> T:
    """Values in the shape they must have; `what` names them where they do not."""
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        raise Wrong(_told(str(error), shape, what)) from None


def _told(message: str, shape: type, what: str) -> str:
    said, _, at = message.partition(" - at `$")
    place = at.rstrip("`").lstrip(".")
    if unknown := _UNKNOWN.fullmatch(said):
        names = [field.encode_name for field in msgspec.structs.fields(shape)]
        return f"{what} {unknown['name']!r} is not known{nearest(unknown['name'], names)}"
    if needed := _NEEDED.fullmatch(said):
        return f"{what} {needed['name']!r} is needed"
    said = said[:1].lower() + said[1:].replace("`", "")
    return f"{what} {place!r}: {said}" if place else f"{what}: {said}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint for a name that is nearly right."""
    names = list(known)
    close = difflib.get_close_matches(name[:100], names, 1, 0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known are {', '.join(names)}" if names else ""
