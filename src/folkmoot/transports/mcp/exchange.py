"""One HTTP request to `/mcp`: who asks, and what is to be done once the answer has left."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from folkmoot.tools.model import Caller, Delivered
from folkmoot.tools.patience import unless

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from folkmoot.accounts import Account
    from folkmoot.names import NameStyle
    from folkmoot.transports.mcp.deliveries import Deliveries
    from folkmoot.transports.mcp.sessions import Session

SCOPE_KEY = "folkmoot.exchange"
ASKING: ContextVar[Account | None] = ContextVar("asking", default=None)
"""Whose request the SDK reads, for what it wants to know before it hands the request over."""
REWRITTEN_KEY = "folkmoot.rewritten"
"""In the scope of a request that is not as its client sent it: its headers may repeat less."""
REWRITTEN: ContextVar[bool] = ContextVar("rewritten", default=False)
"""Whether the request that the SDK reads is one of those."""
TOKEN_INVALID: ContextVar[bool] = ContextVar("token_invalid", default=False)
"""Whether that request has a token that is nobody's."""
COMMENT = b":"
"""Begins a line of a stream that only keeps the connection open."""


class Exchange(Struct, kw_only=True, eq=False, weakref=True):
    """What belongs to one request; the SDK carries it in the request's scope."""

    caller: Caller
    scope: Scope
    mark: str = ""
    """The mark of the token that the request carries, valid or not."""
    holder: str = ""
    """The mark of the token that authenticated the caller; empty when nobody is."""
    handshake: bool = False
    """Whether the request belongs to the eras that know sessions."""
    token_invalid: bool = False
    """Whether the request, or its session, has a token that is nobody's."""
    suspended: bool = False
    """Whether that is because the token's account is suspended."""
    session: Session | None = None
    claims: bytes = b""
    """What a client of the stateless era says of itself; empty where the SDK has read it alone."""
    names: NameStyle = "safe"
    all_tools: bool = False
    search: bool = False
    """Whether the list of tools has only those that find and call the others."""
    pending: list[Delivered] = field(default_factory=list)
    """What to do once the answer was handed to a client that is still there."""

    @property
    def listens(self) -> bool:
        """Whether it is the stream of a session, which answers nothing by itself."""
        return bool(self.scope["method"] == "GET")

    def listening(self, receive: Receive) -> Receive:
        """What a stream hears that only listens: when the hub stops, that its client has left."""

        async def heard() -> Message:
            message = await unless(self.caller.leaving, _once(receive))
            return message or {"type": "http.disconnect"}

        return heard

    def answering(self, receive: Receive, send: Send, deliveries: Deliveries) -> Send:
        """The way to the client, with an eye on whether it is still there when the answer is.

        The body of the request must have been read from `receive`.
        """

        async def answer(message: Message) -> None:
            if not self.pending or not carries_answer(message):
                await send(message)
                return
            gone = await has_left(receive)
            await send(message)
            pending, self.pending = self.pending, []
            if not gone and self.caller.account is not None:
                for each in pending:
                    deliveries.start(self.caller.account.id, each)

        return answer


def exchange_of(request: Any) -> Exchange:
    """The exchange that the SDK's request belongs to."""
    exchange: Exchange = request.scope[SCOPE_KEY]
    return exchange


def carries_answer(message: Message) -> bool:
    """Whether a part of a response has the answer in it."""
    body = message.get("body", b"")
    return message["type"] == "http.response.body" and bool(body) and not body.startswith(COMMENT)


async def has_left(receive: Receive) -> bool:
    """Whether the client has closed its connection. The body of the request must have been read."""
    try:
        async with asyncio.timeout(0):
            message = await receive()
    except TimeoutError:
        return False
    return bool(message["type"] == "http.disconnect")


async def _once(receive: Receive) -> Message:
    return await receive()
