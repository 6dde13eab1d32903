"""Finds out which transport a server needs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from folkmoot.core.errors import (
    CarryError,
    MessageError,
    ServerAnswerInvalid,
)
from folkmoot.core.message import Request, Response, decode_message, encode_message
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.connection import read_whole
from folkmoot.mcp.client.headers import Mirror
from folkmoot.mcp.client.oldsse import ENDPOINT, ENDPOINT_SECONDS
from folkmoot.mcp.client.weblink import LISTENS, OK, SAYS
from folkmoot.mcp.framing import EventReader
from folkmoot.mcp.wire import (
    DISCOVER,
    EVENT_STREAM,
    HANDSHAKE_VERSION,
    INITIALIZE,
    JSON,
    SESSION_HEADER,
    STATELESS_VERSION,
    request_meta,
)

if TYPE_CHECKING:
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.mcp.client.target import HttpTarget

Kind: TypeAlias = Literal["http", "sse"]

PERHAPS_OLD: Final = frozenset({400, 404, 405})
"""How a server of the old transport answers a message at the address of its stream."""
MOST_ANSWER: Final = 1024 * 1024

CLIENT: Final = {"name": "folkmoot", "version": "1"}
DISCOVER_PROBE: Final = Request(
    id="folkmoot-probe", method=DISCOVER, params={"_meta": request_meta(CLIENT, {})}
)
HANDSHAKE_PROBE: Final = encode_message(
    Request(
        id="folkmoot-probe",
        method=INITIALIZE,
        params={"protocolVersion": HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": CLIENT},
    )
)
PROBES: Final = (
    (
        {**SAYS, **Mirror().headers(DISCOVER_PROBE, STATELESS_VERSION)},
        encode_message(DISCOVER_PROBE),
    ),
    (SAYS, HANDSHAKE_PROBE),
)
"""What a server is asked, the newest era first: an older server may refuse a request that it
does not know without a word of JSON-RPC."""


async def detect(target: HttpTarget) -> Kind:
    """Which transport a server speaks, found out as the specification says.

    A server that answers, or refuses in the words of JSON-RPC, speaks Streamable HTTP; one that
    does not take a message but opens a stream that begins with an endpoint, the old one.
    """
    status = 0
    for headers, probe in PROBES:
        async with target.ask("POST", headers, probe) as answer:
            status = answer.status
            if await _names_endpoint(answer):
                # It takes everything for the wish to have its stream.
                return "sse"
            if status not in PERHAPS_OLD or await _speaks_jsonrpc(answer):
                await end_session(target, answer)
                return "http"
    try:
        async with target.ask("GET", LISTENS) as answer:
            if await _names_endpoint(answer):
                return "sse"
    except CarryError:
        pass
    raise ServerAnswerInvalid(
        f"What answers at {target.shown} ({status}) is not an MCP server.", status=status
    )


async def _speaks_jsonrpc(answer: HttpAnswer) -> bool:
    if answer.content_type != JSON:
        return False
    try:
        return isinstance(decode_message(await read_whole(answer, MOST_ANSWER)), Response)
    except (MessageError, ServerAnswerInvalid):
        return False


async def end_session(target: HttpTarget, answer: HttpAnswer, headers: Headers = Headers()) -> None:  # noqa: B008 - frozen
    """Leave nothing behind of a handshake that was only a question."""
    session = answer.headers.get(SESSION_HEADER)
    if answer.status not in OK or session is None:
        return
    told = Headers((*headers, (SESSION_HEADER, session)))
    try:
        async with asyncio.timeout(ENDPOINT_SECONDS), target.ask("DELETE", told):
            return
    except (CarryError, TimeoutError):
        return


async def _names_endpoint(answer: HttpAnswer) -> bool:
    """Whether an answer is the stream of the old transport, which its first event tells."""
    if answer.status not in OK or answer.content_type != EVENT_STREAM:
        return False
    reader = EventReader(MOST_ANSWER)
    try:
        async with asyncio.timeout(ENDPOINT_SECONDS):
            async for chunk in answer.chunks():
                for event in reader.feed(chunk):
                    return event.event_type == ENDPOINT
    except (MessageError, TimeoutError):
        return False
    return False
