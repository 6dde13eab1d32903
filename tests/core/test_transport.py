"""TransportContext."""

from __future__ import annotations

import copy

import msgspec
import pytest

from folkmoot.core.transport import (
    ConnectionInfo,
    FrameType,
    Headers,
    HttpMetadata,
    SocketAddress,
    SseMetadata,
    StdioMetadata,
    TlsInfo,
    TransportContext,
    TransportMetadata,
    TransportType,
    WebSocketMetadata,
)

HEADERS = Headers.of(
    [("Accept", "a"), ("X-Many", "1"), ("x-many", "2"), ("Authorization", "Bearer sk_1")]
)
VARIANTS: list[tuple[TransportMetadata, TransportType]] = [
    (StdioMetadata(4711), TransportType.STDIO),
    (HttpMetadata(HEADERS, "POST", "/mcp?token=sk_1", 200), TransportType.HTTP),
    (SseMetadata("stream", "7", "message", 1.5, "6"), TransportType.SSE),
    (WebSocketMetadata(FrameType.BINARY, False, True), TransportType.WEBSOCKET),
]


@pytest.mark.requirement("transport.types")
@pytest.mark.parametrize(("metadata", "transport"), VARIANTS)
def test_the_metadata_tells_the_transport(metadata, transport):
    assert TransportContext(metadata).transport_type is transport
    assert {transport for _, transport in VARIANTS} | {TransportType.UNKNOWN} == set(TransportType)


@pytest.mark.requirement("transport.metadata-tagged")
@pytest.mark.parametrize(("metadata", "transport"), VARIANTS)
def test_metadata_survives_a_round_trip_by_its_tag(metadata, transport):
    raw = msgspec.json.encode(metadata)
    assert msgspec.json.decode(raw)["type"] == transport.value
    assert msgspec.json.decode(raw, type=TransportMetadata) == metadata


@pytest.mark.requirement("transport.unknown")
def test_the_unknown_context_has_nothing():
    context = TransportContext.unknown()
    assert context.transport_type is TransportType.UNKNOWN
    assert context.metadata is context.connection is None


@pytest.mark.requirement(
    "transport.stdio", "transport.http", "transport.sse", "transport.websocket"
)
def test_each_transport_has_its_constructor():
    assert TransportContext.stdio(1).metadata == StdioMetadata(1)
    http = TransportContext.http(HEADERS, "GET", "/").metadata
    assert http == HttpMetadata(HEADERS, "GET", "/", None)
    assert TransportContext.sse("s", "1").metadata == SseMetadata("s", "1", None, None, None)
    assert TransportContext.websocket().metadata == WebSocketMetadata(FrameType.TEXT, True, False)


@pytest.mark.requirement("transport.headers-shared")
def test_headers_are_shared_by_copies():
    context = TransportContext.http(HEADERS, "GET", "/")
    copied = copy.copy(context)
    assert isinstance(copied.metadata, HttpMetadata)
    assert copied.metadata.headers is HEADERS


def test_headers_are_found_whatever_their_case():
    assert HEADERS.get("ACCEPT") == "a"
    assert HEADERS.get("none") is None
    assert HEADERS.get_all("x-MANY") == ["1", "2"]
    assert "accept" in HEADERS
    assert "none" not in HEADERS
    assert len(HEADERS) == len(list(HEADERS)) == 4


def test_no_secret_shows_in_the_repr():
    shown = repr(TransportContext(HttpMetadata(HEADERS, "POST", "/mcp?token=sk_1")))
    assert "sk_1" not in shown
    assert "POST /mcp?…" in shown
    assert "?" not in repr(HttpMetadata(Headers(), "GET", "/health"))


@pytest.mark.requirement("transport.connection")
def test_a_connection_tells_its_ends_and_its_encryption():
    connection = ConnectionInfo(
        "c1",
        SocketAddress("127.0.0.1", 5000),
        SocketAddress("::1", 8420),
        TlsInfo("TLSv1.3", "AES", "hub.example", "h2", "CN=alice"),
    )
    context = TransportContext.websocket().with_connection(connection)
    assert context.connection is connection
    assert str(connection.remote_addr) == "127.0.0.1:5000"
    assert str(connection.local_addr) == "[::1]:8420"
    assert context.with_metadata(StdioMetadata(1)).connection is connection
    assert ConnectionInfo("c2").tls_info is None
