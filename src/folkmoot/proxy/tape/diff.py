"""Where two answers differ: a list of places, each with what stands there on either side.

Items of a list that have names are compared by name, so that a tool more is one difference. Text
that is JSON is looked into. A secret that a tape does not hold cannot be compared, so whatever
stands in its place is taken to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from folkmoot.core.strict import same
from folkmoot.proxy.jsonpath import Item, JsonPath, Place, spelled
from folkmoot.proxy.redaction.placeholders import PLACEHOLDER

MOST: Final = 1_000
"""Differences that are told of one pair; values that differ in more are simply different."""
NAMES: Final = ("name", "uri", "uriTemplate")
"""Members by which items of a list are known."""
_ID = re.compile(r":[0-9a-f]+\]$")


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in an answer, and what stands there on either side; `UNSET` where nothing does."""

    path: str
    recorded: Any = UNSET
    live: Any = UNSET


def differences(
    recorded: Any, live: Any, ignore: Sequence[str] = (), *, one_key: bool = True
) -> list[Difference]:
    """Where two JSON values differ, in the order of the first; at most a thousand places.

    `ignore` holds patterns of places that do not count. Where the two were redacted with different
    keys, `one_key` is to be False: then placeholders tell only of what kind a secret was.
    """
    patterns = [JsonPath.below(text) for text in ignore]
    found: list[Difference] = []
    for place, was, is_now in _walk(recorded, live, one_key=one_key):
        if not any(pattern.covers(place) for pattern in patterns):
            found.append(Difference(spelled(place), was, is_now))
            if len(found) == MOST:
                break
    return found


def _walk(recorded: Any, live: Any, *, one_key: bool) -> Iterator[tuple[Place, Any, Any]]:
    # A stack of our own: values may be nested deeper than Python likes to recurse.
    waiting: list[tuple[Place, Any, Any]] = [((), recorded, live)]
    while waiting:
        place, was, is_now = waiting.pop()
        if type(was) is dict and type(is_now) is dict:
            inner = _members(place, was, is_now)
        elif type(was) is list and type(is_now) is list:
            inner = _items(place, was, is_now)
        elif type(was) is str and type(is_now) is str:
            if was == is_now or _redacted_alike(was, is_now, one_key=one_key):
                continue
            opened = _opened(was), _opened(is_now)
            if opened[0] is None or opened[1] is None or same(*opened):
                yield place, was, is_now
                continue
            inner = [(place, *opened)]
        else:
            if not (_equal(was, is_now) or _hidden(was, is_now)):
                yield place, was, is_now
            continue
        waiting += reversed(inner)


def _equal(was: Any, is_now: Any) -> bool:
    return type(was) is type(is_now) and bool(was == is_now)


def _hidden(was: Any, is_now: Any) -> bool:
    """Whether something stands where the other side holds only that there was a secret."""
    return any(
        type(text) is str and other is not UNSET and bool(PLACEHOLDER.fullmatch(text))
        for text, other in ((was, is_now), (is_now, was))
    )


def _members(
    place: Place, was: dict[str, Any], is_now: dict[str, Any]
) -> list[tuple[Place, Any, Any]]:
    names = [*was, *(name for name in is_now if name not in was)]
    return [((*place, name), was.get(name, UNSET), is_now.get(name, UNSET)) for name in names]


def _items(place: Place, was: list[Any], is_now: list[Any]) -> list[tuple[Place, Any, Any]]:
    named = _named(was, is_now)
    if named is None:
        longest = max(len(was), len(is_now))
        pairs = ((_at(was, number), _at(is_now, number)) for number in range(longest))
        return [((*place, number), *pair) for number, pair in enumerate(pairs)]
    before, after = named
    found = [
        ((*place, Item(name)), before.get(name, UNSET), after.get(name, UNSET))
        for name in [*before, *(name for name in after if name not in before)]
    ]
    common = [name for name in before if name in after]
    moved = [name for name in after if name in before]
    # That the order is another is told once, of the list as a whole.
    return found if common == moved else [*found, (place, tuple(common), tuple(moved))]


def _named(was: list[Any], is_now: list[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Both lists by the names of their items, if all of them have one of their own."""
    for member in NAMES:
        before, after = _by(member, was), _by(member, is_now)
        if before is not None and after is not None:
            return before, after
    return None


def _by(member: str, items: list[Any]) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for item in items:
        name = item.get(member) if type(item) is dict else None
        if type(name) is not str or name in found:
            return None
        found[name] = item
    return found


def _at(items: list[Any], number: int) -> Any:
    return items[number] if number < len(items) else UNSET


def _opened(text: str) -> Any:
    """The object or array a text encodes, if it does."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if type(value) in (dict, list) else None


def _redacted_alike(was: str, is_now: str, *, one_key: bool) -> bool:
    """Whether two texts differ at most in secrets that cannot be compared."""
    hidden = bool(PLACEHOLDER.search(was)), bool(PLACEHOLDER.search(is_now))
    if all(hidden):
        return not one_key and kinds_only(was) == kinds_only(is_now)
    if not any(hidden):
        return False
    redacted, plain = (was, is_now) if hidden[0] else (is_now, was)
    return _fits(PLACEHOLDER.split(redacted), plain)


def _fits(parts: list[str], text: str) -> bool:
    """Whether a text consists of these parts, with anything between them."""
    first, *middle, last = parts
    end = len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for part in middle:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return at <= end


def kinds_only(text: str) -> str:
    """A text whose placeholders tell only of what kind the secrets were."""
    return PLACEHOLDER.sub(lambda match: _ID.sub("]", match[0]), text)
