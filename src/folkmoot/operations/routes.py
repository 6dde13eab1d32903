"""REST routes, made from the rows: their path, query and body, and their answers.

What is asked for here is checked, limited and answered as the call of the tool; only its answer has
no notice for models, and its errors have a status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.operations.accounts import HANDLE_PATTERN
from folkmoot.operations.components import WRITTEN, answers, name_of, shape
from folkmoot.operations.limits import MAX_INTEGER, MAX_QUERY_TEXT
from folkmoot.operations.row import (
    Absent,
    Method,
    Operation,
    Route,
    default_of,
)
from folkmoot.operations.schema import Schema, nulls_of
from folkmoot.operations.table import OPERATIONS

IN_QUERY: Final = frozenset(("GET", "DELETE"))
NO_CONTENT: Final = 204
NAMED: Final = re.compile(r"\{([a-z_]+)\}")
NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 128}
"""What stands in a path, unless its argument says more."""


class Parameter(Struct, frozen=True):
    """One parameter of the path or the query; it is read by the schema that describes it."""

    name: str
    schema: Schema
    description: str
    required: bool = False


class Endpoint(Struct, frozen=True, kw_only=True):
    """One route of one operation."""

    row: Operation
    """The operation, with what this route takes, gives and calls."""
    route: Route
    path_parameters: tuple[Parameter, ...]
    query: tuple[Parameter, ...]
    body: str = ""
    """The name of the object that it takes; empty where it takes none."""
    reply: str = ""
    """The name of the object that it answers; empty where it answers none."""

    @property
    def id(self) -> str:
        """Its name in the document."""
        return self.route.id

    @property
    def name(self) -> str:
        """The operation that policy judges."""
        return self.row.name

    @property
    def method(self) -> Method:
        """The method of its requests."""
        return self.route.method

    @property
    def path(self) -> str:
        """The path, with its parameters in braces."""
        return self.route.path

    @property
    def description(self) -> str:
        """What it does, and for whom if not for everyone with an account."""
        said = self.route.description or self.row.description
        if self.row.local:
            return f"{said} Only on the hub's own socket."
        if self.row.who == "operator":
            return f"{said} For operators: on the hub's socket, or with the scope operate."
        return said

    @property
    def public(self) -> bool:
        """Whether it works without a token."""
        return self.row.public

    @property
    def in_room(self) -> bool:
        """Whether its path names a room."""
        return "{room}" in self.path

    @property
    def not_given(self) -> frozenset[str]:
        """The arguments that neither body nor query may give."""
        route = self.route
        return frozenset((*NAMED.findall(route.path), *route.fixed, *route.headers.values()))

    @property
    def errors(self) -> tuple[type[e.FolkmootError], ...]:
        """The errors of this operation, beside those of every request of its form."""
        found: list[type[e.FolkmootError]] = [*self.row.errors, e.BlockedByInterceptor]
        if self.row.schema["properties"]:
            found.append(e.ArgumentInvalid)
        if self.row.limits:
            found.append(e.RateLimited)
        return tuple(found)


def endpoints(rows: Iterable[Operation]) -> Iterator[Endpoint]:
    for row in rows:
        for route in () if isinstance(row.routes, Absent) else row.routes:
            yield endpoint(row.at(route), route)


def endpoint(row: Operation, route: Route) -> Endpoint:
    named = NAMED.findall(route.path)
    fixed = {*named, *route.fixed, *route.headers.values()}
    left = [name for name in row.schema["properties"] if name not in fixed]
    in_query = [name for name in left if route.method in IN_QUERY or name in route.query]
    body = ""
    if route.body:
        body = row.schema["properties"][route.body]["$ref"].rpartition("/")[2]
    elif len(left) > len(in_query):
        body = body_name(route)
    no_object = route.status == NO_CONTENT or route.media
    return Endpoint(
        row=row,
        route=route,
        path_parameters=tuple(path_parameter(row, name) for name in named),
        query=tuple(parameter(row, name) for name in in_query),
        body=body,
        reply="" if no_object else name_of(row.events or row.gives),
    )


def body_name(route: Route) -> str:
    """The name of the object that a route takes."""
    return route.id[0].upper() + route.id[1:]


def path_parameter(row: Operation, name: str) -> Parameter:
    """An argument as a part of the path."""
    schema = row.schema["properties"][name]
    said = {word: it for word, it in given(schema).items() if word != "description"}
    plain = {**(NAME if said["type"] == "string" and "pattern" not in said else {}), **said}
    return Parameter(name, plain, schema["description"], required=True)


def parameter(row: Operation, name: str) -> Parameter:
    """An argument as a parameter of the query."""
    schema = row.schema["properties"][name]
    required = name in row.schema["required"]
    told: Schema = {"type": schema["type"]}
    if "enum" in schema:
        told["enum"] = schema["enum"]
    elif schema["type"] == "integer":
        told["minimum"] = schema.get("minimum", 0)
        told["maximum"] = min(schema.get("maximum", MAX_INTEGER), MAX_INTEGER)
    elif schema["type"] == "array":
        told["items"] = {**schema["items"], "minLength": 1, "maxLength": MAX_QUERY_TEXT}
    elif schema["type"] == "string":
        told["minLength"] = schema.get("minLength", 1)
        told["maxLength"] = schema.get("maxLength", MAX_QUERY_TEXT)
    default = None if required else default_of(row.takes, name)
    # Without a text there is no such parameter: an empty one is none that it takes.
    if default not in (None, "", msgspec.UNSET):
        told["default"] = default
    return Parameter(name, told, schema["description"], required=required)


def given(schema: Schema) -> Schema:
    """An argument; the pattern of handles is left out, since other spellings are taken too."""
    if "$ref" in schema:
        return {name: schema[name] for name in ("$ref", "description")}
    kept = {name: it for name, it in schema.items() if name != "pattern" or it != HANDLE_PATTERN}
    return {**kept, "additionalProperties": False} if "properties" in kept else kept


def taken(each: Endpoint) -> Schema:
    """The object that an endpoint takes: what is not required may be null, if that means so."""
    row, beside = each.row, {*each.not_given, *(it.name for it in each.query)}
    names = [name for name in row.schema["properties"] if name not in beside]
    optional = [name for name in names if name not in row.schema["required"]]
    nulls = nulls_of(row.takes)
    more = dict(row.takes.__also__)
    said = row.schema["properties"] | more.pop("properties", {})
    properties = {name: given(said[name]) for name in names}
    for name in optional:
        if nulls.get(name, True) and "type" in properties[name]:
            properties[name] = {**properties[name], "type": [properties[name]["type"], "null"]}
            if "enum" in properties[name]:
                properties[name]["enum"] = [*properties[name]["enum"], None]
    if "oneOf" in row.schema and nulls.keys() >= {*row.takes.__exactly_one__}:
        more["oneOf"] = row.schema["oneOf"]
    return shape(properties, optional, **more)


def components(served: Iterable[Endpoint]) -> dict[str, Schema]:
    """Every object that goes in or out, by name."""
    found = dict(WRITTEN)
    for each in served:
        for name, schema in objects(each):
            if found.setdefault(name, schema) != schema:
                raise ValueError(f"two objects are called {name}")
    return found


def objects(each: Endpoint) -> Iterator[tuple[str, Schema]]:
    """What an endpoint takes and answers, by name."""
    if each.body and not each.route.body:
        yield each.body, taken(each)
    if each.reply and each.reply not in WRITTEN:
        yield from answers(each.row.events or each.row.gives)
    if each.row.progress is not None:
        yield from answers(each.row.progress)


ENDPOINTS: Final = tuple(endpoints(OPERATIONS))
COMPONENTS: Final = components(ENDPOINTS)
