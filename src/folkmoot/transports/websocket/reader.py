"""Makes whole messages of what a client sends, and holds it to the rules of the protocol."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from picows import WSListener, WSMsgType

from folkmoot.core.closecodes import CloseCode
from folkmoot.mcp.framing import MAX_PIECES
from folkmoot.transports.limits import (
    LARGE_FRAGMENT_BYTES,
    MAX_FED_BYTES,
    MAX_KEPT_BUFFER_BYTES,
)
from folkmoot.transports.websocket.frames import TEXT, read_close
from folkmoot.transports.websocket.picowsport import FrameParser

if TYPE_CHECKING:
    from picows import WSFrame, WSTransport

    from folkmoot.transports.websocket.limits import ConnectionRate
    from folkmoot.transports.websocket.link import WebSocketConnection


class Unfinished:
    """Large messages that have come in part, over all links of an endpoint, the oldest first.

    Who sends a message finishes it; who does not, holds memory. So when they take more than they
    may together, of the owner who holds most the one that was begun first is given up.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held: dict[FrameReader, int] = {}
        self._of_owner: Counter[str] = Counter()
        self.total = 0

    def note(self, reader: FrameReader, size: int) -> None:
        """A reader holds so many bytes of a message now; 0 for none."""
        change = size - self._held.get(reader, 0)
        self.total += change
        self._of_owner[reader.owner] += change
        if size:
            self._held[reader] = size
        else:
            self._held.pop(reader, None)
            if not self._of_owner[reader.owner]:
                del self._of_owner[reader.owner]
        while self.total > self._most:
            most = max(self._of_owner, key=self._of_owner.__getitem__)
            next(each for each in self._held if each.owner == most).give_up()


