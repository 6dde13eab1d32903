"""The types of the web pages: what operations take and give, as the REST document has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from folkmoot.operations.openapi import document

PATH: Final = "../app/src/api/schema.ts"
HEAD: Final = "/** Made by `make docs` from the hub's OpenAPI document; change it there. */\n"
NAMES: Final = {
    "integer": "number", "number": "number", "string": "string", "boolean": "boolean",
    "null": "null",
}  # fmt: skip
REFERENCE: Final = "#/components/schemas/"


def page() -> str:
    """The file."""
    schemas: dict[str, Any] = document(version="")["components"]["schemas"]
    types = (f"export type {name} = {typed(schema)};\n" for name, schema in sorted(schemas.items()))
    return "\n".join((HEAD, *types))


def typed(schema: dict[str, Any]) -> str:
    """A schema as a TypeScript type."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REFERENCE)
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(typed(each) for each in schema[several]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(typed({**schema, "type": each}) for each in kind)
    if kind == "array":
        return f"Array<{typed(schema.get('items', {}))}>"
    if kind == "object":
        if schema.get("properties"):
            return "{\n" + "".join(members(schema)) + "}"
        values = schema.get("additionalProperties")
        return f"Record<string, {typed(values)}>" if isinstance(values, dict) else "object"
    return NAMES.get(str(kind), "unknown")


def members(schema: dict[str, Any]) -> Iterator[str]:
    """The members of an object, each on its line; those that may be missing have a mark."""
    required = schema.get("required", [])
    for name, value in schema["properties"].items():
        yield f"  {name}{'' if name in required else '?'}: {typed(value)};\n"
