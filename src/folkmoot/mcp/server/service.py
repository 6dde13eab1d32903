"""A server behind its edge: one service of stateless requests, whatever its clients' era.

The edge reads a request, makes it an `McpRequest` and writes the `McpAnswer`. The service knows
nothing of HTTP, sessions or eras. `Stopped` is how it ends a request that nobody waits for any
more.

Clients of the stateless era get its wishes for input as they are, and come back. The others are
asked, and the request is made again with what they said (`questions`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from folkmoot.core.message import ErrorObject
from folkmoot.core.session import Era
from folkmoot.mcp import wire
from folkmoot.mcp.server.streams import Weight
from folkmoot.mcp.wire import members_of, refusal

if TYPE_CHECKING:
    from folkmoot.core import errors as e
    from folkmoot.core.message import MessageId, Notification, Request
    from folkmoot.mcp.server.heads import Head
    from folkmoot.mcp.server.responses import HttpReply

After: TypeAlias = Callable[[], Awaitable[None]]
"""What is done once an answer was handed to a client that is still there."""


class Stopped(Exception):
    """A request was ended before it was answered: nobody wants the answer any more."""


class McpRequest(Struct, kw_only=True, eq=False, weakref=True):
    """One request, with its client's metadata."""

    request: Request
    params: dict[str, Any]
    """Those of the request, without its `_meta`."""
    meta: dict[str, Any]
    """What is meant for whoever answers; what was between the client and the edge is not in it."""
    caller: Any
    """Who asks, as the service knows callers; the edge only passes it on."""
    version: str
    """The version of MCP that the client itself speaks."""
    era: Era = Era.HANDSHAKE
    capabilities: dict[str, Any]
    """What the client can be asked for."""
    token: MessageId | None = None
    """What the client calls the progress of this request; None if it wants to hear of none."""
    level: str | None = None
    """From which level on it wants to hear log messages."""
    head: Head | None = None
    """What the request says in its headers; None where headers repeat nothing."""
    reply: HttpReply
    stop: Callable[[], None] | None = None
    """Ends the request early, raising `Stopped` in it; set by a service while that is possible."""
    cancelled: bool = False
    """Whether the client has said that it wants no answer."""

    def __repr__(self) -> str:
        """What is asked, never by whom: the caller of a request has what opens doors."""
        return f"McpRequest({self.request!r})"

    @property
    def repeated(self) -> list[tuple[str, str]] | None:
        """The headers that repeat arguments of a call; None where headers repeat nothing.

        `heads.check_marked` holds them against the arguments, once it is known which are marked.
        """
        return None if self.head is None else self.head.parameters

    @property
    def stateless(self) -> bool:
        """Whether the client itself speaks the stateless era."""
        return self.era is Era.STATELESS

    def tell(self, notification: Notification) -> None:
        """Send a notification about this request before its answer, if the client wants it."""
        if notification.method == wire.PROGRESS:
            if self.token is not None:
                params = {**members_of(notification.params), "progressToken": self.token}
                self.reply.say(written(notification, params), Weight.PROGRESS)
        elif notification.method == wire.LOGGED and is_wanted(notification, self.level):
            self.reply.say(written(notification), Weight.LOG)


class McpAnswer(Struct):
    """What came of a request: a result in the form of the stateless era, or an error.

    A ready-made result, as bytes, has the form of the client's own era.
    """

    result: Any = UNSET
    error: ErrorObject | UnsetType = UNSET
    after: After | None = None


class McpService(Protocol):
    """Whatever answers requests."""

    async def perform(self, asked: McpRequest) -> McpAnswer:
        """Answer one request, or raise why that cannot be done."""

    def refusal(self, asked: McpRequest, error: e.FolkmootError) -> McpAnswer:
        """The answer to a request that cannot be done."""


def error_of(error: e.FolkmootError) -> McpAnswer:
    """An error of ours as the answer to a request."""
    return McpAnswer(error=refusal(None, error).error)


def method_unknown(method: str) -> McpAnswer:
    """The answer to a request for what is not served, or not in the client's era."""
    return McpAnswer(error=ErrorObject(wire.METHOD_NOT_FOUND, "Method not found", method))


def kept_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """The members of a `_meta` that are for whoever answers."""
    return {
        name: value
        for name, value in meta.items()
        if name != wire.TOKEN_KEY and not name.startswith(wire.PROTOCOL_KEYS)
    }


def is_wanted(notification: Notification, level: str | None) -> bool:
    """Whether a log message has at least the wanted level."""
    given = members_of(notification.params).get("level")
    if level is None or given not in wire.LEVELS:
        return False
    return wire.LEVELS.index(given) >= wire.LEVELS.index(level)


def written(notification: Notification, params: Any = UNSET) -> dict[str, Any]:
    """A notification as JSON members, with its own params or others."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": notification.method}
    told = notification.params if params is UNSET else params
    if told is not UNSET:
        message["params"] = told
    return message
