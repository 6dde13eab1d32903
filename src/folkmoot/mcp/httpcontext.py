"""What HTTP says of a request, as the transport context of the messages in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.core.transport import (
    ConnectionInfo,
    Headers,
    HttpMetadata,
    SocketAddress,
    TlsInfo,
)

if TYPE_CHECKING:
    from starlette.types import Scope


def request_of(scope: Scope, headers: Headers) -> HttpMetadata:
    """What a request says of itself, with its headers as far as they are kept."""
    query = scope["query_string"].decode("latin-1")
    uri = f"{scope['path']}?{query}" if query else scope["path"]
    return HttpMetadata(headers, scope["method"], uri)


def connection_of(scope: Scope) -> ConnectionInfo:
    """Both ends of the connection; the one of the client tells connections apart."""
    remote, local = _address(scope.get("client")), _address(scope.get("server"))
    tls = TlsInfo("TLS") if scope.get("scheme") == "https" else None
    return ConnectionInfo(str(remote or "unknown"), remote, local, tls)


def _address(pair: tuple[str, int] | None) -> SocketAddress | None:
    return None if pair is None else SocketAddress(pair[0], pair[1] or 0)
