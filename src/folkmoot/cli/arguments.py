"""The arguments of a tool as people type them: `name=value`, or one JSON object.

A value is read by the tool's schema where that says its type: `count=3` is a number where a number
is wanted and a text where a text is. Without a schema, what is JSON is that and all else is text.
`name:=value` is JSON always.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
NAMES: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}


class ArgumentMistake(ValueError):
    """Arguments that cannot be read, with a sentence that says why."""


def read_arguments(words: Sequence[str], schema: Any = None) -> dict[str, Any]:
    """The arguments that some words say."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return read_object(words[0])
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise ArgumentMistake(f"Arguments are written name=value, not {word!r}.")
        if name in found:
            raise ArgumentMistake(f"{name} is given twice.")
        found[name] = read_json(name, value) if is_json else read_value(name, value, schema)
    return found


def read_object(text: str) -> dict[str, Any]:
    """One JSON object with all arguments."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ArgumentMistake("What is in the braces is not JSON.")
    return value


def read_value(name: str, text: str, schema: Any) -> Any:
    """A value, by what the schema says of it."""
    wanted = types_of(schema, name)
    if wanted and "string" not in wanted:
        value = read_json(name, text, wanted)
        fits = any(type(value) in TYPES[each] for each in wanted)
        if not fits:
            raise ArgumentMistake(f"{name} must be {described(wanted)}, not {text!r}.")
        return value
    if wanted:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_json(name: str, text: str, wanted: Sequence[str] = ()) -> Any:
    """A value that must be JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        must = described(wanted) if wanted else "JSON"
        raise ArgumentMistake(f"{name} must be {must}, not {text!r}.") from None


def types_of(schema: Any, name: str) -> list[str]:
    """The JSON types that an argument may have; none where the schema does not say."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    told = properties.get(name) if isinstance(properties, dict) else None
    if not isinstance(told, dict):
        return []
    choices = told.get("anyOf") or told.get("oneOf") or [told]
    found: list[str] = []
    for choice in choices if isinstance(choices, list) else []:
        types = choice.get("type") if isinstance(choice, dict) else None
        if types is None:
            # A reference, or anything at all.
            return []
        found += types if isinstance(types, list) else [types]
    return [each for each in found if each in TYPES]


def described(wanted: Sequence[str]) -> str:
    """Some types in words."""
    *others, last = [NAMES[each] for each in wanted]
    return f"{', '.join(others)} or {last}" if others else last


def signature(definition: dict[str, Any]) -> str:
    """A tool as it is called: its name, and its arguments with those that may be left out."""
    schema = definition.get("inputSchema")
    schema = schema if isinstance(schema, dict) else {}
    properties = schema.get("properties")
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    names = list(properties) if isinstance(properties, dict) else []
    shown = [name if name in needed else f"[{name}]" for name in names]
    return " ".join([str(definition.get("name", "")), *shown])
