"""Finds out which transport a server needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from folkmoot import __version__
from folkmoot.core import errors as e
from folkmoot.core.message import (
    ProtocolMessage,
    Request,
    Response,
    decode_message,
    encode_message,
)
from folkmoot.core.transport import Headers, HttpMetadata
from folkmoot.mcp.client.connection import read_whole
from folkmoot.mcp.client.oldsse import ENDPOINT, ENDPOINT_SECONDS
from folkmoot.mcp.client.weblink import LISTENS, OK, SAYS
from folkmoot.mcp.framing import EventReader
from folkmoot.mcp.wire import (
    DISCOVER,
    EVENT_STREAM,
    HANDSHAKE_VERSION,
    INITIALIZE,
    JSON,
    METHOD_HEADER,
    SESSION_HEADER,
    STATELESS_VERSION,
    VERSION_HEADER,
    request_meta,
)

if TYPE_CHECKING:
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.mcp.client.target import HttpTarget

Kind: TypeAlias = Literal["http", "sse"]

PERHAPS_OLD: Final = frozenset({400, 404, 405})
"""How a server of the old transport answers a message at the address of its stream."""
MOST_ANSWER: Final = 1024 * 1024

DISCOVERY: Final = Request(
    id="folkmoot",
    method=DISCOVER,
    params={"_meta": request_meta({"name": "folkmoot", "version": __version__}, {})},
)
DISCOVERY_HEADERS: Final = {
    **SAYS,
    VERSION_HEADER: STATELESS_VERSION,
    METHOD_HEADER: DISCOVER,
}
HANDSHAKE: Final = Request(
    id="folkmoot-probe",
    method=INITIALIZE,
    params={
        "protocolVersion": HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "folkmoot", "version": __version__},
    },
)

Note: TypeAlias = Callable[[ProtocolMessage, HttpMetadata], None]
"""Is told what was asked of a server, and what it answered, once it did."""


def unnoted(_message: ProtocolMessage, _metadata: HttpMetadata) -> None:
    """Nobody wants to know."""


async def detect(target: HttpTarget, note: Note = unnoted) -> Kind:
    """Which transport a server speaks.

    It is asked what servers of the stateless era know. One that answers that, or refuses it in the
    words of JSON-RPC, speaks Streamable HTTP; one that opens a stream that begins with an endpoint,
    the old transport. Some servers of the handshake era refuse in no such words whatever comes
    before a handshake: only who would fail otherwise is offered one.
    """
    status, kind = await _asked(target, DISCOVERY, DISCOVERY_HEADERS, note)
    if kind is None and await _opens_stream(target):
        kind = "sse"
    if kind is None:
        status, kind = await _asked(target, HANDSHAKE, SAYS, note)
    if kind is None:
        raise e.ServerAnswerInvalid(
            f"What answers at {target.shown} ({status}) is not an MCP server.", status=status
        )
    return kind


async def _asked(
    target: HttpTarget, question: Request, headers: dict[str, str], note: Note
) -> tuple[int, Kind | None]:
    """The status of the answer to a question, and what it shows."""
    asking = target.ask("POST", headers, encode_message(question))
    async with asking as answer:
        endpoint, said = await first_of(answer)
        note(question, HttpMetadata(Headers(tuple(headers.items())), "POST", target.shown))
        if said is not None:
            came = HttpMetadata(answer.headers, "POST", target.shown, answer.status)
            note(said, came)
        if endpoint:
            # It takes everything for the wish to have its stream.
            return answer.status, "sse"
        if said is None and answer.status in PERHAPS_OLD:
            return answer.status, None
        await end_session(target, answer)
        return answer.status, "http"


async def _opens_stream(target: HttpTarget) -> bool:
    try:
        async with target.ask("GET", LISTENS) as answer:
            return (await first_of(answer))[0]
    except e.CarryError:
        return False


async def first_of(answer: HttpAnswer) -> tuple[bool, Response | None]:
    """Whether an answer is the stream of the old transport; else the response in it, if any."""
    try:
        if answer.content_type == JSON:
            return False, read_response(await read_whole(answer, MOST_ANSWER))
        if answer.status not in OK or answer.content_type != EVENT_STREAM:
            return False, None
        reader = EventReader(MOST_ANSWER)
        async with asyncio.timeout(ENDPOINT_SECONDS):
            async for chunk in answer.chunks():
                for event in reader.feed(chunk):
                    if event.event_type == ENDPOINT:
                        return True, None
                    if (found := read_response(event.data)) is not None:
                        return False, found
    except (e.MessageError, e.ServerAnswerInvalid, TimeoutError):
        pass
    return False, None


def read_response(raw: bytes) -> Response | None:
    """The response in some bytes, if there is one."""
    try:
        message = decode_message(raw)
    except e.MessageError:
        return None
    return message if isinstance(message, Response) else None


async def end_session(target: HttpTarget, answer: HttpAnswer, headers: Headers = Headers()) -> None:  # noqa: B008 - frozen
    """Leave nothing behind of a handshake that was only a question."""
    session = answer.headers.get(SESSION_HEADER)
    if answer.status not in OK or session is None:
        return
    told = Headers((*headers, (SESSION_HEADER, session)))
    try:
        async with asyncio.timeout(ENDPOINT_SECONDS), target.ask("DELETE", told):
            return
    except (e.CarryError, TimeoutError):
        return
