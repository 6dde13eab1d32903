"""Small words for writing JSON Schemas."""

from __future__ import annotations

from typing import Any

from folkmoot.tools.model import Schema

HANDLE_PATTERN = "^[a-z][a-z0-9_]{2,19}$"


def text(description: str, **more: Any) -> Schema:
    """A string."""
    return {"type": "string", "description": description, **more}


def choice(*values: str, description: str) -> Schema:
    """One of several words."""
    return {"type": "string", "enum": list(values), "description": description}


def integer(description: str, **bounds: int) -> Schema:
    """A whole number, with `minimum` and `maximum` where it has them."""
    return {"type": "integer", "description": description, **bounds}


def switch(description: str) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": description}


def obj(properties: dict[str, Schema], required: tuple[str, ...] = (), **more: Any) -> Schema:
    """An object."""
    return {"type": "object", "properties": properties, "required": list(required), **more}


def texts(description: str, *, most: int, values: tuple[str, ...] = ()) -> Schema:
    """A list of strings, or of some of these words."""
    items: Schema = {"type": "string", **({"enum": list(values)} if values else {})}
    return {"type": "array", "items": items, "maxItems": most, "description": description}


def lists(description: str) -> Schema:
    """An object whose members are lists of strings, under whatever names."""
    items: Schema = {"type": "array", "items": {"type": "string"}}
    return {"type": "object", "additionalProperties": items, "description": description}


def anything(description: str) -> Schema:
    """An object with whatever members."""
    return {"type": "object", "additionalProperties": True, "description": description}


def one_of(*names: str) -> dict[str, list[Schema]]:
    """Exactly one of these members must be there."""
    return {"oneOf": [{"required": [name]} for name in names]}


LIMIT = integer(
    "Maximum number of entries to return. Default 100, max 100.", minimum=1, maximum=100
)
CURSOR = text("Continue where an earlier answer ended: its next_cursor.")
