"""One WebSocket: messages in, frames out, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
from enum import Enum, auto
from time import monotonic
from typing import TYPE_CHECKING, Final

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.transports.limits import MAX_FRAMES_AFTER_CLOSE, WEBSOCKET_LINGER_SECONDS
from folkmoot.transports.websocket.delivery import SendQueue
from folkmoot.transports.websocket.frames import (
    LOST,
    close_frame,
    ping_frame,
    pong_frame,
)
from folkmoot.transports.websocket.reader import FrameReader, Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.transports.connections import Turns
    from folkmoot.transports.websocket.delivery import Audience
    from folkmoot.transports.websocket.endpoint import Entrance, Handler
    from folkmoot.transports.websocket.frames import Frame
    from folkmoot.transports.websocket.limits import LinkLimits

logger = logging.getLogger("folkmoot.websocket")


class ConnectionState(Enum):
    OPEN = auto()
    CLOSING = auto()
    """Our close is sent; theirs is awaited."""
    ENDING = auto()
    """All is said; what is left is to be written and the connection to end."""
    LOST = auto()


UNREAD: Final = CLOSE_REASONS[CloseCode.TOO_SLOW]
UNFINISHED: Final = "A message came in part, and its memory is needed; resume."

OPEN: Final = ConnectionState.OPEN
"""Asked for with every message, and to look up a member of an enum is slow."""


class WebSocketConnection(asyncio.Protocol):
    """One connection, from the answered handshake to its end."""

    __slots__ = (
        "__weakref__",
        "_deadline",
        "_drained",
        "_fed",
        "_frames",
        "_handler",
        "_leave",
        "_limits",
        "_linger",
        "_loop",
        "_outbox",
        "_owner",
        "_reader",
        "_reading",
        "_state",
        "_turns",
        "_unread",
        "_waiting",
        "_waits_for_turn",
        "audience",
        "code",
        "quiet",
        "transport",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        limits: LinkLimits,
        *,
        leave: Callable[[WebSocketConnection], None],
        turns: Turns,
        unfinished: Unfinished | None = None,
        owner: str = "",
        paused: bool = False,
    ) -> None:
        self.transport = transport
        self.quiet = False
        """Whether nothing has come since the last ping."""
        self.code = LOST
        self.audience: Audience | None = None
        """The links with which it hears the same; for the audience itself to set."""
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._leave = leave
        self._handler: Handler | None = None
        self._state = OPEN
        self._reading = True
        self._reader = FrameReader(self, limits.max_message_bytes, unfinished, owner, limits.rate)
        self._owner = owner
        self._turns = turns
        self._unread = b""
        """What was received and not read for longer than one turn, from `_fed` on."""
        self._fed = 0
        self._waits_for_turn = False
        self._outbox = SendQueue(transport, limits, paused=paused)
        self._waiting: list[bytes] = []
        self._frames = 0
        self._drained: asyncio.Future[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._linger: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether messages still come and go."""
        return self._state is OPEN

    @property
    def waiting_since(self) -> float | None:
        """A link that is being closed waits for its client alone; since when is no matter."""
        return None if self._state is OPEN else 0.0

    @property
    def unsent(self) -> int:
        """How many bytes wait for the client to read."""
        return self._outbox.unsent

    @property
    def reading(self) -> bool:
        """Whether what the client sends is wanted now."""
        return self._reading

    def attach(self, entrance: Entrance) -> None:
        """From now on messages belong to the handler that is behind this entrance."""
        try:
            self._handler = entrance(self)
        except Exception as error:  # noqa: BLE001 - as for a message that fails
            self._fail(error)
        if self._state is not OPEN:
            self._report_end(self.code, "")

    def send(self, frame: Frame) -> None:
        """Send a frame after everything that was sent before, together with its whole tick."""
        if self._state is not OPEN:
            return
        if self.audience is not None:
            self.audience.hand_over(self)
        self.wait_with(frame, 1)

    def put(self, data: bytes, frames: int) -> None:
        """Send frames that are joined already; a tick's own frames come before them."""
        if self._state is not OPEN:
            return
        if self._waiting:
            self.wait_with(data, frames)
        elif not self._outbox.put(data, frames):
            self._too_slow()

    def wait_with(self, data: bytes, frames: int) -> None:
        """Keep frames until the end of this tick."""
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(data)
        self._frames += frames

    def flush(self) -> None:
        """Write the frames of this tick in one write."""
        waiting, frames = self._waiting, self._frames
        if waiting:
            self._waiting, self._frames = [], 0
            if not self._outbox.put(b"".join(waiting), frames):
                self._too_slow()

    async def drained(self) -> None:
        """Wait until the client has read most of what it was sent, or the link is not open."""
        self.flush()
        while self._state is OPEN and not self._outbox.clear:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    def pause_reading(self) -> None:
        """Read nothing more from the client for now; what was parsed already still comes."""
        if self._state is OPEN and self._reading:
            self._reading = self.quiet = False
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on taking what the client sends."""
        self._reading = True
        if self._unread:
            self._wait_for_turn()
        elif not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self, code: int, reason: str = "") -> None:
        """Send what was sent so far and then a close; the client has a limited time to answer."""
        if self._state is not OPEN:
            return
        if self.audience is not None:
            self.audience.remove(self)
        self.flush()
        # Flushing may have found the client too slow, which is then why it is closed.
        if self._state is OPEN:
            self._leave_open(ConnectionState.CLOSING, code, reason, self._limits.close_seconds)
            self._outbox.put_last(close_frame(code, reason))
            self._reader.end_within(MAX_FRAMES_AFTER_CLOSE)
            self.resume_reading()

    def shutdown(self) -> None:
        """The hub stops."""
        self.close(CloseCode.RESTARTING, CLOSE_REASONS[CloseCode.RESTARTING])
        if self._state is not ConnectionState.LOST:
            self._abort_after(self._limits.stop_seconds)

    def ping(self) -> None:
        """See whether the client is still there."""
        self.quiet = self._reading
        self.send(ping_frame())

    def vanish(self) -> None:
        """The client did not answer in time; it will hardly read why, so nothing waits for it."""
        self._outbox.drop()
        self._waiting.clear()
        self.close(CloseCode.PONG_TIMEOUT, CLOSE_REASONS[CloseCode.PONG_TIMEOUT])

    def data_received(self, data: bytes) -> None:
        self.quiet = False
        if self._unread:
            self._unread += data
        elif (fed := self._reader.feed(data)) < len(data):
            self._unread, self._fed = data, fed
            self.transport.pause_reading()
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Have others served before the rest of what came is read."""
        if not self._waits_for_turn:
            self._waits_for_turn = True
            self._turns.queue(self._owner, self._read_on)

    def _read_on(self) -> None:
        self._waits_for_turn = False
        if not self._reading or not self._unread:
            return
        began = monotonic()
        self._fed = self._reader.feed(self._unread, self._fed)
        self._turns.charge(self._owner, monotonic() - began)
        if self._fed < len(self._unread):
            self._wait_for_turn()
            return
        self._unread = b""
        if self._reading:
            self.resume_reading()

    def pause_writing(self) -> None:
        """The client reads more slowly than we send."""
        self._outbox.pause()

    def resume_writing(self) -> None:
        """The client has read most of it."""
        self._outbox.resume()
        if self._outbox.clear:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why is no matter
        if self._state is OPEN:
            if self.audience is not None:
                self.audience.remove(self)
            self._leave_open(ConnectionState.LOST, LOST, "", 0)
        self._state = ConnectionState.LOST
        for timer in (self._deadline, self._linger):
            if timer is not None:
                timer.cancel()
        self._deadline = self._linger = None
        self._waiting.clear()
        self._unread = b""
        self._outbox.drop()
        self._reader.stop()
        # The two hold each other, which would keep both for long.
        del self._reader
        self._leave(self)

    def on_text(self, *messages: bytes) -> None:
        if self._state is not OPEN or self._handler is None:
            return
        try:
            self._handler.on_text(*messages)
        except Exception as error:  # noqa: BLE001 - told to the client, and what is not ours logged
            self._fail(error)

    def on_ping(self, payload: bytes) -> None:
        """Answer."""
        self.send(pong_frame(payload))

    def on_close(self, code: int, reason: str) -> None:
        """The client closes, or answers our close."""
        if self._state is OPEN:
            if self.audience is not None:
                self.audience.remove(self)
            self._waiting.clear()
            self._outbox.drop()
            self._leave_open(ConnectionState.ENDING, code, reason, self._limits.close_seconds)
            self._outbox.put_last(close_frame(code, reason))
        self._end()

    def on_violation(self, code: CloseCode, *, readable: bool) -> None:
        """The client broke a rule."""
        if code == CloseCode.OVER_RATE and self._state is not OPEN:
            # It sends on after our close, and what it sends is not worth the reading.
            self._reader.stop()
            readable = False
        self.close(code, UNFINISHED if code == CloseCode.TOO_SLOW else CLOSE_REASONS[code])
        if not readable and self._state is not ConnectionState.LOST:
            self._linger_on()

    def _too_slow(self) -> None:
        """Close, with all that waited forgotten already."""
        self._waiting.clear()
        self.close(CloseCode.TOO_SLOW, UNREAD)

    def _leave_open(self, state: ConnectionState, code: int, reason: str, seconds: float) -> None:
        self._state, self.code = state, code
        self._report_end(code, reason)
        self._wake()
        if state is not ConnectionState.LOST:
            self._abort_after(seconds)

    def _report_end(self, code: int, reason: str) -> None:
        handler, self._handler = self._handler, None
        if handler is not None:
            # Later, so that a link which closes while others are served disturbs nobody's loop.
            self._loop.call_soon(handler.on_close, code, reason)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, e.FolkmootError):
            self.close(error.close, error.message)
        else:
            logger.error("a link failed", exc_info=error)
            self.close(CloseCode.INTERNAL, CLOSE_REASONS[CloseCode.INTERNAL])

    def _end(self) -> None:
        self._state = ConnectionState.ENDING
        self._reader.stop()
        self.transport.close()

    def _abort_after(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(seconds, self.transport.abort)

    def _linger_on(self) -> None:
        if self._linger is not None and self.quiet:
            self._end()
            return
        self.quiet = True
        self._linger = self._loop.call_later(WEBSOCKET_LINGER_SECONDS, self._linger_on)

    def _wake(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
