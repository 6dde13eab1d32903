"""Frames as the hub sends them: encoded once, then the same bytes for everyone."""

from __future__ import annotations

from struct import Struct
from typing import TypeAlias

Frame: TypeAlias = bytes
"""A whole frame, header and payload."""

TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
"""First bytes: the opcode, and the bit that says that the message ends with this frame."""
MOST_CONTROL = 125
"""The longest payload of a close, ping or pong."""

_SHORT, _LONG, _LONGEST = Struct("!BB"), Struct("!BBH"), Struct("!BBQ")
_CODE = Struct("!H")


def text_frame(payload: bytes) -> Frame:
    """The frame of a text message; that the payload is UTF-8 is the caller's word."""
    size = len(payload)
    head = _HEADS[size] if size < _USUAL_SIZES else _text_head(size)
    return head + payload


def _text_head(size: int) -> bytes:
    if size <= MOST_CONTROL:
        return _SHORT.pack(TEXT, size)
    if size < 1 << 16:
        return _LONG.pack(TEXT, 126, size)
    return _LONGEST.pack(TEXT, 127, size)


_USUAL_SIZES = 2048
_HEADS = tuple(map(_text_head, range(_USUAL_SIZES)))


def ping_frame(payload: bytes = b"") -> Frame:
    """A ping."""
    return _SHORT.pack(PING, len(payload)) + payload


def pong_frame(payload: bytes) -> Frame:
    """The answer to a ping, with the same payload."""
    return _SHORT.pack(PONG, len(payload)) + payload


def close_frame(code: int, reason: str = "") -> Frame:
    """The last frame; a reason that is too long loses its end, at a whole character."""
    if code == NO_CODE:
        return _SHORT.pack(CLOSE, 0)
    told = reason.encode()[: MOST_CONTROL - 2].decode(errors="ignore").encode()
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
