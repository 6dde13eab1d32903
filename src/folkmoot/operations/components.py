"""The objects of the OpenAPI document, each under its name.

What operations answer is made from the structs that they give. Written by hand are those that no
struct holds: errors, capabilities, and the messages of rooms, whose bytes are passed on as they
are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from folkmoot.core.limits import MAX_TARGET, MAX_TARGETS
from folkmoot.operations.schema import PLAIN, Schema
from folkmoot.rooms.model import RoomPolicy, ref

CALLED: Final = {"PostedMessage": "Message", "HubDigest": "Digest"}
"""Structs that the document calls otherwise: a message is the same wherever it is passed on."""

_PATTERN: Final[Schema] = {
    "type": "string",
    "pattern": (
        r"^!?[a-z0-9*-]{1,32}(\.[a-z0-9*-]{1,32}(\.[!-9;-~]{1,128}(:[^\x00-\x1f]{1,1024})?)?)?$"
    ),
}
_TARGET: Final[Schema] = {
    "type": "string",
    "pattern": "^[a-z0-9_*-]+$",
    "minLength": 1,
    "maxLength": MAX_TARGET,
}
_TARGETS: Final[Schema] = {
    "type": "array",
    "items": _TARGET,
    "minItems": 1,
    "maxItems": MAX_TARGETS,
}
_CAPABILITY: Final[Schema] = {
    "description": (
        "A pattern over kinds, alone or with a constraint on the payload and on the recipients."
    ),
    "anyOf": [
        _PATTERN,
        {
            "type": "object",
            "properties": {
                "kind": _PATTERN,
                "payload": {"type": "object"},
                "to": {"anyOf": [_TARGET, _TARGETS]},
            },
            "required": ["kind"],
            "additionalProperties": False,
        },
    ],
}


def text(description: str, most: int = 128) -> Schema:
    """A text that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


_IDS: Final[Schema] = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 128},
    "maxItems": 64,
}
_ENVELOPE: Final[dict[str, Schema]] = {
    "protocol": {"type": "string", "const": "mcpx/v1", "description": "How it is written."},
    "id": text("Set by the hub if left out."),
    "from": text("The sender; set by the hub if left out."),
    "to": {**_IDS, "description": "The participants who are addressed; empty is everyone."},
    "kind": text("What the message is, such as `chat.message`.", 1280),
    "correlation_id": {**_IDS, "description": "The ids of the messages this one belongs to."},
    "context": text("A context of the sender's own."),
    "payload": {
        "type": ["object", "null"],
        "description": "As its kind says; it is never changed.",
    },
}


def nullable(schema: Schema) -> Schema:
    """The schema with null allowed."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


_SENT: Final[dict[str, Schema]] = {
    **_ENVELOPE,
    **{name: nullable(_ENVELOPE[name]) for name in ("id", "from", "to", "context")},
    "correlation_id": {
        **_ENVELOPE["correlation_id"],
        "description": "The ids of the messages this one belongs to; a single id may be given "
        "as a string.",
        "type": ["array", "string", "null"],
        "minLength": 1,
        "maxLength": 128,
    },
}


def shape(properties: dict[str, Schema], optional: Iterable[str] = (), **more: Any) -> Schema:
    """An object with these members and no others, all required but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in {*optional}],
        "additionalProperties": False,
        **more,
    }


def policy_change() -> Schema:
    """What may be changed of a room's policy; the bounds are those of the policy itself."""
    members: dict[str, Schema] = {}
    for name, hint in get_type_hints(RoomPolicy, include_extras=True).items():
        kind, meta = get_args(hint)
        says = meta.description.rstrip(".").partition(";")[0]
        by_hub = name not in ("quorum", "loop_guard")
        members[name] = {
            "type": [PLAIN[kind]["type"], "null"],
            "minimum": meta.ge,
            "maximum": meta.le,
            "description": f"{says}; 0 for the hub's default." if by_hub else meta.description,
        }
    says = "Members that are left out stay as they are; null resets a member to its default."
    return shape(members, members, description=says)


WRITTEN: Final[dict[str, Schema]] = {
    "Error": shape(
        {
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string", "description": "For programs."},
                    "message": {"type": "string", "description": "For people."},
                    "retry_after": {
                        "type": "number",
                        "description": "Seconds after which to try again.",
                    },
                    "attempted_kind": {
                        "type": ["string", "null"],
                        "description": "The kind of the message that was refused.",
                    },
                    "your_capabilities": {
                        "type": "array",
                        "items": ref("Capability"),
                        "description": "What the sender may send instead.",
                    },
                },
                "required": ["code", "message"],
            }
        }
    ),
    "Capability": _CAPABILITY,
    "PolicyChange": policy_change(),
    "Envelope": {"type": "object", "properties": _SENT, "required": ["protocol", "kind"]},
    "Message": {
        "type": "object",
        "properties": {
            "seq": {
                "type": "integer",
                "description": "Its place in the history of the room.",
                "minimum": 0,
            },
            "ts": {
                "type": "string",
                "description": "When the hub accepted it.",
                "format": "date-time",
            },
            **_ENVELOPE,
            "edits": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1},
                "description": "The `seq`s of the chat messages by which its sender edited or "
                "deleted it; its payload is as they left it.",
            },
        },
        "required": ["seq", "ts", "protocol", "id", "from", "kind"],
    },
    "Document": {"type": "object", "description": "An OpenAPI document."},
}
"""The schemas that no struct tells."""


def name_of(gives: type[Struct]) -> str:
    """What the object is called in the document."""
    return CALLED.get(gives.__name__) or gives.__name__.removesuffix("View")


def answers(gives: type[Struct]) -> Iterator[tuple[str, Schema]]:
    """The schemas of an answer and of the structs inside it, by name."""
    hints = get_type_hints(gives, include_extras=True)
    fields = msgspec.structs.fields(gives)
    omits = gives.__struct_config__.omit_defaults
    optional = [
        field.encode_name
        for field in fields
        if field.default is UNSET or (omits and not field.required)
    ]
    members: dict[str, Schema] = {}
    for field in fields:
        hint = hints[field.name]
        yield from (pair for inner in structs_in(hint) for pair in answers(inner))
        members[field.encode_name] = value(hint, may_be_null=not omits)
    yield name_of(gives), shape(members, optional)


def structs_in(hint: Any) -> Iterator[type[Struct]]:
    """The structs that a type is made of."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for inner in get_args(hint):
        yield from structs_in(inner)


def value(hint: Any, *, may_be_null: bool = True) -> Schema:
    """A value of an answer."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return described(inner, may_be_null=may_be_null)
    if origin in (Union, UnionType):
        (kept,) = (each for each in inner if each not in (NoneType, UnsetType))
        made = value(kept)
        return nullable(made) if NoneType in inner and may_be_null else made
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin in (list, tuple):
        return {"type": "array", "items": value(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": value(inner[1])}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return ref(name_of(hint))
    return dict(PLAIN[hint])


def described(annotated: tuple[Any, ...], *, may_be_null: bool) -> Schema:
    """The schema of a value with its annotations' description and bounds."""
    hint, *metas = annotated
    more: Schema = {}
    for meta in metas:
        if isinstance(meta, str):
            more["description"] = meta
        elif isinstance(meta, Meta):
            said = {"description": meta.description, "minimum": meta.ge, "maximum": meta.le}
            more |= {name: it for name, it in said.items() if it is not None}
            more |= meta.extra_json_schema or {}
    return more if "$ref" in more else {**value(hint, may_be_null=may_be_null), **more}
