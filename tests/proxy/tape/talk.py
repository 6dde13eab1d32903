"""A small conversation to record: messages as bytes, in a session, over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import decode_message
from folkmoot.core.ports import Carried
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import ConnectionInfo, Headers, HttpMetadata, TransportContext

TO_SERVER = MessageDirection.CLIENT_TO_SERVER
TO_CLIENT = MessageDirection.SERVER_TO_CLIENT
SESSION = SessionContext.with_id(SessionId("5e55104"))
HTTP = TransportContext(
    HttpMetadata(Headers.of([("accept", "application/json")]), "POST", "/mcp"),
    ConnectionInfo("c1"),
)


def said(
    body: dict[str, Any] | bytes,
    direction: MessageDirection = TO_SERVER,
    *,
    at: float = 10.0,
    session: SessionContext = SESSION,
    transport: TransportContext = HTTP,
    **more: Any,
) -> Carried:
    raw = body if isinstance(body, bytes) else msgspec.json.encode({"jsonrpc": "2.0", **body})
    context = MessageContext(TimingContext(at, 1e9 + at), direction, session, transport)
    return Carried(MessageEnvelope(decode_message(raw), context), **more)


def call(number: int | str, tool: str, /, *, at: float = 10.0, **arguments: Any) -> Carried:
    params = {"name": tool, "arguments": arguments}
    return said({"id": number, "method": "tools/call", "params": params}, at=at)


def answer(number: int | str, result: Any, *, at: float = 10.5) -> Carried:
    """The answer to a call."""
    return said({"id": number, "result": result}, TO_CLIENT, at=at)


def words(text: str, **more: Any) -> dict[str, Any]:
    """The result of a tool that says something."""
    return {"content": [{"type": "text", "text": text}], **more}
