"""A server on standard input and output: a child of ours that ends with the link."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from folkmoot.core import errors as e
from folkmoot.core.message import (
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    decode_message,
    encode_message,
)
from folkmoot.core.transport import UNKNOWN, ConnectionInfo, StdioMetadata, TransportContext
from folkmoot.mcp.carrier import PROXY_LIMITS
from folkmoot.mcp.client.child import Child, Ends
from folkmoot.mcp.client.link import JUNK_A_SECOND, OpenRequests, ServerLink
from folkmoot.mcp.framing import LineSplitter, one_line
from folkmoot.mcp.pipes import LogReader, PipeReader, PipeWriter
from folkmoot.mcp.wire import answered_id, cancelled_id

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits

ENDED: Final = "The server has ended."
GRACE_SECONDS: Final = 2.0
LITTLE_JUNK: Final = 32 * 1024
JUNK_LINE: Final = 64
"""A line that is no message costs as much as so many bytes, however short it is."""
REST_SECONDS: Final = 0.5
"""How long the last words of a server that has ended may be on their way."""
FATE_SECONDS: Final = 0.2
"""How long it may take until one that says nothing more is known to have ended, and how."""
SLOW_SECONDS: Final = 5.0
"""After how long of saying nothing at all a server is said to be waited for."""


class Starting(NamedTuple):
    """How a server is waited for that was just started, such as one that is still downloaded."""

    seconds: float
    """How long it may take from what it is asked first until it says anything."""
    slow: Callable[[], None]
    """Told when it is waited for."""
    answered: Callable[[float], None]
    """Told afterwards for how long it was."""


class StdioLink(ServerLink):
    """A command that speaks MCP on its standard input and output.

    `env` is its whole environment; without one it has ours. Its log goes to our standard error,
    or line by line to `stderr`. With `until` it is killed at a time, however this process does, on
    the clock that also runs while the machine sleeps; see `extend`. Without `starting` it is waited
    for without end and a word.
    """

    def __init__(
        self,
        command: Sequence[str],
        clock: Clock,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        limits: Limits = PROXY_LIMITS,
        grace: float = GRACE_SECONDS,
        stderr: Callable[[bytes], None] | None = None,
        until: float | None = None,
        starting: Starting | None = None,
    ) -> None:
        super().__init__(clock, limits)
        self._starting = starting
        """None also from when the server has said something."""
        self.start_seconds = 0.0 if starting is None else starting.seconds
        self._asked_at: float | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._told_slow = False
        self._too_slow = False
        self._command = tuple(command)
        self._env, self._cwd, self._grace, self._log = env, cwd, grace, stderr
        self._lines = LineSplitter(limits.message_bytes)
        self._open_requests = OpenRequests()
        self._ahead: MessageEnvelope[Any] | None = None
        self._context = UNKNOWN
        self._junk = 0
        self._until = until
        self._guard: int | None = None
        """Where a later time is written to."""
        self._child: Child | None = None
        self._reader: PipeReader | None = None
        self._writer: PipeWriter | None = None
        self.fate = ""
        """How the server ended, in a sentence, once that was noticed."""

    async def open(self) -> None:
        """Start the server; `ServerUnreachable` when it cannot be started."""
        try:
            await self._start()
        except BaseException:
            self._close_guard()
            raise

    async def _start(self) -> None:
        reader, writer = PipeReader(self._lines), PipeWriter()
        with Ends() as ends:
            stdin, to_server = ends.pipe(we_read=False)
            stdout, from_server = ends.pipe()
            stderr, log = ends.pipe() if self._log else (None, None)
            guard = None
            if self._until is not None:
                told, self._guard = ends.pipe(we_read=False, kept=True)
                os.set_blocking(self._guard, False)
                guard = (told, self._until)
            child = await Child.start(
                self._command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self._env,
                cwd=self._cwd,
                # Its own children may hold its standard output open for longer than it lives.
                on_exit=lambda: reader.end_after(REST_SECONDS),
                guard=guard,
            )
            try:
                await ends.write(to_server, writer)
                await ends.read(from_server, reader)
                if log is not None and self._log is not None:
                    await ends.read(log, LogReader(self._log))
            except BaseException:
                writer.abort()
                reader.close()
                await child.end(0)
                raise
        self._child, self._reader, self._writer = child, reader, writer
        self._context = TransportContext(
            StdioMetadata(child.process_id), ConnectionInfo(uuid.uuid4().hex)
        )

    def extend(self, until: float) -> None:
        """Let the server run for longer."""
        if self._guard is not None:
            with suppress(OSError):
                os.write(self._guard, struct.pack("d", until))

    def _wait_for_start(self) -> None:
        if self._starting is not None and self._asked_at is None:
            loop = asyncio.get_running_loop()
            self._asked_at = loop.time()
            self._timers = [
                loop.call_later(SLOW_SECONDS, self._tell_slow),
                loop.call_later(self._starting.seconds, self._give_up_start),
            ]

    def _tell_slow(self) -> None:
        if self._starting is not None:
            self._told_slow = True
            self._starting.slow()

    def _give_up_start(self) -> None:
        if self._starting is not None and self._child is not None:
            self._too_slow = True
            self.fate = f"The server said nothing in {self._starting.seconds:g} s and was ended."
            self._child.kill()

    def _has_started(self) -> None:
        starting, self._starting = self._starting, None
        self.start_seconds = 0.0
        if starting is None or self._asked_at is None:
            return
        waited = asyncio.get_running_loop().time() - self._asked_at
        self._cancel_timers()
        if self._told_slow:
            starting.answered(waited)

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()

    @property
    def process_id(self) -> int | None:
        """The id of the server's process."""
        return None if self._child is None else self._child.process_id

    @property
    def returncode(self) -> int | None:
        """How the server ended; None while it runs."""
        return None if self._child is None else self._child.returncode

    def current_context(self) -> TransportContext:
        """The server's process."""
        return self._context

    @property
    def waiting(self) -> bool:
        """Whether a message was received already."""
        if self._ahead is None:
            self._ahead = self._next()
        return self._ahead is not None

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next message; once the server is gone, an error for each request still open."""
        while True:
            if self._junk > LITTLE_JUNK:
                junk, self._junk = self._junk, 0
                await asyncio.sleep(min(1.0, junk / JUNK_A_SECOND))
            envelope, self._ahead = self._ahead or self._next(), None
            if envelope is not None:
                return envelope
            if self._junk > LITTLE_JUNK:
                continue
            if self._reader is None or self._reader.ended:
                if not self.fate:
                    self.fate = await self._learn_fate()
                return self._lost()
            await self._reader.more()

    async def _learn_fate(self) -> str:
        code = None if self._child is None else await self._child.code_within(FATE_SECONDS)
        if not code:
            return ENDED
        if code > 0:
            return f"The server has ended with exit code {code}."
        known = signal.Signals.__members__.values()
        name = next((each.name for each in known if each == -code), f"signal {-code}")
        return f"The server was ended by {name}."

    def _next(self) -> MessageEnvelope[Any] | None:
        """The next message already read, unless there is much before it that is none."""
        while self._junk <= LITTLE_JUNK:
            try:
                line = self._lines.take()
            except e.MessageTooLarge as error:
                self.invalid_messages.note(error)
                about = answered_id(self._lines.passed_over)
                if about is None:
                    about = self._open_requests.only
                answer = self._unreadable(about, error)
                if answer is not None:
                    return self.envelope_of(answer)
                continue
            if self._reader is not None:
                self._reader.go_on()
            if line is None:
                return None
            try:
                message = decode_message(line, self.limits)
            except e.MessageError as error:
                self.invalid_messages.note(error)
                self._junk += len(line) + JUNK_LINE
                answer = self._unreadable(answered_id(line), error)
                if answer is not None:
                    return self.envelope_of(answer)
                continue
            if self._starting is not None:
                self._has_started()
            if type(message) is Response:
                self._open_requests.answered(message.id)
            return self.envelope_of(message)
        return None

    def _unreadable(self, message_id: MessageId | None, error: e.FolkmootError) -> Response | None:
        """The answer to a request whose own answer cannot be passed on."""
        if message_id is None or message_id not in self._open_requests:
            return None
        self._open_requests.answered(message_id)
        return self.answer_for(
            e.ServerAnswerInvalid(f"The server's answer cannot be read: {error.message}"),
            message_id,
        )

    def _lost(self) -> MessageEnvelope[Any]:
        lost = self._open_requests.lost()
        if lost is None:
            raise e.TransportClosed(self.fate)
        error: e.FolkmootError = e.ServerUnreachable("The server ended before it answered.")
        if self._too_slow:
            error = e.ServerTimeout(self.fate)
        return self.envelope_of(self.answer_for(error, lost))

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Write a message; it leaves with the others of this turn of the loop."""
        self.check_way(envelope)
        message, writer = envelope.message, self._writer
        if writer is None or writer.closed or self._reader is None or self._reader.ended:
            raise e.TransportClosed(self.fate or ENDED)
        if type(message) is Request:
            self._open_requests.add(message)
            self._wait_for_start()
        elif type(message) is Notification:
            # A server need not answer what was cancelled.
            self._open_requests.answered(cancelled_id(message))
        writer.write(one_line(encode_message(message)))
        if not writer.free:
            await writer.room()

    async def close(self) -> None:
        """End the server: first by closing its input, then by asking, then by force."""
        self._cancel_timers()
        child = self._child
        if child is None or self._reader is None or self._writer is None:
            return
        self._writer.close()
        try:
            await child.end(self._grace)
        finally:
            self._writer.abort()
            self._reader.close()
            self._close_guard()

    def _close_guard(self) -> None:
        if self._guard is not None:
            os.close(self._guard)
            self._guard = None
