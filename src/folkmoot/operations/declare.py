'''Declares operations: the signature is the schema, the docstring what a model reads.

```python
mail = Topic(scope="mail.read")

@mail.reads("msg/threads", get("/v1/threads", "listThreads", "List your threads"))
async def threads(call: Call, *, limit: PageLimit = 100) -> ThreadPage:
    """List your message threads."""
```

An argument is described by a text in its `Annotated`, or by `describe`, which has bounds too. What
is required stands before the `*`. Annotations are read when the function is declared, so that their
types are imported for real; only `Call` need not be.
'''

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import cached_property, partial, reduce
from inspect import Parameter, signature
from operator import or_
from types import ModuleType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
)

from msgspec import Struct, defstruct
from msgspec.structs import asdict, replace

from folkmoot.core import errors as e
from folkmoot.core.scopes import OPERATE
from folkmoot.operations.presence import CONFIRMING, ERRORS, PRESENT, Confirmed
from folkmoot.operations.row import (
    Absent,
    Arguments,
    AuditSpec,
    Effect,
    Operation,
    OperationLimit,
    Route,
    Who,
    describe,
)
from folkmoot.operations.subjects import find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.operations.call import Call

P = ParamSpec("P")
T = TypeVar("T")

OPERATED: Final = Absent("Operating a hub is for people and their programs, not for models.")
IN_BROWSERS: Final = Absent("It is for a person in a browser, which a model has not.")
FOR_PAGES: Final = Absent("It is for the hub's own pages, in a browser.")
"""Where there could be a command: the client has no method for it either."""
UUID: Final = object()
"""In the `Annotated` of an argument: it is a UUID, or a list of them, and may be in capitals."""


OWN: Final = frozenset(("exactly_one", "document", "for_others", "present", "gives"))
"""Columns that are told of an operation's arguments."""


class RouteColumns(TypedDict, total=False):
    """The columns of a route; see `Route`."""

    status: int
    example: dict[str, Any]
    fixed: dict[str, Any]
    query: tuple[str, ...]
    body: str
    headers: dict[str, str]
    answer: str
    media: str
    location: str
    errors: tuple[type[e.FolkmootError], ...]


class Columns(TypedDict, total=False):
    """The columns of an operation; see `Operation`."""

    scope: str
    about: str
    lesser: tuple[str, str, str]
    who: Who
    others_words: tuple[str, ...]
    reaches_others: bool
    secret: tuple[str, ...]
    limits: tuple[OperationLimit, ...]
    errors: tuple[type[e.FolkmootError], ...]
    waits: str
    asks: str
    once: str
    progress: type[Struct]
    events: type[Struct]
    judged: bool
    needs: tuple[str, ...]
    local: bool
    audit: AuditSpec
    tool: Literal["model", "app", "finder"] | Absent
    app: str
    commands: tuple[str, ...] | Absent
    exactly_one: tuple[str, ...]
    """Arguments of which exactly one must be given."""
    gives: type[Struct]
    """What the document calls the answer, where the function gives JSON that is ready."""
    document: dict[str, Any]
    """What the OpenAPI document says of the arguments beside what each of them is."""
    for_others: ForOthers
    present: Callable[[Call, str], Awaitable[None]]
    """Refuses whoever does not show that they are there, as `presence.check_present` does."""


def _route(
    method: Any,
    path: str,
    id: str = "",  # noqa: A002 - as OpenAPI calls it
    summary: str = "",
    description: str = "",
    **more: Unpack[RouteColumns],
) -> Route:
    return Route(method, path, id, summary, description, **more)


get = partial(_route, "GET")
post = partial(_route, "POST")
put = partial(_route, "PUT")
patch = partial(_route, "PATCH")
delete = partial(_route, "DELETE")


class ForOthers(Struct, frozen=True, kw_only=True):
    """How an operator does the same for someone else: then `call.subject` is whose it is."""

    name: str
    route: Route
    says: str
    """The description."""
    whose: Any = Annotated[str, "Whose account, by its handle (without @ prefix)."]
    """The argument `handle`; None if it is about everyone, whose `subject` is None."""
    without: tuple[str, ...] = ()
    """Arguments that only the owner of an account gives."""
    only: tuple[str, ...] = ()
    """Arguments that only an operator gives."""
    more: Columns = {}


