"""Participants of a room: WebSockets that send envelopes and count what they hear.

They do as little as they can, so that the hub is what is measured. One of a room counts what is
heard, by a mark in it; since all hear the same, bytes tell how much the others heard.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.mail_load import awake, cpu_of

HEAD = (
    "GET /ws?room={room} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
    "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
END_OF_HEAD = b"\r\n\r\n"
PING, PONG = b"\x89\x00", b"\x8a\x80" + bytes(4)
"""A participant who says nothing must answer, or it is taken to be gone; PONG has its mask."""
QUIET_BYTES = 4_096
"""Where more comes at once, something is said, and pings need not be looked for."""
MARK = b'"text":"'
STAMP = b"sent "
STAMP_BYTES = 19
FILLING = "x" * 100
PACE_SECONDS = 0.001
SILENCE_SECONDS = 0.05
BUFFER_BYTES = 262_144
SAMPLED = 8
"""One of so many reads tells how long its first envelope took."""
AT_ONCE = 20
"""How many come in at the same time."""


class Seat(NamedTuple):
    """Who joins which room."""

    room: str = "bench"
    token: str = "none"


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

    def __init__(self, number: int, seat: Seat, buffer: bytearray) -> None:
        self.bytes = 0
        self.is_open = True
        self.waits: list[int] = []
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_heard: Callable[[int], None] | None = None
        """Told how many envelopes came; of a whole room one participant counts."""
        self._sender = f"<{number:05d}>"
        self._plain = envelope(self._sender)
        self._head = HEAD.format(room=seat.room, token=seat.token).encode()
        self._buffer = buffer
        self._chunks = 0
        self._cut = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        transport.write(self._head)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002
        """The shared one: nothing is left in it from one read to the next."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if not self.opened.done():
            self._open(bytes(self._buffer[:nbytes]))
            return
        if nbytes < QUIET_BYTES and self._buffer.find(PING, 0, nbytes) >= 0:
            self._transport.write(PONG)
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
        self.is_open = False
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the hub closed a connection"))

    def close(self) -> None:
        """Leave."""
        self._transport.abort()


class Crowd:
    """The participants of one room, in one process."""

    def __init__(self, port: int, pid: int) -> None:
        self._port, self._pid = port, pid
        self._buffer = bytearray(BUFFER_BYTES)
        self._at_once = 0
        self._heard = 0
        self._owed = 0
        self._turn = 0
        self.participants: list[Participant] = []

    @property
    def held(self) -> int:
        """How many are still connected."""
        return sum(one.is_open for one in self.participants)

    async def join(self, seats: Sequence[Seat]) -> None:
        """Let everyone come in."""
        for first in range(0, len(seats), AT_ONCE):
            some = enumerate(seats[first : first + AT_ONCE], first)
            self.participants += await asyncio.gather(*(self._enter(*one) for one in some))
        self.participants[0].on_heard = self._on_heard

    async def _enter(self, number: int, seat: Seat) -> Participant:
        make = partial(Participant, number, seat, self._buffer)
        loop = asyncio.get_running_loop()
        _, one = await loop.create_connection(make, "127.0.0.1", self.port_of(number))
        await one.opened
        return one

    def port_of(self, number: int) -> int:  # noqa: ARG002
        """Where a participant comes in."""
        return self._port

    async def full(self, seconds: float, window: int, at_once: int) -> Heard:
        """As much as the hub takes, with so many envelopes always on their way."""
        self._at_once = at_once
        self._say(window)
        await asyncio.sleep(seconds / 4)
        heard = await self._measure(seconds)
        self._at_once = self._owed = 0
        await self._silence()
        return heard

    async def _silence(self) -> None:
        """Wait until nothing is heard any more, so that it disturbs nobody who is next."""
        before = -1
        while before != self._heard:
            before = self._heard
            await asyncio.sleep(SILENCE_SECONDS)

    def _on_heard(self, count: int) -> None:
        self._heard += count
        if self._at_once:
            self._say(count)

    def _say(self, count: int) -> None:
        """Let the participants speak in turns, so many envelopes each."""
        self._owed += count
        while self._owed >= self._at_once:
            self.participants[self._turn % len(self.participants)].say(self._at_once)
            self._turn += 1
            self._owed -= self._at_once

    async def paced(self, seconds: float, rate: float, burst: int) -> Heard:
        """So many envelopes a second, in bursts of one participant after another."""
        pacing = asyncio.ensure_future(self._pace(rate, burst))
        await asyncio.sleep(seconds / 4)
        heard = await self._measure(seconds)
        pacing.cancel()
        await self._silence()
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
