"""Both ends of a conversation in lines: read in big pieces, written once per turn of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from folkmoot.core.errors import TransportClosed
from folkmoot.mcp.lines import Lines

HIGH: Final = 1024 * 1024
LOW: Final = HIGH // 4
"""Reading stops while more bytes wait than the first, and goes on below the second."""
AT_ONCE: Final = 256 * 1024
"""More than so many bytes do not wait for the end of the turn."""
LOG_LINE: Final = 64 * 1024
"""A longer line of a log is passed on in pieces."""


class LineReader(asyncio.Protocol):
    """Feeds the bytes of a pipe to `Lines`; nothing is dropped, the other side waits instead."""

    def __init__(self, lines: Lines) -> None:
        self.ended = False
        self._lines = lines
        self._paused = False
        self._quiet = True
        self._came = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The pipe is open."""
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._quiet = False
        self._lines.feed(data)
        self._came.set()
        if self._lines.waiting > HIGH and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nothing more comes."""
        self._transport = None
        self.end()

    def end_after(self, seconds: float) -> None:
        """End once nothing came for so long; while reading is paused, there may be more."""
        self._quiet = False
        self._end_if_quiet(seconds)

    def _end_if_quiet(self, seconds: float) -> None:
        if self._quiet and not self._paused:
            self.end()
        elif not self.ended:
            self._quiet = True
            asyncio.get_running_loop().call_later(seconds, self._end_if_quiet, seconds)

    def end(self) -> None:
        """Wait for nothing more."""
        self.ended = True
        self._came.set()

    async def more(self) -> None:
        """Wait until there is more to take, or nothing more comes."""
        if not self.ended:
            self._came.clear()
            await self._came.wait()

    def go_on(self) -> None:
        """Something was taken: read on if enough was."""
        if self._paused and self._lines.waiting < LOW and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def close(self) -> None:
        """Close our end."""
        if self._transport is not None:
            self._transport.close()
        self.end()


class LineWriter(asyncio.BaseProtocol):
    """Writes lines to a pipe, those of one turn of the loop together."""

    def __init__(self) -> None:
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0
        self._free = asyncio.Event()
        self._free.set()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The pipe is open."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def pause_writing(self) -> None:
        """The other side does not read as fast as we write."""
        self._free.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._free.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nobody reads any more."""
        self.closed = True
        self._transport = None
        self._parts.clear()
        self._free.set()

    def write(self, line: bytes) -> None:
        """Have a line leave with the others of this turn."""
        if self.closed:
            raise TransportClosed("The server no longer reads its input.")
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts += (line, b"\n")
        self._size += len(line)
        if self._size > AT_ONCE:
            self._flush()

    @property
    def free(self) -> bool:
        """Whether more may be written at once."""
        return self._free.is_set()

    async def room(self) -> None:
        """Wait until not too much is unwritten."""
        await self._free.wait()

    def _flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self.closed and self._transport is not None:
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Write what is left, and close our end."""
        self._flush()
        self.closed = True
        self._free.set()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close our end without writing what nobody reads."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()


class LogReader(asyncio.Protocol):
    """Passes on a log line by line."""

    def __init__(self, tell: Callable[[bytes], None]) -> None:
        self._tell = tell
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Pass on the lines that are whole."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tell(line)
        if len(self._rest) > LOG_LINE:
            self._tell(self._rest)
            self._rest = b""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Pass on the last line, if it had no end."""
        if self._rest:
            self._tell(self._rest)
            self._rest = b""
