"""The arguments of a tool as people type them: `name=value`, or one JSON object.

A value is read by the tool's schema where that says its type: `count=3` is a number where a number
is wanted and a text where a text is. Without a schema, what is JSON is that and all else is text.
`name:=value` is JSON always.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from folkmoot.cli.text import one_line
from folkmoot.core import strict
from folkmoot.core.errors import MessageError

TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
"""The types of JSON Schema, and what a value of each is here."""
NAMES: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}
LONGEST: Final = 40
"""Characters of a wrong value that are repeated."""


class ArgumentMistake(ValueError):
    """Arguments that cannot be read, with a sentence that says why."""


def read_arguments(
    words: Sequence[str], schema: Any = None, whole: str | None = None
) -> dict[str, Any]:
    """The arguments that some words say, over those of a `whole` object as `--arguments` has it."""
    given = {} if whole is None else read_whole(whole)
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return given | read_object(words[0], "What is in the braces is not JSON.")
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise ArgumentMistake(f"Arguments are written name=value, not {shown(word)}.")
        if name in found:
            raise ArgumentMistake(f"{one_line(name)} is given twice.")
        found[name] = read_json(name, value) if is_json else read_value(name, value, schema)
    return given | found


def typed_arguments(
    words: Sequence[str], schema: Any = None, whole: str | None = None
) -> dict[str, Any]:
    """The same for a command: what cannot be read is a usage error."""
    try:
        return read_arguments(words, schema, whole)
    except ArgumentMistake as error:
        raise typer.BadParameter(str(error).rstrip(".")) from None


def read_whole(text: str) -> dict[str, Any]:
    """A JSON object: itself, in a file after `@`, or with `-` on standard input."""
    wrong = "--arguments must be a JSON object, @FILE or -."
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).expanduser().read_text()
    except OSError as error:
        raise ArgumentMistake(f"--arguments: {error.strerror}: {one_line(text[1:])}.") from None
    except UnicodeError:
        raise ArgumentMistake(wrong) from None
    return read_object(text, wrong)


def read_object(text: str, wrong: str) -> dict[str, Any]:
    """One JSON object with all arguments."""
    value = decoded(text)
    if not isinstance(value, dict):
        raise ArgumentMistake(wrong)
    return value


def read_value(name: str, text: str, schema: Any) -> Any:
    """A value, by what the schema says of it; without a type, whatever it looks like."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    wanted = types_of(properties.get(name) if isinstance(properties, dict) else None)
    if wanted == ["string"]:
        return text
    value = decoded(text, otherwise=text)
    if not wanted or any(type(value) in TYPES[each] for each in wanted):
        return value
    if "string" in wanted:
        return text
    raise ArgumentMistake(
        f"{one_line(name)} must be {described(wanted)}, not {shown(text)}; "
        f"{one_line(name)}:=JSON sends it anyway."
    )


def read_json(name: str, text: str) -> Any:
    """A value that must be JSON."""
    value = decoded(text, otherwise=...)
    if value is ...:
        raise ArgumentMistake(f"{one_line(name)}:= must be followed by JSON, not {shown(text)}.")
    return value


def decoded(text: str, otherwise: Any = None) -> Any:
    """The value that a text is in JSON."""
    try:
        return strict.decode(text.encode())
    except (MessageError, UnicodeError, RecursionError):
        return otherwise


def types_of(schema: Any) -> list[str]:
    """The JSON types that a value may have; none where its schema does not say."""
    if not isinstance(schema, dict):
        return []
    types = schema.get("type")
    if types is not None:
        listed = types if isinstance(types, list) else [types]
        return [each for each in TYPES if each in listed]
    choices = schema.get("anyOf") or schema.get("oneOf")
    allowed = [types_of(each) for each in choices] if isinstance(choices, list) else []
    if not all(allowed):
        # One of them is a reference, or anything at all.
        return []
    return [each for each in TYPES if any(each in one for one in allowed)]


def described(wanted: Sequence[str]) -> str:
    """Some types in words."""
    *others, last = [NAMES[each] for each in wanted]
    return f"{', '.join(others)} or {last}" if others else last


def shown(text: str) -> str:
    """What was typed, in quotes."""
    return repr(one_line(text[:LONGEST]))


def signature(schema: Any) -> str:
    """What a tool takes, as it is typed: optional arguments stand in brackets."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    told = []
    for name, each in properties.items():
        types = "|".join(sorted(set(types_of(each)) - {"string"}))
        one = f"{one_line(name)}={types}"
        told.append(one if name in needed else f"[{one}]")
    return " ".join(told)


def usage(definition: dict[str, Any]) -> str:
    """A tool as it is called: its name, and what it takes."""
    name = one_line(str(definition.get("name", "")))
    return f"{name} {signature(definition.get('inputSchema'))}".rstrip()
