"""Callers of `/mcp`: connections that stay open and send requests that were written beforehand.

A caller does as little as it can, so that the one who answers is what is measured. For the same
reason callers never sleep: to wake one that does is work for whoever writes to it, and on a virtual
machine costs more than many an answer.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
OK = b"HTTP/1.1 200 "
LENGTH = b"content-length:"
END_OF_HEAD = b"\r\n\r\n"
FAILED = b'"isError":true'


class Measured(NamedTuple):
    """What one round of calls came to."""

    rate: float
    """Calls a second."""
    cpu: float
    """Seconds of the server's processor for each call."""


def request_of(tool: str, arguments: dict[str, Any], token: str = "") -> bytes:
    """A whole request that calls a tool, as a client of the stateless era sends it."""
    params = {"name": tool, "arguments": arguments, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message, separators=(",", ":")).encode()
    head = (
        "POST /mcp HTTP/1.1\r\n"
        f"authorization: {f'Bearer {token}' if token else 'none'}\r\n"
        "host: 127.0.0.1\r\n"
        "user-agent: benchmark\r\n"
        "accept: application/json, text/event-stream\r\n"
        "content-type: application/json\r\n"
        f"mcp-protocol-version: {VERSION}\r\n"
        "mcp-method: tools/call\r\n"
        f"mcp-name: {tool}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Caller(asyncio.Protocol):
    """One connection; it sends the next request when the answer to the last one is whole."""

    def __init__(self, requests: Sequence[bytes]) -> None:
        self.answered = 0
        self.failure: bytes | None = None
        self._requests = cycle(requests)
        self._until = 0.0
        self._received = b""
        self._awaited = 0
        self._idle: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    async def call(self, until: float) -> None:
        """Call until it is that late, but once at least."""
        self._until = until
        self._idle = asyncio.get_running_loop().create_future()
        self._transport.write(next(self._requests))
        await self._idle

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        if not self._awaited:
            end = self._received.find(END_OF_HEAD)
            if end < 0:
                return
            self._awaited = end + len(END_OF_HEAD) + length_in(self._received[:end])
        if len(self._received) >= self._awaited:
            self._take()

    def _take(self) -> None:
        if not self._received.startswith(OK) or FAILED in self._received[-200:]:
            self.failure = self._received
        self.answered += 1
        self._received, self._awaited = b"", 0
        if time.perf_counter() < self._until:
            self._transport.write(next(self._requests))
        elif self._idle is not None:
            self._idle.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that no answer will come."""
        if self._idle is not None and not self._idle.done():
            self._idle.set_exception(exc or ConnectionError("the server closed a connection"))

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


def length_in(head: bytes) -> int:
    """The length of the body that a head announces."""
    lower = head.lower()
    start = lower.index(LENGTH) + len(LENGTH)
    return int(lower[start:].split(b"\r\n", 1)[0])


class Load:
    """Callers of one server, each with requests of its own."""

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self._pid = pid
        self._callers: list[Caller] = []

    async def connect(self, requests: Sequence[Sequence[bytes]]) -> None:
        """Open a connection for each list of requests, in place of those that were open."""
        self.close()
        loop = asyncio.get_running_loop()
        for own in requests:
            _, caller = await loop.create_connection(partial(Caller, own), "127.0.0.1", self._port)
            self._callers.append(caller)

    async def measure(self, seconds: float, *, sleepless: bool = True) -> Measured:
        """Let all callers call for a while."""
        for caller in self._callers:
            caller.answered = 0
        with awake() if sleepless else nullcontext():
            began, used = time.perf_counter(), cpu_of(self._pid)
            await asyncio.gather(*(caller.call(began + seconds) for caller in self._callers))
        took, used = time.perf_counter() - began, cpu_of(self._pid) - used
        count = self.answered
        for caller in self._callers:
            if caller.failure is not None:
                raise RuntimeError(f"a call failed: {caller.failure[-500:]!r}")
        return Measured(count / took, used / count)

    @property
    def answered(self) -> int:
        """Calls that were answered in the last measurement."""
        return sum(caller.answered for caller in self._callers)

    def close(self) -> None:
        """Close all connections."""
        for caller in self._callers:
            caller.close()
        self._callers.clear()


@contextmanager
def awake() -> Iterator[None]:
    """Keep the loop from sleeping."""
    loop, over = asyncio.get_running_loop(), False

    def turn() -> None:
        if not over:
            loop.call_soon(turn)

    turn()
    try:
        yield
    finally:
        over = True


def cpu_of(pid: int) -> float:
    """Seconds a process has run on a processor so far, all its threads together."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
