"""Routes of operations that are tools as well: made from their rows, with the same handlers.

What is asked for here is checked, limited and answered as the call of the tool; only its answer has
no notice for models, and its errors have a status.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core.errors import (
    ArgumentInvalid,
    BlockedByInterceptor,
    FolkmootError,
    RateLimited,
)
from folkmoot.core.policy import NOBODY
from folkmoot.operations import OPERATIONS, Absent, Caller, Route
from folkmoot.operations import Operation as Row
from folkmoot.operations.arguments import unknown_names
from folkmoot.operations.row import default_of
from folkmoot.transports.rest.model import (
    Answered,
    Body,
    Call,
    Handler,
    Operation,
    Parameter,
    Reply,
    Schema,
)
from folkmoot.transports.rest.schemas import LARGEST_SEQ, SCHEMAS
from folkmoot.transports.rest.shapes import shape

MOST_TEXT: Final = 1_000
"""The longest text in a query."""
IN_QUERY: Final = frozenset(("GET", "DELETE"))
"""Methods whose arguments are in the query."""
NAMED: Final = re.compile(r"\{([a-z_]+)\}")
PLAIN: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    Any: {},
}


def made() -> Iterator[tuple[Row, Route]]:
    """The routes that are made from rows, and those rows."""
    for row in OPERATIONS:
        for route in () if isinstance(row.routes, Absent) else row.routes:
            if route.id:
                yield row, route


def operation_of(row: Row, route: Route) -> Operation:
    """A route as REST serves it."""
    left = arguments_of(row, route)
    in_query = route.method in IN_QUERY
    taken = Body(body_name(route), route.example) if left and not in_query else None
    return Operation(
        id=route.id,
        name=row.name,
        method=route.method,
        path=route.path,
        summary=route.summary,
        description=route.description or row.description,
        handler=performing(row, route),
        query=tuple(parameter(row, name) for name in left) if in_query else (),
        body=taken,
        reply=Reply(route.status, "What came of it.", row.gives.__name__),
        errors=tuple(refusals(row)),
        public=row.public,
        fixed=route.fixed,
        row=row,
    )


def arguments_of(row: Row, route: Route) -> list[str]:
    """The arguments that a request gives beside its path."""
    given = {*NAMED.findall(route.path), *route.fixed}
    return [name for name in row.schema["properties"] if name not in given]


def refusals(row: Row) -> Iterator[type[FolkmootError]]:
    """What the operation may be refused with."""
    yield from (*row.errors, BlockedByInterceptor)
    if row.schema["properties"]:
        yield ArgumentInvalid
    if row.limits:
        yield RateLimited


def body_name(route: Route) -> str:
    """The name of the object that a route takes."""
    return route.id[0].upper() + route.id[1:]


def parameter(row: Row, name: str) -> Parameter:
    """An argument as a parameter of the query."""
    schema = row.schema["properties"][name]
    required = name in row.schema["required"]
    told: Schema = {"type": schema["type"]}
    if "enum" in schema:
        told["enum"] = schema["enum"]
    elif schema["type"] == "integer":
        told["minimum"] = schema.get("minimum", 0)
        told["maximum"] = schema.get("maximum", LARGEST_SEQ)
    else:
        told |= {"minLength": 1, "maxLength": MOST_TEXT}
    default = None if required else default_of(row.takes, name)
    if default is not None:
        told["default"] = default
    return Parameter(name, told, schema["description"], required=required)


def performing(row: Row, route: Route) -> Handler:
    """The handler that calls the tool."""
    named = frozenset((*NAMED.findall(route.path), *route.fixed))

    async def handler(call: Call) -> Answered:
        if call.raw and (unknown := [name for name in call.body if name in named]):
            raise ArgumentInvalid(unknown_names("", unknown), field=unknown[0])
        caller = Caller(
            account=None if row.public else call.visitor.account,
            principal=NOBODY if row.public else call.visitor.principal,
            credential_id="" if row.public else call.visitor.credential_id,
            address=call.address,
            base_url=call.base_url,
            is_direct=call.is_direct,
            leaving=call.leaving,
            raises=True,
        )
        dispatcher = call.services.dispatcher
        return Answered((await dispatcher.call(row.name, call.arguments, caller)).payload)

    return handler


def objects() -> Iterator[tuple[str, Schema]]:
    """What these routes take and answer, by name."""
    for row, route in made():
        left = arguments_of(row, route)
        if left and route.method not in IN_QUERY:
            yield body_name(route), taken_object(row.schema, left)
        yield row.gives.__name__, answer_object(row.gives)


def taken_object(schema: Schema, names: list[str]) -> Schema:
    """An object of some arguments; what is not required may be null."""
    required = [name for name in schema["required"] if name in names]
    properties = {name: given(schema["properties"][name]) for name in names}
    for name in properties.keys() - {*required}:
        properties[name]["type"] = [properties[name]["type"], "null"]
        if "enum" in properties[name]:
            properties[name]["enum"] = [*properties[name]["enum"], None]
    return shape(properties, *(properties.keys() - {*required}))


def given(schema: Schema) -> Schema:
    """An argument; patterns are left out, since other spellings of a handle are taken too."""
    kept = {name: value for name, value in schema.items() if name != "pattern"}
    return {**kept, "additionalProperties": False} if "properties" in kept else kept


def answer_object(gives: type[Struct]) -> Schema:
    """An answer as it is on the wire."""
    hints = get_type_hints(gives, include_extras=True)
    fields = msgspec.structs.fields(gives)
    optional = [field.encode_name for field in fields if field.default is UNSET]
    return shape(
        {field.encode_name: answer_value(hints[field.name]) for field in fields}, *optional
    )


def answer_value(hint: Any) -> Schema:
    """A value of an answer."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return answer_value(inner[0])
    if origin in (Union, UnionType):
        (kept,) = (each for each in inner if each not in (NoneType, UnsetType))
        value = answer_value(kept)
        return {**value, "type": [value["type"], "null"]} if NoneType in inner else value
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": answer_value(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": answer_value(inner[1])}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return answer_object(hint)
    return dict(PLAIN[hint])


ROUTES: Final = tuple(operation_of(row, route) for row, route in made())
COMPONENTS: Final[dict[str, Schema]] = {**SCHEMAS, **dict(objects())}
"""Every object that goes in or out, by name."""
