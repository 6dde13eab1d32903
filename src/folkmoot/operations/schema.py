"""From the struct of an operation's arguments to the JSON Schema that clients are shown.

msgspec's own schemas are right too, but are not those of the specification: they have defaults,
`null` and references, sort words, and know nothing of arguments that exclude each other.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin
from typing import get_type_hints as type_hints

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

Schema: TypeAlias = dict[str, Any]

PLAIN: Final[dict[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    Raw: {"type": "object"},
    Any: {},
}
ORDER: Final = (
    *("$ref", "type", "enum", "items", "minItems", "maxItems", "uniqueItems"),
    *("additionalProperties", "maxProperties", "propertyNames", "properties", "required"),
    *("description", "pattern", "format", "minLength", "maxLength", "minimum", "maximum"),
    "default",
)
LENGTHS: Final = {"array": ("minItems", "maxItems")}


@cache
def schema_of(takes: type[Struct]) -> Schema:
    """The schema of an object with these members."""
    hints = type_hints(takes, include_extras=True)
    fields = msgspec.structs.fields(takes)
    schema: Schema = {
        "type": "object",
        "properties": {field.encode_name: schema_of_type(hints[field.name]) for field in fields},
        "required": [field.encode_name for field in fields if field.required],
    }
    if one := getattr(takes, "__exactly_one__", ()):
        schema["oneOf"] = [{"required": [name]} for name in one]
    return schema


def schema_of_type(hint: Any) -> Schema:
    """The schema of a value of this type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return described(schema_of_type(inner[0]), inner[1:])
    if origin in (Union, UnionType):
        # `null` stands for what was left out, so no schema needs to say it.
        (kept,) = (each for each in inner if each not in (NoneType, UnsetType))
        return schema_of_type(kept)
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of_type(inner[0])}
    if origin is dict:
        named = inner[1]
        return {
            "type": "object",
            "additionalProperties": True if named is Any else schema_of_type(named),
        }
    if isinstance(hint, type) and issubclass(hint, Struct):
        return dict(schema_of(hint))
    return dict(PLAIN[hint])


def described(schema: Schema, metas: tuple[Meta, ...]) -> Schema:
    """A schema with what the annotations of its type add."""
    least, most = LENGTHS.get(schema.get("type", ""), ("minLength", "maxLength"))
    for meta in metas:
        added = {
            "description": meta.description,
            "minimum": meta.ge,
            "maximum": meta.le,
            least: meta.min_length,
            most: meta.max_length,
            **(meta.extra_json_schema or {}),
        }
        schema |= {name: value for name, value in added.items() if value is not None}
    return {name: schema[name] for name in ORDER if name in schema}


@cache
def nulls_of(takes: type[Struct]) -> dict[str, bool]:
    """The members for which `null` is not the same as left out, and whether they may be null."""
    hints = type_hints(takes)
    return {
        field.encode_name: NoneType in get_args(hints[field.name])
        for field in msgspec.structs.fields(takes)
        if field.default is UNSET
    }
