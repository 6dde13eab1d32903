"""A server on standard input and output: a child of ours that ends with the link."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.errors import (
    FolkmootError,
    MessageError,
    MessageTooLarge,
    ServerAnswerInvalid,
    ServerUnreachable,
    TransportClosed,
)
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
from folkmoot.transports.carrier import PROXY_LIMITS
from folkmoot.transports.fronts.refusals import refused
from folkmoot.transports.lines import Lines, one_line
from folkmoot.transports.links.child import Child
from folkmoot.transports.links.ends import Ends
from folkmoot.transports.links.link import Link, OpenRequests
from folkmoot.transports.links.pipes import LineReader, LineWriter, LogReader
from folkmoot.transports.links.salvage import answered_id, cancelled_id

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits

GRACE_SECONDS: Final = 2.0
REST_SECONDS: Final = 0.5
"""How long the last words of a server that has ended may be on their way."""


class StdioLink(Link):
    """A command that speaks MCP on its standard input and output.

    `env` is its whole environment; without one it has ours. Its log goes to our standard error,
    or line by line to `stderr`.
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
    ) -> None:
        super().__init__(clock, limits)
        self._command = tuple(command)
        self._env, self._cwd, self._grace, self._log = env, cwd, grace, stderr
        self._lines = Lines(limits.message_bytes)
        self._open_requests = OpenRequests()
        self._ahead: MessageEnvelope[Any] | None = None
        self._context = UNKNOWN
        self._child: Child | None = None
        self._reader: LineReader | None = None
        self._writer: LineWriter | None = None

    async def open(self) -> None:
        """Start the server; `ServerUnreachable` when it cannot be started."""
        reader, writer = LineReader(self._lines), LineWriter()
        with Ends() as ends:
            stdin, to_server = ends.pipe(we_read=False)
            stdout, from_server = ends.pipe()
            stderr, log = ends.pipe() if self._log else (None, None)
            child = await Child.start(
                self._command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self._env,
                cwd=self._cwd,
                # Its own children may hold its standard output open for longer than it lives.
                on_exit=lambda: reader.end_after(REST_SECONDS),
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
            envelope, self._ahead = self._ahead or self._next(), None
            if envelope is not None:
                return envelope
            if self._reader is None or self._reader.ended:
                return self._lost()
            await self._reader.more()

    def _next(self) -> MessageEnvelope[Any] | None:
        """The next message of those that are there already."""
        while True:
            try:
                line = self._lines.take()
            except MessageTooLarge as error:
                self.strays.note(error)
                answer = self._unreadable(self._open_requests.only, error)
                if answer is not None:
                    return self.envelope_of(answer)
                continue
            if self._reader is not None:
                self._reader.go_on()
            if line is None:
                return None
            try:
                message = decode_message(line, self.limits)
            except MessageError as error:
                self.strays.note(error)
                answer = self._unreadable(answered_id(line), error)
                if answer is not None:
                    return self.envelope_of(answer)
                continue
            if type(message) is Response:
                self._open_requests.answered(message.id)
            return self.envelope_of(message)

    def _unreadable(self, message_id: MessageId | None, error: FolkmootError) -> Response | None:
        """The answer to a request whose own answer cannot be passed on."""
        if message_id is None or message_id not in self._open_requests:
            return None
        self._open_requests.answered(message_id)
        return refused(
            ServerAnswerInvalid(f"The server's answer cannot be read: {error.message}"), message_id
        )

    def _lost(self) -> MessageEnvelope[Any]:
        lost = self._open_requests.lost(ServerUnreachable("The server ended before it answered."))
        if lost is None:
            raise TransportClosed("The server has ended.")
        return self.envelope_of(lost)

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Write a message; it leaves with the others of this turn of the loop."""
        self.check_way(envelope)
        message, writer = envelope.message, self._writer
        if writer is None or writer.closed or self._reader is None or self._reader.ended:
            raise TransportClosed("The server has ended.")
        if type(message) is Request:
            self._open_requests.add(message)
        elif type(message) is Notification:
            # A server need not answer what was cancelled.
            self._open_requests.answered(cancelled_id(message))
        writer.write(one_line(encode_message(message)))
        if not writer.free:
            await writer.room()

    async def close(self) -> None:
        """End the server: first by closing its input, then by asking, then by force."""
        child = self._child
        if child is None or self._reader is None or self._writer is None:
            return
        self._writer.close()
        try:
            await child.end(self._grace)
        finally:
            self._writer.abort()
            self._reader.close()
