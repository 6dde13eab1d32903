"""The lines of a tape, as docs/reference/tape-format.md defines them.

A tape is JSON Lines. Members and types of lines that a reader does not know are passed over, so a
format grows without a new number; the number changes when an old reader would be misled.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.session import SessionState
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import FrameType, SocketAddress, TlsInfo
from folkmoot.proxy.redaction.placeholders import RedactedPlace

FORMAT: Final = 1
"""The number of the format that is written, and the newest that can be read."""

Outcome: TypeAlias = Literal["result", "error", "tool_error"]


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """Part of a line."""


class _Transport(_Part, frozen=True, tag_field="type"):
    """What every transport may say of a message."""


class ConnectionPart(_Part, frozen=True, gc=False):
    """The connection a message came over."""

    id: str
    remote: SocketAddress | None = None
    local: SocketAddress | None = None
    tls: TlsInfo | None = None


class SessionPart(_Part, frozen=True, gc=False):
    """The session a message belongs to."""

    id: str | None = None
    version: str = "2025-11-25"
    state: SessionState = SessionState.UNINITIALIZED
    correlation: str | None = None


class UnknownPart(_Transport, frozen=True, tag="unknown"):
    """Nothing is known of the transport but, perhaps, its connection."""

    connection: ConnectionPart | None = None


class StdioPart(_Transport, frozen=True, tag="stdio"):
    """Standard input and output of a process."""

    process_id: int
    connection: ConnectionPart | None = None


class HttpPart(_Transport, frozen=True, tag="http"):
    """One HTTP exchange."""

    method: str
    uri: str
    headers: tuple[tuple[str, str], ...] = ()
    status: int | None = None
    connection: ConnectionPart | None = None


class SsePart(_Transport, frozen=True, tag="sse"):
    """One event of a stream."""

    stream_id: str
    event_id: str | None = None
    event_type: str | None = None
    retry_after: float | None = None
    last_event_id: str | None = None
    connection: ConnectionPart | None = None


class WebSocketPart(_Transport, frozen=True, tag="websocket"):
    """One WebSocket frame."""

    frame_type: FrameType = FrameType.TEXT
    is_final: bool = True
    compression: bool = False
    connection: ConnectionPart | None = None


TransportPart: TypeAlias = UnknownPart | StdioPart | HttpPart | SsePart | WebSocketPart


class TapeSide(_Part, frozen=True, gc=False):
    """One side of the conversation: its transport, and its command or address."""

    transport: str
    target: str = ""
    """A command or an address, without what would open it."""


class RedactionNote(_Part, frozen=True):
    """How secrets were kept out: under which key, by its id, and what was looked for besides."""

    key: str
    mail: bool = True
    paths: tuple[str, ...] = ()


class _Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """One line."""


class Header(_Line, frozen=True, tag="header"):
    """The first line: which tape this is."""

    format: int
    tape: str
    started: str
    program: str
    client: TapeSide
    server: TapeSide
    redaction: RedactionNote | None = None
    note: str = ""


class MessageLine(_Line, frozen=True, tag="message"):
    """One message with its context, as its client sent or received it."""

    seq: int
    timing: TimingContext
    message: msgspec.Raw
    direction: MessageDirection = MessageDirection.UNKNOWN
    session: SessionPart = SessionPart()
    transport: TransportPart = UnknownPart()
    extensions: dict[str, Any] = {}
    text: str | None = None
    """The message as it came, where that does not fit on a line."""
    at_server: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """As the server got or sent it, where an interceptor made it another."""
    at_server_text: str | None = None
    verdict: str | None = None
    by: str = ""
    error: dict[str, Any] | None = None
    redacted: tuple[RedactedPlace, ...] = ()


class CorrelationLine(_Line, frozen=True, gc=False, tag="correlation"):
    """Which request an answer was to; it stands behind the line of the answer."""

    request: int
    response: int
    method: str
    seconds: float
    outcome: Outcome
    name: str = ""


class EndLine(_Line, frozen=True, gc=False, tag="end"):
    """The last line: the recording was ended and not torn off."""

    reason: str
    messages: int
    ended: str


Line: TypeAlias = Header | MessageLine | CorrelationLine | EndLine


class _Other(msgspec.Struct):
    type: str


MOST_MESSAGE_BYTES: Final = 96 * 1024 * 1024
"""No message is larger; what a tape says of itself may take a hundred times as much to decode."""
KNOWN: Final = frozenset({"header", "message", "correlation", "end"})
_decode = msgspec.json.Decoder(Line).decode
_decode_other = msgspec.json.Decoder(_Other).decode
_encode = msgspec.json.Encoder().encode


def decode_line(raw: bytes) -> Line | None:
    """Decode a line; None for a type this version does not know.

    Raises `msgspec.DecodeError`, or `UnicodeDecodeError`, for what is no line.
    """
    try:
        line: Line = _decode(raw)
    except msgspec.ValidationError:
        if _decode_other(raw).type in KNOWN:
            raise
        return None
    if len(raw) > MOST_MESSAGE_BYTES and isinstance(line, MessageLine):
        for message in (line.message, line.at_server):
            if isinstance(message, msgspec.Raw) and len(bytes(message)) > MOST_MESSAGE_BYTES:
                raise msgspec.ValidationError("a message is too large")
    return line


def encode_line(line: Line) -> bytes:
    """A line with its end."""
    return _encode(line) + b"\n"
