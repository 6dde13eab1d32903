"""A tape in memory: the messages in their order, and which answers belong to which requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageEnvelope
from folkmoot.core.message import ProtocolMessage, decode_message
from folkmoot.core.session import ANONYMOUS, ProtocolVersion, SessionContext, SessionId
from folkmoot.core.strict import Limits
from folkmoot.core.transport import (
    UNKNOWN,
    ConnectionInfo,
    Headers,
    HttpMetadata,
    SseMetadata,
    StdioMetadata,
    TransportContext,
    TransportMetadata,
    WebSocketMetadata,
)
from folkmoot.proxy.redaction.placeholders import RedactedPlace
from folkmoot.proxy.tape.lines import (
    ConnectionPart,
    CorrelationLine,
    EndLine,
    Header,
    HttpPart,
    MessageLine,
    SessionPart,
    SsePart,
    StdioPart,
    TransportPart,
    UnknownPart,
    WebSocketPart,
)

_NO_SESSION: Final = SessionPart()
_NO_TRANSPORT: Final = UnknownPart()

_PARTS: Final[dict[type, Callable[[Any, ConnectionPart | None], TransportPart]]] = {
    StdioMetadata: lambda m, c: StdioPart(m.process_id, c),
    HttpMetadata: lambda m, c: HttpPart(m.method, m.uri, m.headers.pairs, m.status, c),
    SseMetadata: lambda m, c: SsePart(
        m.stream_id, m.event_id, m.event_type, m.retry_after, m.last_event_id, c
    ),
    WebSocketMetadata: lambda m, c: WebSocketPart(m.frame_type, m.is_final, m.compression, c),
    type(None): lambda _, c: UnknownPart(c),
}

_METADATA: Final[dict[type, Callable[[Any], TransportMetadata | None]]] = {
    StdioPart: lambda p: StdioMetadata(p.process_id),
    HttpPart: lambda p: HttpMetadata(Headers(p.headers), p.method, p.uri, p.status),
    SsePart: lambda p: SseMetadata(
        p.stream_id, p.event_id, p.event_type, p.retry_after, p.last_event_id
    ),
    WebSocketPart: lambda p: WebSocketMetadata(p.frame_type, p.is_final, p.compression),
    UnknownPart: lambda _: None,
}


def session_part(session: SessionContext) -> SessionPart:
    """A session as written on a tape."""
    identity = None if session.session_id is None else session.session_id.value
    return SessionPart(
        identity, session.protocol_version.value, session.state, session.correlation_id
    )


def session_from(part: SessionPart) -> SessionContext:
    if part == _NO_SESSION:
        return ANONYMOUS
    identity = None if part.id is None else SessionId(part.id)
    return SessionContext(identity, ProtocolVersion(part.version), part.correlation, part.state)


def transport_part(transport: TransportContext) -> TransportPart:
    """A transport as written on a tape."""
    known, connection = transport.connection, None
    if known is not None:
        connection = ConnectionPart(
            known.connection_id, known.remote_addr, known.local_addr, known.tls_info
        )
    return _PARTS[type(transport.metadata)](transport.metadata, connection)


def transport_from(part: TransportPart) -> TransportContext:
    if part == _NO_TRANSPORT:
        return UNKNOWN
    known, connection = part.connection, None
    if known is not None:
        connection = ConnectionInfo(known.id, known.remote, known.local, known.tls)
    return TransportContext(_METADATA[type(part)](part), connection)


TAPE_LIMITS = Limits(message_bytes=256 * 1024 * 1024, nesting=512)
"""What one message of a tape may ask: more than any proxy lets pass."""


class TapeEntry(msgspec.Struct, frozen=True):
    """One message of a tape, as its client sent or received it."""

    seq: int
    envelope: MessageEnvelope[ProtocolMessage]
    at_server: ProtocolMessage | None = None
    """As the server got or sent it, where an interceptor made it another."""
    verdict: str | None = None
    by: str = ""
    error: dict[str, Any] | None = None
    redacted: tuple[RedactedPlace, ...] = ()

    @property
    def message(self) -> ProtocolMessage:
        """What was said."""
        return self.envelope.message

    @property
    def context(self) -> MessageContext:
        return self.envelope.context


class Tape(msgspec.Struct, dict=True):
    """A recorded conversation."""

    header: Header
    entries: list[TapeEntry]
    correlations: list[CorrelationLine]
    end: EndLine | None = None
    """Missing while the tape is written, and where its writer was killed."""
    cut: bool = False
    """Whether the last line is incomplete, and was left out."""
    path: Path | None = None


def entry_of(line: MessageLine) -> TapeEntry:
    """The message of a line. Raises `MessageError` if it holds none."""
    message = _message(line.message, line.text)
    context = MessageContext(
        line.timing,
        line.direction,
        session_from(line.session),
        transport_from(line.transport),
        line.extensions,
    )
    at_server = None
    if line.at_server is not msgspec.UNSET:
        at_server = _message(line.at_server, line.at_server_text)
    envelope = MessageEnvelope(message, context)
    return TapeEntry(
        line.seq, envelope, at_server, line.verdict, line.by, line.error, line.redacted
    )


def _message(raw: msgspec.Raw, text: str | None) -> ProtocolMessage:
    message = decode_message(bytes(raw), TAPE_LIMITS)
    if text is None:
        return message
    came = decode_message(text.encode(), TAPE_LIMITS)
    if came != message:
        raise e.MessageError("The message and its text say different things.")
    return came
