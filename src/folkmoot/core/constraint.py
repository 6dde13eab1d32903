"""Payload constraints: what a payload must say for a capability to speak of it.

`{"params": {"name": "read_*", "dry_run": true}}`: objects are read member by member and ANDed, a
string may hold `*`, a list offers alternatives (a list inside it is one exact list), and every
other value is exact, with its type. There are no regular expressions.

Constraints and the texts they are held against are limited, so that nobody can make a verdict slow.
A text too long to be searched counts as a match for a deny and as none for an allow.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, TypeAlias

from folkmoot.core.equality import same
from folkmoot.core.errors import ConstraintSyntax
from folkmoot.core.glob import glob

MAX_DEPTH: Final = 16
MAX_VALUES: Final = 64
MAX_STRING: Final = 256
MAX_SEARCHED: Final = 65_536

Matcher: TypeAlias = Callable[[Any, bool], bool]
"""Whether a value fits; the flag is the answer for a text that is too long to be searched."""


class Constraint:
    """One compiled payload constraint."""

    __slots__ = ("_matches", "size", "source")

    def __init__(self, source: Any) -> None:
        if type(source) is not dict:
            raise ConstraintSyntax("A payload constraint must be an object.")
        self.size = _measure(source)
        self.source: dict[str, Any] = deepcopy(source)
        self._matches = _compile(self.source)

    def matches(self, payload: Any, *, if_too_long: bool = False) -> bool:
        """Whether the payload says what is asked, whatever else it says."""
        return self._matches(payload, if_too_long)

    def covers(self, other: Constraint) -> bool:
        """Whether every payload the other lets through is let through here too."""
        return _covers(self.source, other.source)


def _measure(source: dict[str, Any]) -> int:
    """How many values a constraint has; one that is too large is refused."""
    level: list[Any] = [source]
    values = depth = 0
    while level:
        depth += 1
        values += len(level)
        if depth > MAX_DEPTH or values > MAX_VALUES:
            raise ConstraintSyntax(
                f"A payload constraint has at most {MAX_VALUES} values, "
                f"nested at most {MAX_DEPTH} deep."
            )
        strings = [value for value in level if type(value) is str]
        strings += [name for value in level if type(value) is dict for name in value]
        if any(len(text) > MAX_STRING for text in strings):
            raise ConstraintSyntax(
                f"A string in a payload constraint has at most {MAX_STRING} characters."
            )
        level = [
            inner
            for value in level
            if type(value) in (dict, list)
            for inner in (value.values() if type(value) is dict else value)
        ]
    return values


def _compile(wanted: Any) -> Matcher:
    if type(wanted) is dict:
        inside = tuple((name, _compile(value)) for name, value in wanted.items())
        return lambda given, too_long: (
            type(given) is dict
            and all(name in given and matches(given[name], too_long) for name, matches in inside)
        )
    if type(wanted) is list:
        choices = tuple(_compile_choice(choice) for choice in wanted)
        return lambda given, too_long: any(matches(given, too_long) for matches in choices)
    return _compile_choice(wanted)


def _compile_choice(wanted: Any) -> Matcher:
    if type(wanted) is dict:
        return _compile(wanted)
    if type(wanted) is str and "*" in wanted:
        fits = glob(wanted).matches
        return lambda given, too_long: (
            type(given) is str and (fits(given) if len(given) <= MAX_SEARCHED else too_long)
        )
    return lambda given, _too_long: same(given, wanted)


def _covers(wide: Any, narrow: Any) -> bool:
    if type(narrow) is list:
        return all(_covers_choice(wide, choice) for choice in narrow)
    return _covers_choice(wide, narrow)


def _covers_choice(wide: Any, narrow: Any) -> bool:
    """`narrow` is one value here: an object, or one choice of a list."""
    if type(wide) is list:
        return any(_choice_covers(choice, narrow) for choice in wide)
    return _choice_covers(wide, narrow)


def _choice_covers(wide: Any, narrow: Any) -> bool:
    if type(wide) is dict:
        return type(narrow) is dict and all(
            name in narrow and _covers(value, narrow[name]) for name, value in wide.items()
        )
    if type(wide) is str and type(narrow) is str:
        return glob(wide).covers(glob(narrow))
    return type(narrow) is not dict and same(wide, narrow)
