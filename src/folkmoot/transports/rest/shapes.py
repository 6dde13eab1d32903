"""How schemas are put together."""

from __future__ import annotations

from typing import Any

from folkmoot.transports.rest.model import Schema


def ref(name: str) -> Schema:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def told(type_: str, description: str, **more: Any) -> Schema:
    """A plain value of an answer."""
    return {"type": type_, "description": description, **more}


def seq(description: str) -> Schema:
    """A place in the history of a room."""
    return told("integer", description, minimum=0)


def moment(description: str) -> Schema:
    """A time."""
    return told("string", description, format="date-time")


def text(description: str, most: int = 128, **more: Any) -> Schema:
    """A text that is not empty."""
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": most,
        "description": description,
        **more,
    }


def shape(properties: dict[str, Schema], *optional: str, **more: Any) -> Schema:
    """An object with these members and no others; all are there but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **more,
    }


def listed(items: Schema, **more: Any) -> Schema:
    """A list."""
    return {"type": "array", "items": items, **more}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}