class FrameReader(WSListener):
    """Reads the frames of one client."""

    __slots__ = (
        "_allowed",
        "_chunk",
        "_frames",
        "_limit",
        "_message",
        "_noted",
        "_parser",
        "_pending",
        "_rate",
        "_receiver",
        "_since",
        "_unfinished",
        "_whole",
        "owner",
    )

    def __init__(
        self,
        receiver: WebSocketConnection,
        max_message_bytes: int,
        unfinished: Unfinished | None = None,
        owner: str = "",
        rate: ConnectionRate | None = None,
    ) -> None:
        self.owner = owner
        """The account or the address whose messages these are."""
        self._rate = rate
        self._allowed, self._since = (sys.maxsize, 0.0) if rate is None else rate.begin()
        self._frames = 0
        """Frames of what is fed now."""
        self._receiver = receiver
        self._limit = max_message_bytes
        self._unfinished = unfinished
        self._noted = False
        self._message: bytearray | None = None
        self._whole: list[bytes] = []
        self._chunk = b""
        self._pending = 0
        self._parser: FrameParser | None = FrameParser(self, self._on_broken, max_message_bytes)

    @property
    def buffered(self) -> int:
        """How many bytes the read buffer has room for."""
        return 0 if self._parser is None else self._parser.room(self._pending)[1]

    def feed(self, data: bytes, start: int = 0) -> int:
        """Take what was received from `start` on; answer where to go on, in a later turn.

        Many frames are not read at once. After a stream is broken the rest of it is dropped.
        """
        self._frames, end = 0, len(data)
        while start < end and (parser := self._parser) is not None:
            room, size = parser.room(self._pending)
            count = min(room, end - start, MAX_FED_BYTES)
            self._chunk = chunk = data[start : start + count] if count < len(data) else data
            self._pending += count
            parser.feed(chunk)
            start += count
            if not self._pending and size > MAX_KEPT_BUFFER_BYTES and self._parser is not None:
                self._parser = FrameParser(self, self._on_broken, self._limit)
            if self._frames > MAX_PIECES:
                break
        self._chunk = b""
        if self._whole:
            self._hand_over()
        if self._pending > MAX_KEPT_BUFFER_BYTES or self._message is not None or self._noted:
            self._note_unfinished()
        return end if self._parser is None else start

    def end_within(self, frames: int) -> None:
        """Expect a close within so many frames; more than these are a violation."""
        self._rate, self._allowed = None, frames

    def give_up(self) -> None:
        """Close, since what has come of a message takes memory that others need."""
        self.stop()
        self._receiver.on_violation(CloseCode.TOO_SLOW, readable=False)

    def stop(self) -> None:
        """Understand nothing more."""
        self._parser = None
        self._message = None
        self._pending = 0
        if self._noted:
            self._note_unfinished()

    def _note_unfinished(self) -> None:
        """Tell how much of an unfinished message is here, if it is much."""
        size = self._pending + (0 if self._message is None else len(self._message))
        self._noted = size > MAX_KEPT_BUFFER_BYTES
        if self._unfinished is not None:
            self._unfinished.note(self, size if self._noted else 0)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002
        if self._parser is None:
            return
        self._frames += 1
        self._allowed -= 1
        if self._allowed < 0 and frame.msg_type != WSMsgType.CLOSE and not self._is_allowed():
            self._violated(CloseCode.OVER_RATE)
            return
        size = frame.payload_size
        self._pending = frame.tail_size
        # The first byte of a frame tells its type and flags at a fifth of the cost of asking
        # picows for each; it is at hand unless the frame began in an earlier chunk.
        header = 6 if size < 126 else 8 if size < 65_536 else 14
        first = len(self._chunk) - self._pending - size - header
        if first >= 0 and self._chunk[first] == TEXT and self._message is None:
            self._receive(frame.get_payload_as_bytes())
        else:
            self._receive_frame(frame)

    def _is_allowed(self) -> bool:
        if self._rate is not None:
            self._allowed, self._since = self._rate.more(self._since)
            self._allowed -= 1
        return self._allowed >= 0

    def _hand_over(self) -> None:
        """Pass on the messages that are whole, before anything that came after them."""
        whole, self._whole = self._whole, []
        if whole:
            self._receiver.on_text(*whole)

    def _receive_frame(self, frame: WSFrame) -> None:
        if frame.rsv1 or frame.rsv2 or frame.rsv3:
            self._violated(CloseCode.PROTOCOL_ERROR)
            return
        kind, payload = frame.msg_type, frame.get_payload_as_bytes()
        if kind == WSMsgType.PING:
            self._hand_over()
            self._receiver.on_ping(payload)
        elif kind == WSMsgType.CLOSE:
            self._receive_close(payload)
        elif kind == WSMsgType.BINARY:
            self._violated(CloseCode.NOT_TEXT)
        elif kind != WSMsgType.PONG:
            self._receive_part(payload, begins=kind == WSMsgType.TEXT, ends=frame.fin)

    def _receive_part(self, payload: bytes, *, begins: bool, ends: bool) -> None:
        if begins != (self._message is None):
            self._violated(CloseCode.PROTOCOL_ERROR)
            return
        if self._message is None:
            self._message = bytearray()
        self._message += payload
        if len(payload) >= LARGE_FRAGMENT_BYTES and not ends:
            # Some clients cut every large message.
            self._allowed += 1
        if len(self._message) > self._limit:
            self._violated(CloseCode.TOO_BIG)
        elif ends:
            message, self._message = bytes(self._message), None
            self._receive(message)

    def _receive(self, message: bytes) -> None:
        if not message.isascii():
            try:
                message.decode()
            except UnicodeDecodeError:
                self._violated(CloseCode.NOT_UTF8)
                return
        self._whole.append(message)

    def _receive_close(self, payload: bytes) -> None:
        close = read_close(payload)
        if close is None:
            self._violated(CloseCode.PROTOCOL_ERROR)
        else:
            self._hand_over()
            self._receiver.on_close(*close)

    def _violated(self, code: CloseCode) -> None:
        self._message = None
        self._hand_over()
        self._receiver.on_violation(code, readable=True)

    def _on_broken(self, close: bytes) -> None:
        if self._parser is None:
            return
        self._hand_over()
        self.stop()
        told = read_close(close[2:])
        code = told[0] if told else CloseCode.PROTOCOL_ERROR
        known = CloseCode.TOO_BIG if code == CloseCode.TOO_BIG else CloseCode.PROTOCOL_ERROR
        self._receiver.on_violation(known, readable=False)
