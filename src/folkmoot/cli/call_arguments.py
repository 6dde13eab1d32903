"""Arguments of a tool as people type them: `key=value`, read as the tool's schema wants it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from folkmoot.cli.text import one_line
from folkmoot.core import strict
from folkmoot.core.errors import MessageError

PAIR: Final = re.compile(r"([^=:\s][^=:]*)(:?=)(.*)", re.DOTALL)
KINDS: Final[dict[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
"""The types of JSON Schema, and what a value of each is here."""
LONGEST: Final = 40
"""Characters of a wrong value that are repeated."""


def read_arguments(
    pairs: Sequence[str], whole: str | None, schema: dict[str, Any]
) -> dict[str, Any]:
    """All arguments of a call: those of `--arguments`, and over them each `key=value`."""
    found = {} if whole is None else read_whole(whole)
    properties = schema.get("properties")
    for text in pairs:
        parts = PAIR.fullmatch(text)
        if parts is None:
            raise typer.BadParameter(f"an argument must be KEY=VALUE, not {one_line(text)!r}")
        key, how, value = parts.groups()
        wanted = properties.get(key) if isinstance(properties, dict) else None
        found[key] = json_value(key, value) if how == ":=" else typed(key, value, wanted)
    return found


def read_whole(text: str) -> dict[str, Any]:
    """A JSON object: itself, in a file after `@`, or with `-` on standard input."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).expanduser().read_text()
        value = strict.decode(text.encode())
    except OSError as error:
        raise typer.BadParameter(f"--arguments: {error.strerror}: {one_line(text[1:])}") from None
    except (MessageError, UnicodeError):
        value = None
    if not isinstance(value, dict):
        raise typer.BadParameter("--arguments must be a JSON object, @FILE or -")
    return value


def typed(key: str, text: str, schema: Any) -> Any:
    """A value as its property wants it; without a type, whatever it looks like."""
    kinds = types_of(schema)
    if kinds == {"string"}:
        return text
    value = looks_like(text)
    if not kinds or any(fits(value, kind) for kind in kinds):
        return value
    if "string" in kinds:
        return text
    wanted = " or ".join(sorted(kinds))
    shown = one_line(text[:LONGEST])
    raise typer.BadParameter(f"{key} must be of type {wanted}, not {shown!r}; {key}:=JSON sends it")


def types_of(schema: Any) -> set[str]:
    """The types that a schema names, itself or in its alternatives."""
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    found = {kind} if isinstance(kind, str) else set()
    if isinstance(kind, list):
        found |= {each for each in kind if isinstance(each, str)}
    for member in ("anyOf", "oneOf"):
        for each in schema[member] if isinstance(schema.get(member), list) else ():
            found |= types_of(each)
    return found & KINDS.keys()


def fits(value: Any, kind: str) -> bool:
    """Whether a value is of a type of JSON Schema, in which true is no number."""
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def looks_like(text: str) -> Any:
    """A value that is JSON, else the text itself."""
    try:
        return strict.decode(text.encode())
    except (MessageError, UnicodeError):
        return text


def json_value(key: str, text: str) -> Any:
    """A value that must be JSON."""
    try:
        return strict.decode(text.encode())
    except (MessageError, UnicodeError):
        shown = one_line(text[:LONGEST])
        raise typer.BadParameter(f"{key}:= must be followed by JSON, not {shown!r}") from None


def signature(schema: Any) -> str:
    """What a tool takes, in a line: optional arguments stand in brackets."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    told = []
    for name, each in properties.items():
        kinds = "|".join(sorted(types_of(each) - {"string"}))
        one = f"{one_line(name)}={kinds}" if kinds else f"{one_line(name)}="
        told.append(one if name in needed else f"[{one}]")
    return " ".join(told)


def pretty(value: Any) -> str:
    """A JSON value over several lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
