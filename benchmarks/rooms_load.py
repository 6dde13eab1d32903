"""Participants of a room: WebSockets that send envelopes and count what they hear.

They do as little as they can, so that the hub is what is measured. One of a room counts what is
heard, by a mark in it; since all hear the same, bytes tell how much the others heard.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks.mail_load import awake, cpu_of

HEAD = (
    "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{more}\r\n"
)
END_OF_HEAD = b"\r\n\r\n"
MARK = b'"text":"'
STAMP = b"sent "
STAMP_BYTES = 19
FILLING = "x" * 100
PACE_SECONDS = 0.001
BUFFER_BYTES = 262_144
TURN = 16
"""How many envelopes a participant sends at once, at most."""
SAMPLED = 8
"""One of so many reads tells how long its first envelope took."""


class Heard(NamedTuple):
    """What a room did in one measurement."""

    envelopes: float
    """A second, in."""
    deliveries: float
    """A second, out."""
    cpu: float
    """Seconds of the hub's processor for each envelope."""
    p50: float
    p99: float


def envelope(sender: str, stamp: str = "") -> bytes:
    """One envelope of chat as a client frames it, with a mask that changes nothing."""
    payload = (
        '{"protocol":"mcpx/v1","kind":"chat.message","payload":'
        f'{{"text":"{sender} {stamp or "x" * (len(STAMP) + STAMP_BYTES)} {FILLING}",'
        '"format":"plain"}}'
    ).encode()
    return bytes([0x81, 0xFE]) + len(payload).to_bytes(2, "big") + bytes(4) + payload


class Participant(asyncio.BufferedProtocol):
    """One connection to a room; what it hears goes into a buffer that all of them share."""

    def __init__(self, number: int, path: str, buffer: bytearray, more: str = "") -> None:
        self.bytes = 0
        self.waits: list[int] = []
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_heard: Callable[[int], None] | None = None
        """Told how many envelopes came; of a whole room one participant counts."""
        self._sender = f"<{number:05d}>"
        self._plain = envelope(self._sender)
        self._head = HEAD.format(path=path, more=more).encode()
        self._buffer = buffer
        self._chunks = 0
        self._cut = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask for the WebSocket."""
        self._transport = transport
        transport.write(self._head)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002
        """The shared one: nothing is left in it from one read to the next."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what came."""
        if not self.opened.done():
            self._open(bytes(self._buffer[:nbytes]))
            return
        self.bytes += nbytes
        self._chunks += 1
        if self._chunks % SAMPLED == 0:
            self._look(nbytes)
        if self.on_heard is not None:
            # A mark that is cut in two is found where the two pieces meet.
            edge = self._cut + self._buffer[: min(nbytes, len(MARK) - 1)]
            heard = edge.count(MARK) + self._buffer.count(MARK, 0, nbytes)
            self._cut = bytes(edge if nbytes < len(MARK) else self._buffer[:nbytes])[
                1 - len(MARK) :
            ]
            if heard:
                self.on_heard(heard)

    def _open(self, head: bytes) -> None:
        self._cut += head
        if END_OF_HEAD in self._cut:
            if not self._cut.startswith(b"HTTP/1.1 101"):
                raise RuntimeError(f"not let in: {self._cut!r}")
            self._cut = b""
            self.opened.set_result(None)

    def _look(self, nbytes: int) -> None:
        found = self._buffer.find(STAMP, 0, nbytes)
        end = found + len(STAMP) + STAMP_BYTES
        if found >= 0 and end <= nbytes:
            self.waits.append(time.monotonic_ns() - int(self._buffer[found + len(STAMP) : end]))

    def say(self, count: int) -> None:
        """Send envelopes; the first tells when."""
        first = envelope(self._sender, f"sent {time.monotonic_ns():0{STAMP_BYTES}d}")
        self._transport.write(first + self._plain * (count - 1) if count > 1 else first)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that the door stayed shut."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the hub closed a connection"))

    def close(self) -> None:
        """Leave."""
        self._transport.abort()


class Crowd:
    """The participants of one room, in one process."""

    def __init__(self, port: int, pid: int, path: str = "/ws?room=bench") -> None:
        self._port, self._pid, self._path = port, pid, path
        self._buffer = bytearray(BUFFER_BYTES)
        self._on_their_way = False
        self._heard = 0
        self._turn = 0
        self.participants: list[Participant] = []

    async def join(self, count: int, more: Callable[[int], str] = lambda _: "") -> None:
        """Let so many come in."""
        loop = asyncio.get_running_loop()
        for number in range(count):
            make = partial(Participant, number, self._path, self._buffer, more(number))
            _, one = await loop.create_connection(make, "127.0.0.1", self._port)
            await one.opened
            self.participants.append(one)
        self.participants[0].on_heard = self._on_heard

    async def full(self, seconds: float, window: int) -> Heard:
        """As much as the hub takes, with so many envelopes always on their way."""
        self._on_their_way = True
        self._say(window)
        await asyncio.sleep(seconds / 4)
        heard = await self._measure(seconds)
        self._on_their_way = False
        await asyncio.sleep(seconds / 4)
        return heard

    def _on_heard(self, count: int) -> None:
        self._heard += count
        if self._on_their_way:
            self._say(count)

    def _say(self, count: int) -> None:
        """Let the participants speak in turns, a few envelopes each."""
        while count > 0:
            said = min(count, TURN)
            self.participants[self._turn % len(self.participants)].say(said)
            self._turn += 1
            count -= said

    async def paced(self, seconds: float, rate: float, burst: int) -> Heard:
        """So many envelopes a second, in bursts of one participant after another."""
        pacing = asyncio.ensure_future(self._pace(rate, burst))
        await asyncio.sleep(seconds / 4)
        heard = await self._measure(seconds)
        pacing.cancel()
        await asyncio.sleep(seconds / 4)
        return heard

    async def _pace(self, rate: float, burst: int) -> None:
        began, said, turn = time.perf_counter(), 0, 0
        while True:
            due = int((time.perf_counter() - began) * rate)
            while said + burst <= due:
                self.participants[turn % len(self.participants)].say(burst)
                said, turn = said + burst, turn + 1
            await asyncio.sleep(PACE_SECONDS)

    async def _measure(self, seconds: float) -> Heard:
        for one in self.participants:
            one.bytes = 0
            one.waits.clear()
        self._heard = 0
        with awake():
            began, used = time.perf_counter(), cpu_of(self._pid)
            await asyncio.sleep(seconds)
        took, used = time.perf_counter() - began, cpu_of(self._pid) - used
        heard = max(self._heard, 1)
        size = self.participants[0].bytes / heard
        waits = sorted(wait for one in self.participants for wait in one.waits) or [0]
        return Heard(
            heard / took,
            sum(one.bytes for one in self.participants) / max(size, 1) / took,
            used / heard,
            waits[len(waits) // 2] / 1e9,
            waits[len(waits) * 99 // 100] / 1e9,
        )

    def leave(self) -> None:
        """Let all go."""
        for one in self.participants:
            one.close()
        self.participants.clear()
