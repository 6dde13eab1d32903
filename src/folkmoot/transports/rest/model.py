"""The nouns: an operation, what it takes and answers, and one call of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from folkmoot.core import strict
from folkmoot.core.equality import same
from folkmoot.core.errors import RewriteRefused
from folkmoot.core.strict import Limits
from folkmoot.operations.row import Method
from folkmoot.transports.rest.reading import fits

if TYPE_CHECKING:
    from folkmoot.accounts import Accounts
    from folkmoot.core.errors import FolkmootError
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.operations import Operation as Row
    from folkmoot.operations.dispatch import Dispatcher
    from folkmoot.ratelimits import RateLimits
    from folkmoot.rooms.model import Visitor
    from folkmoot.rooms.rooms import Rooms

Schema: TypeAlias = dict[str, Any]

ENVELOPE: Final = "Envelope"
"""The schema of a room's message."""
BODY: Final = Limits(message_bytes=256 * 1024, nesting=16)
"""How much a body may ask of us; what is said in a room has the limits of rooms instead."""


class Services(Struct, frozen=True, kw_only=True):
    """What the handlers work with."""

    accounts: Accounts
    rooms: Rooms
    dispatcher: Dispatcher
    policy: HubPolicy
    limits: RateLimits
    document: Raw
    """The OpenAPI document."""


class Parameter(Struct, frozen=True):
    """One parameter of the path or the query; it is read by the schema that describes it."""

    name: str
    schema: Schema
    description: str
    required: bool = False
    """Whether a query must have it."""


class Reply(Struct, frozen=True):
    """What an operation answers when it succeeds."""

    status: int
    description: str
    schema: str | None = None
    """The name of the schema of its JSON body; None where it has none."""
    headers: Mapping[str, str] = {}
    """Headers it has, and what each of them says."""


class Body(Struct, frozen=True):
    """The JSON object that a request brings."""

    schema: str
    example: dict[str, Any]


class Call(Struct, kw_only=True, eq=False):
    """One request on its way through its handler."""

    services: Services
    visitor: Visitor
    """Who asks; operations that need no token must not look at it."""
    room: str = ""
    """The name of the room in the path."""
    id: str = ""
    """The id of the proposal in the path."""
    named: dict[str, str] = {}
    """What else the path names."""
    fixed: dict[str, Any] = {}
    """Arguments that the operation itself gives."""
    query: dict[str, Any]
    """The parameters of the query that were given, or have a default."""
    raw: bytes = b""
    """The body as it came."""
    address: str = ""
    base_url: str = ""
    """What the caller reached the hub at."""
    is_direct: Callable[[], bool] | None = None
    """Whether the request was made on the hub's own machine; None where a proxy may hide that."""
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client has left or the hub is stopping: nobody waits for an answer any more."""

    @property
    def arguments(self) -> dict[str, Any]:
        """All that was given, as the operation's tool takes it."""
        given = {**self.query, **(self.body if self.raw else {})}
        named = {"room": self.room, "proposal": self.id}
        given |= {name: value for name, value in named.items() if value}
        return {**given, **self.named, **self.fixed}

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object of the request."""
        return strict.decode_object(self.raw, BODY)

    def rewritten(self, operation: Operation, arguments: dict[str, Any]) -> Call:
        """The same request with other arguments; which room it is about cannot be changed."""
        if same(arguments, self.arguments):
            return self
        if operation.row is not None:
            return replace(self, query=arguments, raw=b"", named={}, fixed={})
        given = {**arguments}
        if (given.pop("room", ""), given.pop("proposal", "")) != (self.room, self.id):
            raise RewriteRefused("An interceptor tried to change which room it is about.")
        query = {it.name: given.pop(it.name) for it in operation.query if it.name in given}
        if not all(fits(it.schema, query[it.name]) for it in operation.query if it.name in query):
            raise RewriteRefused("An interceptor made a query that cannot be.")
        return replace(self, query=query, raw=strict.encode(given) if self.raw else b"")

    def __repr__(self) -> str:
        # A body may hold an invitation.
        return f"Call(room={self.room!r})"


class Answered(Struct, frozen=True):
    """What a handler comes to: the content of the reply, and its headers."""

    content: Any = None
    headers: Mapping[str, str] = {}


Handler: TypeAlias = Callable[[Call], Awaitable[Answered]]


class Operation(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    id: str
    name: str
    """The operation that policy judges, as the call of a tool of this name."""
    method: Method
    path: str
    summary: str
    description: str = ""
    handler: Handler
    query: tuple[Parameter, ...] = ()
    body: Body | None = None
    reply: Reply
    errors: tuple[type[FolkmootError], ...] = ()
    """What it may refuse with, beside what every operation of its form may."""
    public: bool = False
    """Whether it works without a token."""
    is_message: bool = False
    """Whether its body is a room's message, which enters as the operation that it says."""
    fixed: dict[str, Any] = {}
    """Arguments that the operation itself gives."""
    row: Row | None = None
    """Where it is made from, if its tool's handler answers it."""

    @property
    def in_room(self) -> bool:
        """Whether its path names a room."""
        return "{name}" in self.path

    @property
    def of_credential(self) -> bool:
        """Whether its path names a token."""
        return "{credential}" in self.path

    @property
    def of_proposal(self) -> bool:
        """Whether its path names a proposal."""
        return "{id}" in self.path
