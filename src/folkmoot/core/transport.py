"""TransportContext: the transport that carried a message, and its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from folkmoot.core import defaults

_SECRET = re.compile("auth|cookie|token|key|secret|session")
"""What the name of a header says when its value opens a door."""


class TransportType(Enum):
    """The transports Folkmoot knows."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"
    WEBSOCKET = "websocket"
    UNKNOWN = "unknown"


class Headers(msgspec.Struct, frozen=True, gc=False):
    """HTTP headers in their order, names in lower case. Shared between messages, never copied."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Headers:
        """Headers from any pairs of name and value."""
        return cls(tuple((name.lower(), value) for name, value in pairs))

    def get(self, name: str) -> str | None:
        """The first value of a header, whatever the case of its name."""
        wanted = name.lower()
        for known, value in self.pairs:
            if known == wanted:
                return value
        return None

    def get_all(self, name: str) -> list[str]:
        """Every value of a header, in order."""
        wanted = name.lower()
        return [value for known, value in self.pairs if known == wanted]

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        """Without the values that open doors."""
        shown = ", ".join(
            f"{name}: {'…' if _SECRET.search(name) else value}" for name, value in self.pairs
        )
        return f"Headers({shown})"


class StdioMetadata(msgspec.Struct, frozen=True, gc=False, tag="stdio"):
    """Standard input and output of a process."""

    process_id: int


class HttpMetadata(msgspec.Struct, frozen=True, gc=False, tag="http"):
    """One HTTP exchange; `status` is set on what came as a response."""

    headers: Headers
    method: str
    uri: str
    status: int | None = None

    def __repr__(self) -> str:
        """Without the query, which may hold a token."""
        path, mark, _ = self.uri.partition("?")
        uri = path + ("?…" if mark else "")
        return f"HttpMetadata({self.method} {uri}, status={self.status}, {self.headers!r})"


class SseMetadata(msgspec.Struct, frozen=True, gc=False, tag="sse"):
    """One event of a Server-Sent Events stream, with what is needed to resume after it."""

    stream_id: str
    event_id: str | None = None
    event_type: str | None = None
    retry_after: float | None = None
    """The server's hint, in seconds, of how long to wait before reconnecting."""
    last_event_id: str | None = None


class FrameType(Enum):
    """The types of WebSocket frame."""

    TEXT = "text"
    BINARY = "binary"
    CLOSE = "close"
    PING = "ping"
    PONG = "pong"


class WebSocketMetadata(msgspec.Struct, frozen=True, gc=False, tag="websocket"):
    """One WebSocket frame."""

    frame_type: FrameType = FrameType.TEXT
    is_final: bool = True
    compression: bool = False


TransportMetadata: TypeAlias = StdioMetadata | HttpMetadata | SseMetadata | WebSocketMetadata

_TYPES: Final[dict[type, TransportType]] = {
    StdioMetadata: TransportType.STDIO,
    HttpMetadata: TransportType.HTTP,
    SseMetadata: TransportType.SSE,
    WebSocketMetadata: TransportType.WEBSOCKET,
    type(None): TransportType.UNKNOWN,
}


class SocketAddress(msgspec.Struct, frozen=True, gc=False):
    """One end of a connection."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TlsInfo(msgspec.Struct, frozen=True, gc=False):
    """What was agreed for an encrypted connection."""

    version: str
    cipher: str | None = None
    server_name: str | None = None
    alpn: str | None = None
    peer_subject: str | None = None
    """The subject of the peer's certificate, when it showed one."""


class ConnectionInfo(msgspec.Struct, frozen=True, gc=False):
    """The connection a message travelled on."""

    connection_id: str
    remote_addr: SocketAddress | None = None
    local_addr: SocketAddress | None = None
    tls_info: TlsInfo | None = None


class TransportContext(msgspec.Struct, frozen=True, gc=False):
    """Transport, its metadata and the connection; one object serves every message it is true of."""

    metadata: TransportMetadata | None = None
    connection: ConnectionInfo | None = None

    @classmethod
    def unknown(cls) -> TransportContext:
        """Nothing is known: for messages from before the envelope."""
        return UNKNOWN

    @classmethod
    def stdio(cls, process_id: int | None = None) -> TransportContext:
        """Standard input and output of a process: of this one, if none is given."""
        return cls(StdioMetadata(defaults.process_id() if process_id is None else process_id))

    @classmethod
    def http(cls, headers: Headers, method: str, uri: str) -> TransportContext:
        """One HTTP exchange."""
        return cls(HttpMetadata(headers, method, uri))

    @classmethod
    def sse(cls, stream_id: str, event_id: str | None = None) -> TransportContext:
        """One event of a stream; the rest is set on its metadata."""
        return cls(SseMetadata(stream_id, event_id))

    @classmethod
    def websocket(cls) -> TransportContext:
        """One whole text frame."""
        return cls(WebSocketMetadata())

    @property
    def transport_type(self) -> TransportType:
        """Which transport the metadata is of."""
        return _TYPES[type(self.metadata)]

    def with_metadata(self, metadata: TransportMetadata) -> TransportContext:
        """The same connection, with other metadata."""
        return TransportContext(metadata, self.connection)

    def with_connection(self, connection: ConnectionInfo) -> TransportContext:
        """The same metadata, on a connection."""
        return TransportContext(self.metadata, connection)


UNKNOWN: Final = TransportContext()
