"""The fast lane: a plain `tools/call` or `tools/list` is answered from the table, without the SDK.

It stands behind the same guard, authentication, limits and pipeline as everything else, and hands
whatever is unusual to the SDK untouched. Its answers are the SDK's, member by member; a test sends
the same requests both ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from folkmoot.names import STYLES
from folkmoot.transports.mcp.plain import (
    STATELESS,
    HandshakeList,
    Plain,
    StatelessCall,
    StatelessList,
    read_handshake,
    read_head,
    read_stateless,
)

if TYPE_CHECKING:
    from starlette.types import Send

    from folkmoot.names import NameStyle
    from folkmoot.tools import Catalogue, Tool, ToolResult
    from folkmoot.transports.mcp.calls import Calls
    from folkmoot.transports.mcp.clients import KnownClients
    from folkmoot.transports.mcp.deliveries import Deliveries
    from folkmoot.transports.mcp.exchange import Exchange

LISTED_VERSION = "2025-11-25"
"""The one version of the handshake era whose listings are ours to write; others show less."""

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
OK = 200
JSON_HEADERS = [(b"content-type", b"application/json")]
EVENT_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]

_encode = msgspec.json.Encoder().encode


class Text(Struct, tag_field="type", tag="text"):
    """The one content of a result."""

    text: str


class CallResult(Struct):
    """A result as the handshake era writes it."""

    content: tuple[Text]
    is_error: bool = msgspec.field(name="isError")


class StatelessResult(Struct):
    """A result as the stateless era writes it."""

    content: tuple[Text]
    is_error: bool = msgspec.field(name="isError")
    meta: Raw = msgspec.field(name="_meta")
    result_type: str = msgspec.field(name="resultType", default="complete")


class Answer(Struct, tag_field="jsonrpc", tag="2.0"):
    """A JSON-RPC response."""

    id: str | int
    result: CallResult | StatelessResult | Raw


class Lane:
    """Answers plain requests; the cost of one is that of its tool and of its own bytes."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        calls: Calls,
        clients: KnownClients,
        deliveries: Deliveries,
        server_info: dict[str, Any],
        lists: bool = True,
    ) -> None:
        self._catalogue = catalogue
        self._calls = calls
        self._clients = clients
        self._deliveries = deliveries
        self._meta = Raw(_encode({SERVER_INFO: server_info}))
        self._listings = {
            (style, apps, stateless): self._listing(style, apps=apps, stateless=stateless)
            for style in STYLES
            for apps in (False, True)
            for stateless in (False, True)
            if lists
        }

    async def answer(self, exchange: Exchange, body: bytes, send: Send) -> bool:
        """Answer a request if it is plain; whether it was, and is not for the SDK to answer."""
        session = exchange.session
        head = read_head(exchange.scope, in_session=session is not None)
        if head is None or (session is not None and (session.ended or not session.version)):
            return False
        request: Plain | None
        if session is None:
            request = read_stateless(head, body)
            if request is not None:
                exchange.claims = request.params.meta.claims
        else:
            request = read_handshake(head, session.version, body)
        answer = None if request is None else await self._result(exchange, request)
        if request is None or answer is None:
            return False
        await self._send(exchange, Answer(request.id, answer), send)
        return True

    async def _result(
        self, exchange: Exchange, request: Plain
    ) -> CallResult | StatelessResult | Raw | None:
        """What the request is answered with, or nothing if it is for the SDK after all."""
        apps = self._apps(exchange)
        if apps is None:
            return None
        if isinstance(request, StatelessList | HandshakeList):
            if exchange.session is not None and exchange.session.version != LISTED_VERSION:
                return None
            shows = apps or exchange.all_tools
            return self._listings.get((exchange.names, shows, exchange.session is None))
        tool = self._catalogue.find(request.params.name)
        if tool is None or not is_plain_call(tool, request.params.arguments):
            return None
        if exchange.caller.account is not None:
            await self._deliveries.settled(exchange.caller.account.id)
        version = exchange.session.version if exchange.session is not None else STATELESS
        result = await self._calls.call(
            tool, request.id, request.params.arguments, exchange, version
        )
        if result.delivered is not None:
            exchange.pending.append(result.delivered)
        return self._shape(result, stateless=isinstance(request, StatelessCall))

    def _apps(self, exchange: Exchange) -> bool | None:
        """Whether the client shows apps; None for one whose word the SDK has not yet accepted."""
        if exchange.session is not None:
            return exchange.session.apps
        return self._clients.apps(exchange.claims)

    def _shape(self, result: ToolResult, *, stateless: bool) -> CallResult | StatelessResult:
        content = (Text(result.text()),)
        if stateless:
            return StatelessResult(content, result.is_error, self._meta)
        return CallResult(content, result.is_error)

    def _listing(self, style: NameStyle, *, apps: bool, stateless: bool) -> Raw:
        listed: dict[str, Any] = {"tools": self._catalogue.listing(style, app_only=apps)}
        if stateless:
            listed |= {
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": self._meta,
            }
        return Raw(_encode(listed))

    async def _send(self, exchange: Exchange, answer: Answer, send: Send) -> None:
        body = _encode(answer)
        headers = JSON_HEADERS
        if exchange.session is not None:
            # The form the SDK answers a session in: a stream of this one event.
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
            headers = [*EVENT_HEADERS, (b"mcp-session-id", exchange.session.id.encode())]
        else:
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": OK, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def is_plain_call(tool: Tool, arguments: dict[str, Any] | None) -> bool:
    """Whether a call asks nothing of the client and is answered at once."""
    return not tool.asks and not tool.is_waiting(arguments)
