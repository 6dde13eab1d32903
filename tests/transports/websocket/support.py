"""WebSockets without rooms: a hub's HTTP side with one endpoint, and a client of plain sockets."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from folkmoot.transports.answers import Answers
from folkmoot.transports.guard import Hosts
from folkmoot.transports.websocket import (
    Audience,
    Handler,
    LinkLimits,
    Refusal,
    UpgradeRequest,
    WebSocketConnection,
    WebSocketEndpoint,
    text_frame,
)
from folkmoot.web.pages import Pages
from tests.harness import Answer, Serving, read_answer, serving

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


class Party:
    """Everyone who comes in hears what everyone says."""

    def __init__(self) -> None:
        self.audience = Audience()
        self.guests: list[Guest] = []
        self.came = asyncio.Event()

    async def accept(
        self, request: UpgradeRequest
    ) -> Callable[[WebSocketConnection], Handler] | Refusal:
        return self.enter

    def enter(self, link: WebSocketConnection) -> Guest:
        guest = Guest(self, link)
        self.guests.append(guest)
        self.audience.add(link)
        self.came.set()
        return guest

    async def number(self, count: int) -> None:
        """Wait until so many have come."""
        while len(self.guests) < count:
            self.came.clear()
            await self.came.wait()


class Guest:
    def __init__(self, party: Party, link: WebSocketConnection) -> None:
        self.link = link
        self.heard: list[bytes] = []
        self.ends: list[tuple[int, str]] = []
        self.left = asyncio.Event()
        self._party = party

    def on_text(self, *messages: bytes) -> None:
        self.heard += messages
        self._party.audience.send(*map(text_frame, messages))

    def on_close(self, code: int, reason: str) -> None:
        self.ends.append((code, reason))
        self.left.set()


class Open(NamedTuple):
    """A hub's HTTP side with WebSockets at `/ws`."""

    hub: Serving
    endpoint: WebSocketEndpoint
    party: Party

    @property
    def port(self) -> int:
        return self.hub.port

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def guest(self) -> Guest:
        """The first who came in, or comes."""
        await self.party.number(1)
        return self.party.guests[0]


@asynccontextmanager
async def opened(
    limits: LinkLimits | None = None,
    *,
    party: type[Party] = Party,
    hosts: Hosts | None = None,
    max_connections: int = 300,
    shutdown_seconds: float = 5,
) -> AsyncIterator[Open]:
    """Serve WebSockets at `/ws`."""
    there = party()
    hosts = hosts or Hosts("127.0.0.1")
    answers = Answers(Pages(version="0", public_url="").error_page)
    endpoint = WebSocketEndpoint(there, hosts=hosts, answers=answers, limits=limits or LinkLimits())
    async with serving(
        endpoints={"/ws": endpoint},
        hosts=hosts,
        max_connections=max_connections,
        shutdown_seconds=shutdown_seconds,
    ) as hub:
        yield Open(hub, endpoint, there)


def handshake(path: str = "/ws", headers: Mapping[str, str | None] | None = None) -> bytes:
    """The head of a request for a WebSocket; a header that is None is left out."""
    named: dict[str, str | None] = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "keep-alive, Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": KEY,
        **(headers or {}),
    }
    lines = [f"{name}: {value}" for name, value in named.items() if value is not None]
    return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")


def frame(
    payload: bytes = b"",
    opcode: int = TEXT,
    *,
    fin: bool = True,
    reserved: int = 0,
    masked: bool = True,
) -> bytes:
    """A frame as a client sends it, or as it may not."""
    size = len(payload)
    flag = 0x80 if masked else 0
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    if size < 126:
        head += bytes([flag | size])
    elif size < 1 << 16:
        head += bytes([flag | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([flag | 127]) + size.to_bytes(8, "big")
    if not masked:
        return head + payload
    mask = os.urandom(4)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")


class Client:
    """A client that sends any bytes whatever."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 22))

    async def ask(self, path: str = "/ws", *, after: bytes = b"", **headers: str | None) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.writer.write(handshake(path, named) + after)
        return await read_answer(self.reader)

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def receive(self) -> tuple[int, bytes]:
        """The opcode and payload of the next frame."""
        first, second = await self.reader.readexactly(2)
        assert first & 0xF0 == 0x80
        size = second
        if second >= 126:
            size = int.from_bytes(await self.reader.readexactly(2 if second == 126 else 8), "big")
        return first & 0xF, await self.reader.readexactly(size)

    async def text(self) -> bytes:
        opcode, payload = await self.receive()
        assert opcode == TEXT, (opcode, payload)
        return payload

    async def closed(self) -> int:
        """The code of the close that comes next; it is answered, and the connection ends."""
        opcode, payload = await self.receive()
        assert opcode == CLOSE, (opcode, payload)
        self.send(frame(payload, CLOSE))
        assert await self.reader.read() == b""
        return int.from_bytes(payload[:2], "big")

    def leave(self) -> None:
        self.writer.close()

    def wake(self) -> None:
        """Read again."""
        self.writer.transport.resume_reading()  # type: ignore[attr-defined]

    async def awoken(self) -> bytes:
        """Read everything after all, and answer what the close says."""
        self.wake()
        while (received := await self.receive())[0] != CLOSE:
            pass
        return received[1]


@asynccontextmanager
async def client(at: Open, after: bytes = b"") -> AsyncIterator[Client]:
    """A client whose handshake is done; `after` is sent together with it."""
    made = await Client.connect(at.port)
    try:
        answer = await made.ask(after=after)
        assert answer.status == 101
        assert answer.headers["sec-websocket-accept"] == ACCEPT
        yield made
    finally:
        made.leave()


async def deaf(port: int, path: str = "/ws") -> Client:
    """A client that has the answer to its handshake, and reads nothing after it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    one = Client(*await asyncio.open_connection(sock=made, limit=1024))
    one.writer.write(handshake(path))
    assert (await read_answer(one.reader)).status == 101
    one.writer.transport.pause_reading()  # type: ignore[attr-defined]
    return one
