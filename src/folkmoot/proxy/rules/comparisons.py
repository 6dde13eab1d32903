"""Comparisons: what may be asked of a value that a path leads to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from folkmoot.core.glob import glob
from folkmoot.proxy.rules.wrong import Wrong

Test: TypeAlias = Callable[[Any], bool]

NUMBERS: Final = (int, float)


def alike(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same; `9` and `9.0` are, for no spelling is to slip past."""
    if type(a) in NUMBERS and type(b) in NUMBERS:
        return bool(a == b)
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return len(a) == len(b) and all(name in b and alike(a[name], b[name]) for name in a)
    if type(a) is list:
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _is(wanted: Any) -> Test:
    return lambda value: alike(value, wanted)


def _ordered(name: str, holds: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    def compiled(wanted: Any) -> Test:
        if type(wanted) not in NUMBERS:
            raise Wrong(f"{name!r} must be a number, not {wanted!r}")
        return lambda value: type(value) in NUMBERS and holds(value, wanted)

    return compiled


def _matches(wanted: Any) -> Test:
    if not isinstance(wanted, str):
        raise Wrong(f"'matches' must be a text with * in it, not {wanted!r}")
    fits = glob(wanted).matches
    return lambda value: isinstance(value, str) and fits(value)


def _contains(wanted: Any) -> Test:
    def holds(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(wanted, str) and wanted in value
        if isinstance(value, list):
            return any(alike(item, wanted) for item in value)
        return isinstance(value, dict) and isinstance(wanted, str) and wanted in value

    return holds


def _in(wanted: Any) -> Test:
    if not isinstance(wanted, list):
        raise Wrong(f"'in' must be a list, not {wanted!r}")
    return lambda value: any(alike(value, each) for each in wanted)


COMPARISONS: Final[dict[str, tuple[str, Callable[[Any], Test]]]] = {
    "is": ("it is this value; numbers are compared by value", _is),
    "in": ("it is one of these values", _in),
    "lt": ("it is a number less than this", _ordered("lt", lambda a, b: a < b)),
    "le": ("it is a number less than or equal to this", _ordered("le", lambda a, b: a <= b)),
    "gt": ("it is a number greater than this", _ordered("gt", lambda a, b: a > b)),
    "ge": ("it is a number greater than or equal to this", _ordered("ge", lambda a, b: a >= b)),
    "matches": ("it is a text that fits this one, in which `*` is any text", _matches),
    "contains": ("it is a text, list or object that has this in it", _contains),
}
"""Every comparison that one value can pass by itself: what it asks, and how it is compiled."""
