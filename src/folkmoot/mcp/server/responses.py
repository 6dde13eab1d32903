"""HTTP responses to clients: a few bytes, an error, or a stream for as long as it lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import MethodNotAllowed
from folkmoot.core.message import encode_message
from folkmoot.mcp.wire import EVENT_STREAM, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.types import Send

    from folkmoot.core.errors import FolkmootError
    from folkmoot.core.message import MessageId
    from folkmoot.mcp.server.streams import Reader, Stream

QUIET_SECONDS: Final = 15.0
"""After so long a silence a stream says that it is still there."""
PATIENCE_SECONDS: Final = 5.0
"""How long an answer may take before its request becomes a stream, which shows that it is awaited
and can be resumed."""
PIECE: Final = 256 * 1024
COMMENT: Final = b": still here\n\n"
JSON_TYPE: Final = (b"content-type", b"application/json")
EVENT_HEADERS: Final = (
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


async def say(
    send: Send, status: int, body: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Answer with these bytes, which are JSON where there are any."""
    told = [*headers, (b"content-length", b"%d" % len(body))]
    if body:
        told.append(JSON_TYPE)
    await send({"type": "http.response.start", "status": status, "headers": told})
    # The next piece waits until the client has read of those before it.
    for start in range(0, len(body) - PIECE, PIECE):
        piece = body[start : start + PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    left = (len(body) - 1) // PIECE * PIECE if body else 0
    await send({"type": "http.response.body", "body": body[left:]})


async def refuse(
    send: Send,
    error: FolkmootError,
    message_id: MessageId | None = None,
    status: int | None = None,
) -> None:
    """Answer that a request cannot be served, with the status of the error or another."""
    headers = []
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.data["allow"].encode()))
    await say(send, status or error.http, encode_message(refusal(message_id, error)), headers)


async def answer(
    send: Send, stream: Stream, reader: Reader, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Answer as soon as something is said: by the answer alone if it is that, else by a stream."""
    while not await reader.wait(PATIENCE_SECONDS) and not stream.events:
        pass
    if reader.gone:
        return
    if stream.answer is not None:
        await say(send, stream.answer.status, stream.answer.body, headers)
        stream.answered()
        return
    stream.begun = True
    await write_events(send, reader, stream.first() if stream.primed else b"", headers)


async def write_events(
    send: Send, reader: Reader, first: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Write a stream until it is done or its client is gone."""
    await send(
        {"type": "http.response.start", "status": 200, "headers": [*EVENT_HEADERS, *headers]}
    )
    if first:
        await send({"type": "http.response.body", "body": first, "more_body": True})
    # The head leaves with the first part of the body, and a client may wait for it.
    patience = QUIET_SECONDS if first else 0
    while (events := await reader.more(patience)) is not None:
        await send({"type": "http.response.body", "body": events or COMMENT, "more_body": True})
        patience = QUIET_SECONDS
    await send({"type": "http.response.body", "body": b"", "more_body": False})
