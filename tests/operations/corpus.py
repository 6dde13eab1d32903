"""Arguments that every tool is tried with: made from its listed schema, most of them wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

# Half of a surrogate pair, which JSON can write and UTF-8 cannot.
HALF = "\ud800"
WRONG: tuple[Any, ...] = ("x", 7, 1.5, True, [], [7], ["x"], {}, {"x": 7}, {"x": ["y"]}, HALF)
PLAIN: dict[str, Any] = {"string": "x", "boolean": True, "integer": 1}


def deep(levels: int) -> Any:
    """Objects in objects."""
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


def good(schema: dict[str, Any]) -> Any:
    """A value that a schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "array":
        return [good(schema["items"])]
    if schema["type"] == "object":
        named = schema.get("additionalProperties")
        return {"x": good(named)} if isinstance(named, dict) else required(schema)
    return schema.get("minimum", PLAIN[schema["type"]])


def required(schema: dict[str, Any]) -> dict[str, Any]:
    """The least that an object takes."""
    properties = schema.get("properties", {})
    return {name: good(properties[name]) for name in schema.get("required", ())}


def values(schema: dict[str, Any]) -> Iterator[Any]:
    """What is tried for one argument."""
    yield from (None, good(schema))
    yield from WRONG
    yield from schema.get("enum", ())
    for edge in (schema.get("minimum"), schema.get("maximum")):
        yield from () if edge is None else (edge - 1, edge, edge + 1, float(edge))
    if schema["type"] == "array":
        yield [good(schema["items"])] * (schema["maxItems"] + 1)
        yield from ([HALF], [None], [good(schema["items"]), deep(2)])
    if schema["type"] == "object":
        yield from ({"a": math.nan}, {"a": [{"b": math.inf}]}, {HALF: 1}, {"a": HALF}, deep(100))
        yield from ({**required(schema), name: 7} for name in schema.get("properties", ()))
        yield from ({**required(schema), "nobody": 7, "knows": 7},)
    if schema["type"] == "integer":
        yield from (2**53 + 1, 2**70, -1, math.nan, math.inf)


def cases(schema: dict[str, Any]) -> Iterator[Any]:
    """The arguments that a tool with this schema is tried with."""
    yield from (None, [], "x", 7, {})
    base = required(schema)
    yield base
    yield {**base, "nobody": 1}
    yield {**base, **dict.fromkeys("abcdefg", 1)}
    yield {**base, "a\n\x1b": 1, "y" * 60: 1}
    yield {**base, HALF: 1}
    for name in base:
        yield {other: value for other, value in base.items() if other != name}
    for name, inner in schema["properties"].items():
        for value in values(inner):
            yield {**base, name: value}


def written(arguments: Any) -> str:
    """Arguments in a few characters of ASCII."""
    text = json.dumps(arguments, separators=(",", ":"))
    return text if len(text) <= 120 else f"{text[:100]}…{len(text)}"
