"""The wire form of WebSockets: the handshake, and frames encoded once for everyone."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from hashlib import sha1
from struct import Struct
from typing import TYPE_CHECKING, TypeAlias

from folkmoot.core import errors as e
from folkmoot.transports.limits import MAX_CONTROL_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope


Frame: TypeAlias = bytes
"""A whole frame, header and payload."""

TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
"""First bytes: the opcode, and the bit that says that the message ends with this frame."""

_SHORT, _LONG, _LONGEST = Struct("!BB"), Struct("!BBH"), Struct("!BBQ")
_CODE = Struct("!H")


def text_frame(payload: bytes) -> Frame:
    """The frame of a text message; that the payload is UTF-8 is the caller's word."""
    size = len(payload)
    head = _HEADS[size] if size < _USUAL_SIZES else _text_head(size)
    return head + payload


def text_frames(payloads: Iterable[bytes]) -> list[Frame]:
    """The frames of text messages, each as `text_frame` makes it."""
    return [
        (_HEADS[size] if (size := len(payload)) < _USUAL_SIZES else _text_head(size)) + payload
        for payload in payloads
    ]


def _text_head(size: int) -> bytes:
    if size <= MAX_CONTROL_BYTES:
        return _SHORT.pack(TEXT, size)
    if size < 1 << 16:
        return _LONG.pack(TEXT, 126, size)
    return _LONGEST.pack(TEXT, 127, size)


_USUAL_SIZES = 2048
_HEADS = tuple(map(_text_head, range(_USUAL_SIZES)))


def ping_frame() -> Frame:
    return _SHORT.pack(PING, 0)


def pong_frame(payload: bytes) -> Frame:
    """The answer to a ping, with the same payload."""
    return _SHORT.pack(PONG, len(payload)) + payload


def close_frame(code: int, reason: str = "") -> Frame:
    """The last frame; a reason that is too long loses its end, at a whole character."""
    if code == NO_CODE:
        return _SHORT.pack(CLOSE, 0)
    told = reason.encode()[: MAX_CONTROL_BYTES - 2].decode(errors="ignore").encode()
    return _SHORT.pack(CLOSE, 2 + len(told)) + _CODE.pack(code) + told


NO_CODE = 1005
"""Stands for a close without a code; never itself on the wire."""
LOST = 1006
"""Stands for a connection that ended without a close; never itself on the wire."""


def read_close(payload: bytes) -> tuple[int, str] | None:
    """The code and reason of a close a client sent, or None when they may not be sent."""
    if not payload:
        return NO_CODE, ""
    if len(payload) == 1:
        return None
    (code,) = _CODE.unpack_from(payload)
    if not (code in _STANDARD or 3000 <= code < 5000):
        return None
    try:
        return code, payload[2:].decode()
    except UnicodeDecodeError:
        return None


_STANDARD = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015)})


VERSION = b"13"
KEY_BYTES = 16
OFFER = {"upgrade": "websocket", "sec-websocket-version": VERSION.decode()}
"""What a request that is no handshake of ours is told to ask for."""

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def read_key(scope: Scope) -> bytes:
    """The key of a handshake; raises when the request is not one we can answer."""
    named: dict[bytes, bytes] = {name: value for name, value in scope["headers"] if name in _ONCE}
    if sum(name in _ONCE for name, _ in scope["headers"]) > len(named):
        raise e.HandshakeInvalid("A header of the WebSocket handshake is there twice.")
    if scope["method"] != "GET" or scope["http_version"] != "1.1":
        raise e.HandshakeInvalid("A WebSocket is opened with GET and HTTP/1.1.")
    if named.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in named:
        raise e.HandshakeInvalid("A request that opens a WebSocket has no body.")
    if named.get(b"sec-websocket-version") != VERSION:
        raise e.UpgradeRequired("This address speaks version 13 of the WebSocket protocol.")
    key = named.get(b"sec-websocket-key", b"")
    try:
        valid = len(b64decode(key, validate=True)) == KEY_BYTES
    except binascii.Error:
        valid = False
    if not valid:
        raise e.HandshakeInvalid("Sec-WebSocket-Key must be 16 bytes in base64.")
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