class Served(Generic[P, T]):
    """A function that other operations can call, and the client's methods are typed by."""

    def __init__(self, function: Callable[Concatenate[Call, P], Awaitable[T]]) -> None:
        self.function = function

    def __call__(self, call: Call, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Perform it, as a part of another operation."""
        return self.function(call, *args, **kwargs)

    def as_routed(self, *, others: bool = False) -> Operation:
        """The operation with the routes that call this function."""
        raise NotImplementedError


class Declared(Served[P, T]):
    """An operation: its function and its rows of the table."""

    def __init__(
        self,
        function: Callable[Concatenate[Call, P], Awaitable[T]],
        name: str,
        effect: Effect,
        routes: tuple[Route | Absent, ...],
        columns: Columns,
    ) -> None:
        super().__init__(function)
        self._name, self._effect, self._columns = name, effect, columns
        self._others = columns.get("for_others")
        only = self._others.only if self._others is not None else ()
        self._takes, self._gives = shapes_of(function, name, columns, only)
        self._routes = [route for route in routes if not isinstance(route, Absent)]
        self._absent = next((it for it in routes if isinstance(it, Absent)), None)

    def at(self, *routes: Route) -> BehindRoutes:
        """Declare the function behind routes where programs give or get more than models do."""
        return BehindRoutes(self, routes)

    def add(
        self, function: Callable[..., Awaitable[Any]], routes: tuple[Route, ...]
    ) -> list[Route]:
        """Take routes that have a function of their own."""
        added = []
        for route in routes:
            takes, gives = shapes_of(function, route.id, self._columns)
            added.append(replace(route, handler=spread(function), takes=takes, gives=gives))
        self._routes += added
        return added

    @cached_property
    def rows(self) -> tuple[Operation, ...]:
        """Its rows of the table."""
        columns: Any = {name: it for name, it in self._columns.items() if name not in OWN}
        if "room" in self._takes.__struct_fields__:
            columns.setdefault("about", "room")
        routes = self._routes
        if "present" in self._columns:
            columns["secret"] = (*columns.get("secret", ()), *CONFIRMING)
            columns["errors"] = (*columns.get("errors", ()), *ERRORS)
            routes = [replace(each, headers=PRESENT) for each in routes]
        row = Operation(
            name=self._name,
            description=description_of(self.function),
            handler=self._handler(),
            takes=self._takes,
            gives=self._gives,
            effect=self._effect,
            routes=self._absent or tuple(routes),
            **columns,
        )
        return (
            (row,) if self._others is None else (row, for_others(row, self.function, self._others))
        )

    def as_routed(self, *, others: bool = False) -> Operation:
        row = self.rows[1 if others else 0]
        routes = () if isinstance(row.routes, Absent) else row.routes
        return replace(row, routes=tuple(each for each in routes if each.handler is None))

    def _handler(self) -> Callable[[Call], Awaitable[Any]]:
        check = self._columns.get("present")
        if check is None:
            return spread(self.function)
        function, name = self.function, self._name

        async def handler(call: Call) -> Any:
            await check(call, name)
            given = asdict(call.arguments)
            for member in CONFIRMING:
                del given[member]
            return await cast("Any", function)(call, **given)

        return handler


class BehindRoutes(Struct, frozen=True):
    """Takes the function behind some routes of an operation."""

    operation: Declared[Any, Any]
    routes: tuple[Route, ...]

    def __call__(
        self, function: Callable[Concatenate[Call, P], Awaitable[T]]
    ) -> RouteFunction[P, T]:
        return RouteFunction(function, self.operation, self.operation.add(function, self.routes))


class RouteFunction(Served[P, T]):
    """The function behind some routes of an operation."""

    def __init__(
        self,
        function: Callable[Concatenate[Call, P], Awaitable[T]],
        operation: Declared[Any, Any],
        routes: list[Route],
    ) -> None:
        super().__init__(function)
        self._operation, self._routes = operation, routes

    def as_routed(self, *, others: bool = False) -> Operation:
        row = self._operation.rows[1 if others else 0].at(self._routes[0])
        return replace(row, routes=tuple(self._routes))


class Topic:
    """What several operations have in common; a verb says what an operation does to the world."""

    def __init__(self, **columns: Unpack[Columns]) -> None:
        self._columns = columns

    def with_(self, **columns: Unpack[Columns]) -> Topic:
        """The same with other columns."""
        both: Any = {**self._columns, **columns}
        return Topic(**both)

    def reads(self, name: str, *routes: Route | Absent, **columns: Unpack[Columns]) -> Declaring:
        """Declare what changes nothing."""
        return Declaring(name, "reads", routes, {**self._columns, **columns})

    def adds(self, name: str, *routes: Route | Absent, **columns: Unpack[Columns]) -> Declaring:
        """Declare what makes something new whenever it is called."""
        return Declaring(name, "adds", routes, {**self._columns, **columns})

    def changes(self, name: str, *routes: Route | Absent, **columns: Unpack[Columns]) -> Declaring:
        """Declare what can be called again with the same result."""
        return Declaring(name, "changes", routes, {**self._columns, **columns})

    def destroys(self, name: str, *routes: Route | Absent, **columns: Unpack[Columns]) -> Declaring:
        """Declare what removes something."""
        return Declaring(name, "destroys", routes, {**self._columns, **columns})

    def acts(self, name: str, *routes: Route | Absent, **columns: Unpack[Columns]) -> Declaring:
        """Declare what cannot be taken back, and is not the same when it is done again."""
        return Declaring(name, "acts", routes, {**self._columns, **columns})


class Declaring(Struct, frozen=True):
    """Takes the function of an operation."""

    name: str
    effect: Effect
    routes: tuple[Route | Absent, ...]
    columns: Columns

    def __call__(self, function: Callable[Concatenate[Call, P], Awaitable[T]]) -> Declared[P, T]:
        return Declared(function, self.name, self.effect, self.routes, self.columns)


def rows_of(*modules: ModuleType) -> Iterator[Operation]:
    """The rows that modules declare, in their order."""
    for module in modules:
        for it in vars(module).values():
            if isinstance(it, Declared) and it.function.__module__ == module.__name__:
                yield from it.rows


def for_others(
    row: Operation, function: Callable[..., Awaitable[Any]], said: ForOthers
) -> Operation:
    """The row by which an operator does for someone what they can do themselves."""
    takes, _ = shapes_of(function, said.name, {}, said.without, said.whose)

    async def handler(call: Call) -> Any:
        members = asdict(call.arguments)
        handle = members.pop("handle", None)
        call.subject = None if handle is None else await find(call.services, handle)
        call.for_others = True
        return await function(call, **members)

    columns: Any = {
        "errors": row.errors,
        "audit": row.audit,
        "commands": row.commands,
        "tool": OPERATED,
        "needs": ("accounts",),
        "scope": OPERATE,
        "who": "operator",
        **said.more,
    }
    if said.whose is not None:
        columns["errors"] = (e.CommandInvalid, e.UserNotFound, *columns["errors"])
    return Operation(
        name=said.name,
        description=said.says,
        handler=handler,
        takes=takes,
        gives=row.gives,
        effect=row.effect,
        routes=(said.route,),
        **columns,
    )


def description_of(function: Callable[..., Any]) -> str:
    if not function.__doc__:
        raise RuntimeError(
            f"{function.__module__}.{function.__name__} has no docstring. Folkmoot needs them: "
            "run Python without -OO."
        )
    return " ".join(function.__doc__.split())


def spread(function: Callable[..., Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
    """A handler that gives a function the arguments of a call."""
    if len(signature(function).parameters) == 1:
        return function
    return lambda call: function(call, **asdict(call.arguments))


def shapes_of(
    function: Callable[..., Any],
    name: str,
    columns: Columns,
    without: tuple[str, ...] = (),
    whose: Any = None,
) -> tuple[type[Arguments], type[Struct]]:
    """The structs of what a function takes and gives, by its annotations."""
    names = vars(sys.modules[function.__module__])
    _, *parameters = signature(function).parameters.values()
    fields: list[Any] = [] if whose is None else [("handle", read_hint(whose))]
    uuids: list[str] = []
    for each in parameters:
        if each.name in without:
            continue
        hint = eval(each.annotation, names)  # noqa: S307 - an annotation of ours
        if is_uuid(hint):
            uuids.append(each.name)
        default = () if each.default is Parameter.empty else (each.default,)
        fields.append((each.name, read_hint(hint), *default))
    gives = columns.get("events") or columns.get("gives")
    if gives is None:
        gives = eval(function.__annotations__["return"], names)  # noqa: S307
    said = {
        "__uuids__": tuple(uuids),
        "__exactly_one__": columns.get("exactly_one", ()),
        "__also__": columns.get("document", {}),
    }
    base = Confirmed if "present" in columns else Arguments
    return define(name, fields, function.__module__, said, base), gives


def define(
    name: str, fields: list[Any], module: str, said: dict[str, Any], base: Any = Arguments
) -> Any:
    """The struct of an operation's arguments."""
    return defstruct(
        name,
        fields,
        bases=(base,),
        module=module,
        namespace=said,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def read_hint(hint: Any) -> Any:
    """A type with the texts in its `Annotated` as descriptions."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        metas = [describe(it) if isinstance(it, str) else it for it in inner[1:]]
        return Annotated[(read_hint(inner[0]), *(it for it in metas if it is not UUID))]
    if origin in (Union, UnionType):
        return reduce(or_, map(read_hint, inner))
    return hint


def is_uuid(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return UUID in hint.__metadata__
    return get_origin(hint) in (Union, UnionType) and any(map(is_uuid, get_args(hint)))
