"""The contexts of an envelope as a tape spells them, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from folkmoot.core.session import ANONYMOUS, ProtocolVersion, SessionContext, SessionId
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
from folkmoot.proxy.tape.lines import (
    ConnectionPart,
    HttpPart,
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
    """A session as it is written."""
    identity = None if session.session_id is None else session.session_id.value
    return SessionPart(
        identity, session.protocol_version.value, session.state, session.correlation_id
    )


def session_from(part: SessionPart) -> SessionContext:
    """The session that was written."""
    if part == _NO_SESSION:
        return ANONYMOUS
    identity = None if part.id is None else SessionId(part.id)
    return SessionContext(identity, ProtocolVersion(part.version), part.correlation, part.state)


def transport_part(transport: TransportContext) -> TransportPart:
    """A transport as it is written."""
    known, connection = transport.connection, None
    if known is not None:
        connection = ConnectionPart(
            known.connection_id, known.remote_addr, known.local_addr, known.tls_info
        )
    return _PARTS[type(transport.metadata)](transport.metadata, connection)


def transport_from(part: TransportPart) -> TransportContext:
    """The transport that was written."""
    if part == _NO_TRANSPORT:
        return UNKNOWN
    known, connection = part.connection, None
    if known is not None:
        connection = ConnectionInfo(known.id, known.remote, known.local, known.tls)
    return TransportContext(_METADATA[type(part)](part), connection)
