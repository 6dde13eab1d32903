"""From whatever a client sent as arguments to the struct of an operation, or one clear sentence.

msgspec decodes. Only where it refuses are the arguments held against the schema that clients are
shown, for the sentence that names what is wrong first.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.uuids import as_stored
from folkmoot.operations.limits import MAX_ARGUMENT_DEPTH, MAX_NAME_SHOWN, MAX_NAMES_SHOWN
from folkmoot.operations.schema import nulls_of, schema_of

if TYPE_CHECKING:
    from folkmoot.operations.schema import Schema

A = TypeVar("A", bound=Struct)


LARGEST_WHOLE = 2**53
"""The largest whole number that may be written with a fraction, as `50.0`."""
REFUSALS: Final = (msgspec.ValidationError, OverflowError, UnicodeEncodeError, RecursionError)

_encode = msgspec.json.Encoder().encode

TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "an integer"),
    "boolean": (bool, "true or false"),
    "object": (dict, "an object"),
    "array": (list, "a list"),
}


def decode(takes: type[A], arguments: Any) -> A:
    """The arguments as the struct of their operation.

    `null` is the same as left out, unless the struct tells the two apart.
    """
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise e.ArgumentInvalid("The arguments must be an object.", field="arguments")
    given = arguments
    if None in arguments.values():
        kept = nulls_of(takes)
        given = {name: it for name, it in arguments.items() if it is not None or name in kept}
    for name in getattr(takes, "__uuids__", ()):
        given = with_small_letters(given, name)
    try:
        decoded = msgspec.convert(given, takes)
        # Text that is no UTF-8 can come from an interceptor; to write it is the quickest look.
        _encode(decoded)
    except REFUSALS:
        check(schema_of(takes), {**dict.fromkeys(arguments), **given})
        check_nulls(takes, given)
        check_inside(given)
        # What is left is a whole number that was written as `50.0`.
        return msgspec.convert(given, takes, strict=False)
    if free := free_members(takes):
        check_inside({name: value for name, value in given.items() if name in free})
    return decoded


def with_small_letters(given: dict[str, Any], name: str) -> dict[str, Any]:
    """The arguments with the UUIDs in one of them as the hub writes them."""
    value = given.get(name)
    if isinstance(value, str):
        return {**given, name: as_stored(value)}
    if isinstance(value, list):
        return {**given, name: [as_stored(it) if isinstance(it, str) else it for it in value]}
    return given


@cache
def free_members(takes: type[Struct]) -> frozenset[str]:
    """The arguments in which anything may lie, however deep."""
    properties: dict[str, Schema] = schema_of(takes)["properties"]
    return frozenset(
        name for name, inner in properties.items() if inner.get("additionalProperties") is True
    )


def check(schema: Schema, given: dict[str, Any], path: str = "") -> None:
    """Raise the sentence for the first thing that is wrong with an object."""
    properties: dict[str, Schema] = schema["properties"]
    check_text(given, path)
    if unknown := [name for name in given if name not in properties]:
        raise e.ArgumentInvalid(unknown_names(path, unknown), field=truncated(unknown[0]))
    for name in schema["required"]:
        if given.get(name) is None:
            raise e.ArgumentInvalid(f"Missing argument: {path}{name}.", field=f"{path}{name}")
    for name, value in given.items():
        if value is not None and not fits(properties[name], value):
            sentence = f"{path}{name} must be {must_be(properties[name])}."
            raise e.ArgumentInvalid(sentence, field=f"{path}{name}")
        if isinstance(value, dict) and "properties" in properties[name]:
            check(properties[name], value, f"{path}{name}.")


def check_nulls(takes: type[Struct], given: dict[str, Any]) -> None:
    """Refuse `null` where it is neither a value nor the same as left out."""
    for name, may_be_null in nulls_of(takes).items():
        if not may_be_null and name in given and given[name] is None:
            words = must_be(schema_of(takes)["properties"][name])
            raise e.ArgumentInvalid(f"{name} must be {words}.", field=name)


def fits(schema: Schema, value: Any) -> bool:
    """Whether a value is what its schema says, leaving patterns to whoever knows better words."""
    if "type" not in schema:
        return True
    if schema["type"] == "integer":
        if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE:
            value = int(value)
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        return type(value) is int and low <= value <= high
    if schema["type"] == "array":
        items = schema["items"]
        return (
            type(value) is list
            and has_length(schema, value, "Items")
            and all(fits(items, it) for it in value)
        )
    if isinstance(named := schema.get("additionalProperties"), dict):
        return type(value) is dict and all(fits(named, inner) for inner in value.values())
    if type(value) is not TYPES[schema["type"]][0]:
        return False
    if isinstance(value, str) and not has_length(schema, value, "Length"):
        return False
    return value in schema.get("enum", (value,))


def has_length(schema: Schema, value: Any, noun: str) -> bool:
    """Whether a text or a list is as long as it may be."""
    return bool(schema.get(f"min{noun}", 0) <= len(value) <= schema.get(f"max{noun}", math.inf))


def must_be(schema: Schema) -> str:
    """What a value must be, in words."""
    if "enum" in schema:
        *others, last = schema["enum"]
        return f"{', '.join(others)} or {last}"
    if "type" not in schema:
        return "a value"
    words = TYPES[schema["type"]][1]
    if schema["type"] == "array":
        most = f" of at most {schema['maxItems']}" if "maxItems" in schema else ""
        return f"{words}{most}, each {must_be(schema['items'])}"
    if isinstance(named := schema.get("additionalProperties"), dict):
        return f"{words} in which each member is {must_be(named)}"
    if "maximum" in schema:
        return f"{words} from {schema['minimum']} to {schema['maximum']}"
    if "maxLength" in schema:
        return f"{words} of {schema.get('minLength', 0)} to {schema['maxLength']} characters"
    return words


def unknown_names(path: str, names: list[str]) -> str:
    """The sentence about unknown argument names."""
    listed = ", ".join(f"{path}{truncated(name)}" for name in names[:MAX_NAMES_SHOWN])
    more = ", …" if len(names) > MAX_NAMES_SHOWN else ""
    return f"Unknown argument{'s' if len(names) > 1 else ''}: {listed}{more}."


def truncated(name: str) -> str:
    """A name as it may be repeated: printable and of a readable length."""
    printable = "".join(char if char.isprintable() else "�" for char in name[:MAX_NAME_SHOWN])
    return printable + ("…" if len(name) > MAX_NAME_SHOWN else "")


def check_text(given: dict[str, Any], path: str = "") -> None:
    """Refuse halves of surrogate pairs, which no answer could repeat and no database keeps."""
    for name, value in given.items():
        if isinstance(value, str) and not encodable(value):
            place = f"{path}{truncated(name)}"
            raise e.ArgumentInvalid(f"{place} is not valid Unicode text.", field=place)


def check_inside(given: dict[str, Any]) -> None:
    """Refuse lists and objects with something in them, however deep, that JSON cannot hold."""
    for name, value in given.items():
        if isinstance(value, dict):
            check_text(value, f"{name}.")
        levels, inside = 0, [value]
        while inside := [it for each in inside for it in members(each)]:
            levels += 1
            if levels > MAX_ARGUMENT_DEPTH:
                raise e.ArgumentInvalid(f"{name} is nested too deeply.", field=name)
            if not all(map(writable, inside)):
                sentence = f"{name} holds text or a number that is not valid JSON."
                raise e.ArgumentInvalid(sentence, field=name)


def members(value: Any) -> list[Any]:
    """What lies in a list or an object, names included."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def writable(value: Any) -> bool:
    """Whether a single value can be written as JSON without becoming another."""
    if isinstance(value, str):
        return encodable(value)
    return not isinstance(value, float) or math.isfinite(value)


def encodable(value: str) -> bool:
    """Whether text can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
