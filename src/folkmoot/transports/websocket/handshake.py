"""The request that opens a WebSocket: whether it is one, and the answer it gets."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from hashlib import sha1
from typing import TYPE_CHECKING

from folkmoot.core.errors import HandshakeInvalid, UpgradeRequired

if TYPE_CHECKING:
    from starlette.types import Scope

VERSION = b"13"
KEY_BYTES = 16
OFFER = {"upgrade": "websocket", "sec-websocket-version": VERSION.decode()}
"""What a request that is no handshake of ours is told to ask for."""

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def read_key(scope: Scope) -> bytes:
    """The key of a handshake; raises when the request is not one we can answer."""
    named: dict[bytes, bytes] = {name: value for name, value in scope["headers"] if name in _ONCE}
    if sum(name in _ONCE for name, _ in scope["headers"]) > len(named):
        raise HandshakeInvalid("A header of the WebSocket handshake is there twice.")
    if scope["method"] != "GET" or scope["http_version"] != "1.1":
        raise HandshakeInvalid("A WebSocket is opened with GET and HTTP/1.1.")
    if named.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in named:
        raise HandshakeInvalid("A request that opens a WebSocket has no body.")
    if named.get(b"sec-websocket-version") != VERSION:
        raise UpgradeRequired("This address speaks version 13 of the WebSocket protocol.")
    key = named.get(b"sec-websocket-key", b"")
    try:
        valid = len(b64decode(key, validate=True)) == KEY_BYTES
    except binascii.Error:
        valid = False
    if not valid:
        raise HandshakeInvalid("Sec-WebSocket-Key must be 16 bytes in base64.")
    return key


_ONCE = frozenset(
    {b"sec-websocket-key", b"sec-websocket-version", b"content-length", b"transfer-encoding"}
)


def answer_to(key: bytes, request_id: str) -> bytes:
    """The answer that opens the WebSocket."""
    accept = b64encode(sha1(key + _GUID, usedforsecurity=False).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\nX-Request-Id: %b\r\n\r\n"
    ) % (accept, request_id.encode())
