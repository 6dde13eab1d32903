"""The fast lane: plain requests are answered from tables, or passed to a backend, without the SDK.

It stands behind the same guard, authentication, limits and pipeline as everything else, and hands
whatever is unusual to the SDK untouched. Its answers are the SDK's, member by member; a test sends
the same requests both ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct

from folkmoot.core.errors import FolkmootError, PromptUnknown, UnknownTool
from folkmoot.mcp.wire import SERVER_KEY
from folkmoot.tools.finder import CALL_TOOL, inner_call
from folkmoot.transports.mcp.exchange import REWRITTEN_KEY
from folkmoot.transports.mcp.heads import (
    CLAIMS,
    STATELESS,
    TOKEN_KEY,
    read_claims,
    read_head,
    read_meta,
)
from folkmoot.transports.mcp.line import JSON_HEADERS, OK, event_headers
from folkmoot.transports.mcp.passage import Passenger
from folkmoot.transports.mcp.plain import (
    LISTINGS,
    CallTool,
    Cancelled,
    Plain,
    read_handshake,
    read_stateless,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from folkmoot.tools import Catalogue, Tool, ToolResult
    from folkmoot.transports.mcp.calls import Calls
    from folkmoot.transports.mcp.clients import Client, KnownClients
    from folkmoot.transports.mcp.deliveries import Deliveries
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.lists import Lists
    from folkmoot.transports.mcp.opencalls import OpenCalls
    from folkmoot.transports.mcp.passage import Passage
    from folkmoot.transports.mcp.plain import Asking, Listing

LISTED_VERSION = "2025-11-25"
"""The one version of the handshake era whose listings are ours to write; others show less."""

ACCEPTED = 202
ONLY_TOKEN = frozenset({TOKEN_KEY})

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
        open_calls: OpenCalls,
        lists: Lists | None,
        passage: Passage | None,
        server_info: dict[str, Any],
    ) -> None:
        self._catalogue = catalogue
        self._calls = calls
        self._clients = clients
        self._deliveries = deliveries
        self._open = open_calls
        self._lists = lists
        self._passage = passage
        self._meta = Raw(_encode({SERVER_KEY: server_info}))

    async def answer(self, exchange: Exchange, body: bytes, receive: Receive, send: Send) -> bool:
        """Answer a request if it is plain; whether it was, and is not for the SDK to answer."""
        session = exchange.session
        head = read_head(exchange.scope, in_session=session is not None)
        if head is None:
            return False
        if session is None:
            request = read_stateless(head, body)
            if request is None:
                return False
            exchange.claims = read_claims(request.params.meta) or b""
            client = self._clients.known(exchange.claims)
            return client is not None and await self._serve(
                exchange, request, client, receive, send
            )
        if session.ended or session.client is None:
            return False
        message = read_handshake(head, session.version, body)
        if message is None or isinstance(message, Cancelled):
            if not self._taken(exchange, message, body):
                return False
            await self._accept(exchange, send)
            return True
        return await self._serve(exchange, message, session.client, receive, send)

    async def _serve(
        self,
        exchange: Exchange,
        request: Plain,
        client: Client,
        receive: Receive,
        send: Send,
    ) -> bool:
        if isinstance(request, LISTINGS):
            result = self._listed(exchange, request, client)
            if result is not None:
                await self._send(exchange, Answer(request.id, result), send)
            return result is not None
        if isinstance(request, CallTool):
            tool = self._catalogue.find(request.params.name)
            if tool is None and self._mirrored(exchange, request):
                # The SDK holds the headers against the arguments.
                return False
            if tool is not None and tool.name == CALL_TOOL:
                tool = self._unwrapped(request, tool)
            if tool is not None:
                answer = exchange.answering(receive, send, self._deliveries)
                return await self._call(exchange, request, tool, answer)
        return await self._pass(exchange, request, client, receive, send)

    def _mirrored(self, exchange: Exchange, request: CallTool) -> bool:
        """Whether headers must repeat some of the arguments."""
        if exchange.session is not None or REWRITTEN_KEY in exchange.scope:
            return False
        return self._passage is not None and self._passage.mirrors(request.params.name)

    def _unwrapped(self, request: CallTool, outer: Tool) -> Tool | None:
        """The tool that a call is about which came inside another; the request is made its own."""
        inner = inner_call(request.params.arguments)
        if inner is None:
            return outer
        tool = self._catalogue.find(inner[0])
        if tool is outer:
            return outer
        request.params.name, request.params.arguments = inner
        return tool

    def _listed(self, exchange: Exchange, request: Listing, client: Client) -> Raw | None:
        session, params = exchange.session, request.params
        if self._lists is None or not is_bare(exchange, request):
            return None
        if session is not None and session.version != LISTED_VERSION:
            return None
        try:
            return self._lists.result(
                request.METHOD, exchange, apps=client.apps, cursor=params.cursor
            )
        except FolkmootError:
            return None

    async def _call(self, exchange: Exchange, request: CallTool, tool: Tool, send: Send) -> bool:
        """Call a tool of the hub's own."""
        params = request.params
        if (
            not is_bare(exchange, request)
            or params.responses is not UNSET
            or params.state is not UNSET
            or not is_plain_call(tool, params.arguments)
        ):
            return False
        if exchange.caller.account is not None:
            await self._deliveries.settled(exchange.caller.account.id)
        session = exchange.session
        version = session.version if session is not None else STATELESS
        result = await self._calls.call(tool, request.id, params.arguments, exchange, version)
        if result.delivered is not None:
            exchange.pending.append(result.delivered)
        await self._send(exchange, Answer(request.id, self._shape(result, exchange)), send)
        return True

    async def _pass(
        self,
        exchange: Exchange,
        request: Asking,
        client: Client,
        receive: Receive,
        send: Send,
    ) -> bool:
        """Pass a request on to the backend that it is about."""
        session = exchange.session
        said = read_meta(request.params.meta, stateless=session is None)
        if self._passage is None or said is None or (session is not None and is_repeated(request)):
            return False
        try:
            params = self._passage.settle(request, exchange)
        except (UnknownTool, PromptUnknown):
            # The SDK tells it, or has one of its own.
            return False
        except FolkmootError as error:
            await self._passage.refuse(exchange, request, error, send)
            return True
        if params is None:
            return False
        if said.rest is not None:
            params["_meta"] = said.rest
        passenger = Passenger(
            exchange=exchange,
            request=request,
            params=params,
            said=said,
            capabilities=client.capabilities,
        )
        await self._passage.carry(passenger, receive, send)
        return True

    def _taken(self, exchange: Exchange, message: Cancelled | None, body: bytes) -> bool:
        """Whether a message of a session ended a call of ours, or answered a question of ours."""
        session = exchange.session
        if session is None:
            return False
        if message is not None:
            return self._open.cancel(session, message.params.request_id)
        return self._open.take(session, body)

    def _shape(self, result: ToolResult, exchange: Exchange) -> CallResult | StatelessResult:
        content = (Text(result.text()),)
        if exchange.session is None:
            return StatelessResult(content, result.is_error, self._meta)
        return CallResult(content, result.is_error)

    async def _send(self, exchange: Exchange, answer: Answer, send: Send) -> None:
        body = _encode(answer)
        headers = JSON_HEADERS
        if exchange.session is not None:
            # The form the SDK answers a session in: a stream of this one event.
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
            headers = event_headers(exchange.session)
        headers = [*headers, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": OK, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _accept(self, exchange: Exchange, send: Send) -> None:
        """Say that a message of a session was taken; there is nothing to answer."""
        headers = [*JSON_HEADERS, (b"content-length", b"0")]
        if exchange.session is not None:
            headers.append((b"mcp-session-id", exchange.session.id.encode()))
        await send({"type": "http.response.start", "status": ACCEPTED, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def is_bare(exchange: Exchange, request: Plain) -> bool:
    """Whether a request says nothing beside itself but who asks."""
    meta = request.params.meta
    if exchange.session is None:
        return meta is not UNSET and meta.keys() <= CLAIMS
    return meta is UNSET or (
        meta.keys() <= ONLY_TOKEN and read_meta(meta, stateless=False) is not None
    )


def is_repeated(request: Asking) -> bool:
    """Whether a request brings answers to questions."""
    params: Any = request.params
    return getattr(params, "responses", UNSET) is not UNSET or (
        getattr(params, "state", UNSET) is not UNSET
    )


def is_plain_call(tool: Tool, arguments: dict[str, Any] | None) -> bool:
    """Whether a call asks nothing of the client and is answered at once."""
    return not tool.asks and not tool.is_waiting(arguments)
