"""Simple JSON Schemas as functions, which accept most arguments quickly.

Such a function says yes only where the whole check would find nothing wrong; after a no, or for a
schema that is not plain, that check is made. It takes no longer than the schema is long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Check: TypeAlias = Callable[[Any], bool]
"""Whether a value surely fits."""

DEEPEST: Final = 4
MOST_ITEMS: Final = 256

TYPES: Final[Mapping[str, frozenset[type]]] = {
    "string": frozenset((str,)),
    "boolean": frozenset((bool,)),
    "null": frozenset((type(None),)),
    "integer": frozenset((int,)),
    "number": frozenset((int, float)),
    "array": frozenset((list,)),
    "object": frozenset((dict,)),
}
NUMBERS: Final = TYPES["number"]

ANNOTATIONS: Final = frozenset(
    (
        "$comment",
        "$defs",
        "$schema",
        "contentEncoding",
        "contentMediaType",
        "default",
        "definitions",
        "deprecated",
        "description",
        "example",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    )
)
"""Keywords that forbid nothing."""


class _NotPlain(Exception):
    """A schema says something that is not told at once."""


def plain_check(schema: Any) -> Check | None:
    """Says of values whether they surely fit a schema; None for a schema that is not plain."""
    try:
        return _compiled(schema, 0)
    except _NotPlain:
        return None


def _compiled(schema: Any, depth: int) -> Check:
    if schema is True:
        return _anything
    if type(schema) is not dict or depth > DEEPEST:
        raise _NotPlain
    checks = []
    for name, said in schema.items():
        if name in ANNOTATIONS:
            continue
        make = KEYWORDS.get(name)
        if make is None:
            raise _NotPlain
        checks.append(make(said, schema, depth + 1))
    if len(checks) == 1:
        return checks[0]
    told = tuple(checks)

    def check(value: Any) -> bool:
        for each in told:  # noqa: SIM110 - quicker than a generator
            if not each(value):
                return False
        return True

    return check


def _anything(_: Any) -> bool:
    return True


def never(_: Any) -> bool:
    """Say of no value that it surely fits."""
    return False


def _type(said: Any, _: dict[str, Any], __: int) -> Check:
    names = said if type(said) is list else [said]
    if not all(type(name) is str and name in TYPES for name in names):
        raise _NotPlain
    types = frozenset(each for name in names for each in TYPES[name])
    return lambda value: type(value) in types


def _properties(said: Any, _: dict[str, Any], depth: int) -> Check:
    if type(said) is not dict:
        raise _NotPlain
    checks = {name: _compiled(schema, depth) for name, schema in said.items()}

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return True
        if len(value) > len(checks):
            return all(each(value[name]) for name, each in checks.items() if name in value)
        for name, member in value.items():
            each = checks.get(name)
            if each is not None and not each(member):
                return False
        return True

    return check


def _required(said: Any, _: dict[str, Any], __: int) -> Check:
    if type(said) is not list or not all(type(name) is str for name in said):
        raise _NotPlain
    names = frozenset(said)
    return lambda value: type(value) is not dict or value.keys() >= names


def _additional(said: Any, schema: dict[str, Any], _: int) -> Check:
    known = schema.get("properties", {})
    if said is True:
        return _anything
    if said is not False or type(known) is not dict:
        raise _NotPlain
    names = frozenset(known)
    return lambda value: type(value) is not dict or value.keys() <= names


def _enum(said: Any, _: dict[str, Any], __: int) -> Check:
    if type(said) is not list or not all(type(each) is str for each in said):
        raise _NotPlain
    values = frozenset(said)
    return lambda value: type(value) is str and value in values


def _items(said: Any, _: dict[str, Any], depth: int) -> Check:
    if depth > DEEPEST:
        raise _NotPlain
    # Nothing stands in one another further in: lists of lists could take long.
    check = _compiled(said, DEEPEST)
    return lambda value: (
        type(value) is not list or (len(value) <= MOST_ITEMS and all(map(check, value)))
    )


def _any_of(said: Any, _: dict[str, Any], depth: int) -> Check:
    if type(said) is not list or not said:
        raise _NotPlain
    checks = [_compiled(schema, depth) for schema in said]
    return lambda value: any(check(value) for check in checks)


def _number(said: Any) -> float | int:
    if type(said) not in NUMBERS:
        raise _NotPlain
    number: float | int = said
    return number


def _size(said: Any) -> int:
    if type(said) is not int:
        raise _NotPlain
    return said


def _least(said: Any, _: dict[str, Any], __: int) -> Check:
    least = _number(said)
    return lambda value: type(value) not in NUMBERS or value >= least


def _most(said: Any, _: dict[str, Any], __: int) -> Check:
    most = _number(said)
    return lambda value: type(value) not in NUMBERS or value <= most


def _above(said: Any, _: dict[str, Any], __: int) -> Check:
    bound = _number(said)
    return lambda value: type(value) not in NUMBERS or value > bound


def _below(said: Any, _: dict[str, Any], __: int) -> Check:
    bound = _number(said)
    return lambda value: type(value) not in NUMBERS or value < bound


def _shortest(said: Any, _: dict[str, Any], __: int) -> Check:
    least = _size(said)
    return lambda value: type(value) is not str or len(value) >= least


def _longest(said: Any, _: dict[str, Any], __: int) -> Check:
    most = _size(said)
    return lambda value: type(value) is not str or len(value) <= most


def _fewest(said: Any, _: dict[str, Any], __: int) -> Check:
    least = _size(said)
    return lambda value: type(value) is not list or len(value) >= least


def _most_items(said: Any, _: dict[str, Any], __: int) -> Check:
    most = _size(said)
    return lambda value: type(value) is not list or len(value) <= most


KEYWORDS: Final[Mapping[str, Callable[[Any, dict[str, Any], int], Check]]] = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "enum": _enum,
    "items": _items,
    "anyOf": _any_of,
    "minimum": _least,
    "maximum": _most,
    "exclusiveMinimum": _above,
    "exclusiveMaximum": _below,
    "minLength": _shortest,
    "maxLength": _longest,
    "minItems": _fewest,
    "maxItems": _most_items,
}
"""What each keyword of a plain schema asks of a value; it is given what stands beside it too."""
