"""What is known of the connection that an HTTP answer came over."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import aiohttp

from folkmoot.core.transport import ConnectionInfo, SocketAddress, TlsInfo

if TYPE_CHECKING:
    import asyncio
    import ssl

_known: Final[WeakKeyDictionary[Any, ConnectionInfo]] = WeakKeyDictionary()
"""One description for every connection, shared by all that comes over it."""


class Answer(aiohttp.ClientResponse):
    """An answer to a request."""

    came_over: ConnectionInfo | None = None


class DescribedAnswer(Answer):
    """An answer that remembers its connection, which goes on to others once it was read."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Read the head of the answer."""
        self.came_over = _described(connection.protocol, connection.transport)
        return await super().start(connection)


def _described(protocol: Any, transport: asyncio.BaseTransport | None) -> ConnectionInfo | None:
    if protocol is None or transport is None:
        return None
    info = _known.get(protocol)
    if info is None:
        info = _known[protocol] = ConnectionInfo(
            uuid.uuid4().hex,
            _address(transport.get_extra_info("peername")),
            _address(transport.get_extra_info("sockname")),
            _tls(transport.get_extra_info("ssl_object")),
        )
    return info


def _address(name: Any) -> SocketAddress | None:
    return SocketAddress(str(name[0]), int(name[1])) if isinstance(name, tuple) else None


def _tls(tls: ssl.SSLObject | None) -> TlsInfo | None:
    if tls is None:
        return None
    cipher, certificate = tls.cipher(), tls.getpeercert() or {}
    subject: Any = certificate.get("subject", ())
    names = ", ".join(f"{name}={value}" for parts in subject for name, value in parts)
    return TlsInfo(
        version=tls.version() or "TLS",
        cipher=cipher[0] if cipher else None,
        server_name=tls.server_hostname,
        alpn=tls.selected_alpn_protocol(),
        peer_subject=names or None,
    )
