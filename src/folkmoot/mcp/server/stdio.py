"""The client on standard input and output: one message a line, in both directions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import decode_message, encode_message
from folkmoot.core.transport import ConnectionInfo, StdioMetadata, TransportContext
from folkmoot.mcp.carrier import PROXY_LIMITS, Carrier
from folkmoot.mcp.framing import LineSplitter, one_line
from folkmoot.mcp.pipes import PipeReader, PipeWriter, read_from, write_to
from folkmoot.mcp.wire import readable_id, refusal

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits

STDIN, STDOUT, STDERR = 0, 1, 2
CLOSE_SECONDS: Final = 2.0
TURN: Final = 128
"""After so many messages in a row the loop's other work has its turn."""


class StdioFront(Carrier):
    """The client at the other ends of our standard input and output.

    While it is open, standard output carries messages alone: what anything else in the process
    prints there goes to standard error.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        stdin: int = STDIN,
        stdout: int = STDOUT,
        limits: Limits = PROXY_LIMITS,
    ) -> None:
        super().__init__(MessageDirection.CLIENT_TO_SERVER, clock, limits)
        self._fds = (stdin, stdout)
        self._lines = LineSplitter(limits.message_bytes)
        self._reader = PipeReader(self._lines)
        self._writer: PipeWriter | None = None
        self._ahead: MessageEnvelope[Any] | None = None
        self._turn = 0
        self._closed = False
        self._restore = contextlib.ExitStack()
        self._context = TransportContext(
            StdioMetadata(os.getpid()), ConnectionInfo(f"stdio-{secrets.token_hex(4)}")
        )

    async def open(self) -> None:
        """Take standard input and output over."""
        stdin, stdout = self._fds
        for fd in self._fds:
            self._restore.callback(_set_blocking, fd, os.get_blocking(fd))
        written = stdout
        if stdout == STDOUT:
            written = os.dup(stdout)
            self._restore.callback(os.close, written)
            self._restore.callback(os.dup2, written, STDOUT)
            self._restore.callback(sys.stdout.flush)
            os.dup2(STDERR, STDOUT)
        writer = PipeWriter(on_lost=self._reader.close)
        await write_to(written, writer)
        self._writer = writer
        await read_from(stdin, self._reader)

    @property
    def waiting(self) -> bool:
        """Whether a message was received already."""
        if self._ahead is None:
            self._ahead = self._next()
        return self._ahead is not None

    async def receive_envelope(self) -> MessageEnvelope[Any]:
        """The next message; what is none is answered here."""
        self._turn += 1
        if self._turn >= TURN:
            self._turn = 0
            await asyncio.sleep(0)
        while True:
            envelope, self._ahead = self._ahead or self._next(), None
            if envelope is not None:
                return envelope
            if self._lines.waiting and self._writer is not None:
                await self._writer.room()
            elif self._reader.ended:
                raise e.TransportClosed("The client closed its end.")
            else:
                await self._reader.more()

    def _next(self) -> MessageEnvelope[Any] | None:
        """The next message already read, unless too many refusals wait."""
        while True:
            line: bytes | None = b""
            try:
                line = self._lines.take()
                self._reader.go_on()
                if line is None:
                    return None
                return self.envelope_of(decode_message(line, self.limits), self._context)
            except e.MessageError as error:
                writer = self._writer
                if writer is not None and not writer.closed:
                    writer.write(encode_message(refusal(readable_id(line or b""), error)))
                    if not writer.free:
                        return None

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Write a message with the others of this turn of the loop."""
        self.check_way(envelope)
        writer = self._writer
        if writer is None or writer.closed:
            raise e.TransportClosed("Nobody reads standard output.")
        writer.write(one_line(encode_message(envelope.message)))
        if not writer.free:
            await writer.room()

    async def silent(self) -> None:
        """Wait until standard input has ended."""
        await self._reader.over.wait()

    def current_context(self) -> TransportContext:
        """Standard input and output of this process."""
        return self._context

    async def close(self) -> None:
        """Write what is left, and give standard input and output back."""
        if self._closed:
            return
        self._closed = True
        self._reader.close()
        try:
            if self._writer is not None:
                await self._writer.finish(CLOSE_SECONDS)
        finally:
            self._restore.close()


def _set_blocking(fd: int, blocking: bool) -> None:  # noqa: FBT001
    with contextlib.suppress(OSError):
        os.set_blocking(fd, blocking)
