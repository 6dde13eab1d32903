"""Turns operations into methods: their arguments into a request, its answer into a struct.

A method is an operation's function as its caller sees it: the same arguments, the same answer.
Nothing is loaded before it is used.
"""

from __future__ import annotations

from functools import cache, reduce
from inspect import Parameter, signature
from operator import or_
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET, Raw, Struct, defstruct

from folkmoot import __version__
from folkmoot.client.http import JSON
from folkmoot.client.transports import HubRequest
from folkmoot.core import errors as e
from folkmoot.mcp.wire import EVENT_STREAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.client.hub import Hub
    from folkmoot.operations.declare import Served
    from folkmoot.operations.row import Operation, Route

P = ParamSpec("P")
T = TypeVar("T")

QUERIED: Final = frozenset({"GET", "DELETE"})
"""Methods whose requests have no body."""
WORDS: Final = {True: "true", False: "false"}


class Method(Generic[P, T]):
    """An operation as a method of `Hub`."""

    def __init__(self, find: Callable[[], Served[P, T]]) -> None:
        self.find = find

    @overload
    def __get__(self, hub: None, owner: type) -> Method[P, T]: ...

    @overload
    def __get__(self, hub: Hub, owner: type) -> Callable[P, T]: ...

    def __get__(self, hub: Hub | None, owner: type) -> Any:
        if hub is None:
            return self

        def ask(*args: P.args, **given: P.kwargs) -> Any:
            return hub.perform(self.find(), args, given)

        return ask


def bound(
    function: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name; those that equal their default are left out."""
    _, *parameters = signature(function).parameters.values()
    own = signature(function).replace(parameters=parameters)
    members = own.bind(*args, **given).arguments
    return {
        name: value
        for name, value in members.items()
        if own.parameters[name].default is Parameter.empty or value != own.parameters[name].default
    }


def request_for(row: Operation, members: dict[str, Any], token: str) -> HubRequest:
    """The request for one of an operation's routes, which its arguments choose."""
    from folkmoot.operations.schema import nulls_of

    route = route_for(row, members)
    nulls = nulls_of(route.takes or row.takes)
    left = {
        name: value
        for name, value in members.items()
        if name not in route.fixed and value is not UNSET and (value is not None or nulls.get(name))
    }
    path = route.path
    for name in list(left):
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(left.pop(name)), safe=""))
    accept = f"{EVENT_STREAM}, {JSON}" if row.progress else JSON
    headers = {"accept": accept, "user-agent": f"folkmoot/{__version__}"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    headers |= {key: str(left.pop(name)) for key, name in route.headers.items() if name in left}
    queried = [name for name in left if route.method in QUERIED or name in route.query]
    query = {name: WORDS.get(it, it) if type(it) is bool else it
             for name, it in ((name, left.pop(name)) for name in queried)}  # fmt: skip
    target = f"{path}?{urlencode(query, doseq=True)}" if query else path
    body = b""
    if has_body(route, row):
        headers["content-type"] = JSON
        body = msgspec.json.encode(left[route.body] if route.body else left)
    return HubRequest(route.method, target, headers, body, row)


def has_body(route: Route, row: Operation) -> bool:
    """Whether a route takes an object."""
    elsewhere = {*route.fixed, *route.headers.values(), *route.query}
    names = (route.takes or row.takes).__struct_fields__
    left = [it for it in names if it not in elsewhere and f"{{{it}}}" not in route.path]
    return bool(left) and route.method not in QUERIED


def route_for(row: Operation, members: dict[str, Any]) -> Route:
    """The route that fits what some arguments say; those that are not given fit every route."""
    from folkmoot.operations.row import default_of

    fit = [
        route
        for route in row.routes  # type: ignore[union-attr]
        if all(members.get(name, value) == value for name, value in route.fixed.items())
    ]
    if not fit:
        names = ", ".join(sorted(name for route in row.routes for name in route.fixed))  # type: ignore[union-attr]
        raise e.ArgumentInvalid(f"The hub's routes do not take this value of {names}.", field=names)

    def is_default(route: Route) -> bool:
        return all(default_of(row.takes, name) == it for name, it in route.fixed.items())

    return next(filter(is_default, fit), fit[0])


def read_answer(body: bytes | bytearray, kind: Any) -> Any:
    """What a hub answered, as a struct; `ValueError` for anything else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError from None


@cache
def lenient(kind: Any) -> Any:
    """A type for answers of later hubs: any text where there are words, and no bounds.

    Of a struct it is one that inherits from it.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return lenient(inner[0])
    if origin is Literal:
        return reduce(or_, {type(it) for it in inner})
    if origin in (Union, UnionType):
        return reduce(or_, map(lenient, inner))
    if origin in (list, dict, tuple):
        return origin[tuple(it if it is ... else lenient(it) for it in inner)]
    if kind is Raw:
        return Any
    if isinstance(kind, type) and issubclass(kind, Struct):
        if not kind.__struct_fields__:
            return Any
        hints = get_type_hints(kind)
        fields: list[Any] = []
        for each in msgspec.structs.fields(kind):
            default: dict[str, Any] = {}
            if each.default is not msgspec.NODEFAULT:
                default["default"] = each.default
            elif each.default_factory is not msgspec.NODEFAULT:
                default["default_factory"] = each.default_factory
            told = msgspec.field(name=each.encode_name, **default)
            fields.append((each.name, lenient(hints[each.name]), told))
        config = kind.__struct_config__
        return defstruct(kind.__name__, fields, bases=(kind,), frozen=config.frozen, kw_only=True)
    return kind
