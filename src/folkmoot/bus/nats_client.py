"""Servers of a bus, and a connection to one NATS server.

Of NATS's protocol only what a bus needs is spoken: sign in, subscribe, publish, and ask whether the
server answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
from msgspec import Struct

from folkmoot.bus.limits import (
    FRAMES_PER_TURN,
    MAX_FRAME_BYTES,
    MAX_LINE_BYTES,
    SILENT_SECONDS,
)
from folkmoot.core import errors as e

DEFAULT_PORT = 4222
SCHEMES = ("nats", "tls")
END: Final = b"\r\n"
PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"
ENDED: Final = (OSError, RuntimeError)
"""What is raised where a connection has ended; uvloop's transports raise `RuntimeError`."""
HUNG_UP: Final = "it closed the connection"


class NatsServer(NamedTuple):
    host: str
    port: int
    tls: bool
    user: str | None = None
    password: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.tls else 'nats'}://{host}:{self.port}"

    def __repr__(self) -> str:
        return f"<NatsServer {self}>"


def parse_servers(url: str) -> list[NatsServer]:
    """The servers in `nats://[user:password@]host[:port][,host[:port]…]`, or with `tls://`.

    What the first one has before `@`, the others have too unless they have something of their own.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in SCHEMES:
        raise e.SettingsError("The address of a bus begins with nats:// or tls://.")
    servers: list[NatsServer] = []
    for part in rest.rstrip("/").split(","):
        try:
            found = urlsplit(f"{scheme}://{part.removeprefix(f'{scheme}://')}")
            port = found.port or DEFAULT_PORT
        except ValueError as error:
            raise e.SettingsError("A server of the bus has an invalid host or port.") from error
        if not found.hostname or found.path or found.query or found.fragment:
            raise e.SettingsError("A server of the bus is a host, or a host and its port.")
        servers.append(with_login(found, port, servers[0] if servers else None))
    return servers


def with_login(found: SplitResult, port: int, first: NatsServer | None) -> NatsServer:
    """A server with the name and password in its address, or those of the first."""
    user, password = found.username, found.password
    if user is None and first is not None:
        user, password = first.user, first.password
    elif user is not None:
        user, password = unquote(user), None if password is None else unquote(password)
    return NatsServer(found.hostname or "", port, found.scheme == "tls", user, password)


def login(server: NatsServer) -> dict[str, str]:
    """How to sign in: by name and password, or by a token, which has no name."""
    if server.user is None:
        return {}
    if server.password is None:
        return {"auth_token": server.user}
    return {"user": server.user, "pass": server.password}


def default_tls() -> ssl.SSLContext:
    """Trust what the system trusts."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class ServerInfo(Struct):
    """What a server says of itself, as far as it matters here."""

    max_payload: int = 0
    tls_required: bool = False
    tls_available: bool = False


class NatsReader:
    """Divides what a server says into commands, however it is cut; does no I/O."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._at = 0
        """Where in it the next command begins, or the payload of the one that was begun."""
        self._begun: tuple[bytes, int] | None = None
        """The subject of the message whose payload comes next, and its size."""
        self._surplus = 0
        """Bytes to be left out that are still to come."""

    def feed(self, data: bytes) -> None:
        """Take what was received."""
        if self._surplus:
            surplus = min(self._surplus, len(data))
            self._surplus -= surplus
            data = data[surplus:]
        if self._at:
            del self._unread[: self._at]
            self._at = 0
        self._unread += data

    @property
    def is_empty(self) -> bool:
        """Whether everything was read."""
        return len(self._unread) == self._at

    def read(self) -> tuple[bytes, bytes, bytes] | None:
        """The next command if it is whole: its verb and argument, or for `MSG` subject and payload.

        Of a payload that is larger than any frame one byte more than a frame has is kept, so that
        it is seen to be too large. Raises `ValueError` where no command can be.
        """
        if self._begun is None:
            at = self._at
            end = self._unread.find(END, at, at + MAX_LINE_BYTES)
            if end < 0:
                if len(self._unread) - at >= MAX_LINE_BYTES:
                    raise ValueError("a line without an end")
                return None
            verb, _, argument = bytes(self._unread[at:end]).partition(b" ")
            self._at = end + len(END)
            if verb != b"MSG":
                return verb, argument, b""
            self._begun = message_head(argument)
        subject, size = self._begun
        kept = min(size, MAX_FRAME_BYTES + 1)
        ends = self._at + kept
        if len(self._unread) < (ends + len(END) if kept == size else ends):
            return None
        payload = bytes(memoryview(self._unread)[self._at : ends])
        self._begun, self._at = None, ends
        if kept < size:
            surplus = size - kept + len(END)
            here = min(surplus, len(self._unread) - ends)
            self._at += here
            self._surplus = surplus - here
        elif self._unread.startswith(END, ends):
            self._at += len(END)
        else:
            raise ValueError("a message of another size")
        return b"MSG", subject, payload


def message_head(argument: bytes) -> tuple[bytes, int]:
    """The subject and the size of a message; between them a subscription, and where to reply."""
    match argument.split():
        case [subject, _, size] | [subject, _, _, size] if size.isdigit() and len(size) < 10:
            return subject, int(size)
    raise ValueError("a message without a size")


class NatsConnection(asyncio.Protocol):
    """A connection to one server, which is never opened again.

    Each frame is received in the turn in which it came, or soon: until then no more is read, so a
    server waits for a process that is slow. `receive` must not raise.
    """

    def __init__(self, receive: Callable[[str, bytes], None]) -> None:
        self._receive = receive
        self._reader = NatsReader()
        self._transport: Any = None
        self._informed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.info = ServerInfo()
        self._pongs: deque[asyncio.Future[bool]] = deque()
        self._writable = asyncio.Event()
        self._writable.set()
        self._read_on: asyncio.Handle | None = None
        """The turn in which more of what came is read; until then nothing more comes."""
        self._closed = asyncio.Event()
        self.lost = asyncio.Event()
        """Set once the connection can be used no more."""
        self.problem = ""
        """Why, in a few words that repeat no password."""
        self.received = 0

    async def open(
        self, server: NatsServer, name: str, tls: ssl.SSLContext | None, subjects: Iterable[str]
    ) -> None:
        """Connect, sign in and subscribe; raises `OSError`, `RuntimeError` or `ValueError`."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, server.host, server.port)
        self._limit_unacknowledged()
        await self._check(self._informed)
        required = self.info.tls_required
        # Without this, a server that offers no TLS is sent the password in the clear.
        if server.tls and not (required or self.info.tls_available):
            raise ValueError("the server offers no TLS")
        if server.tls or required:
            self._transport = await loop.start_tls(
                self._transport, self, tls or default_tls(), server_hostname=server.host
            )
            if not self._reader.is_empty:
                raise ValueError("the server said something that was not encrypted")
        options: dict[str, Any] = {"name": name, "protocol": 1, **login(server)}
        options |= {"verbose": False, "pedantic": False, "echo": False}
        commands = [b"CONNECT ", msgspec.json.encode(options), END]
        commands += [b"SUB %b %d\r\n" % (each.encode(), n) for n, each in enumerate(subjects, 1)]
        self._transport.writelines(commands)
        await self._check(self._ping())

    async def _check(self, answer: asyncio.Future[bool]) -> None:
        if not await answer:
            raise ConnectionResetError(self.problem)

    async def write(self, commands: Sequence[bytes]) -> None:
        """Write whole commands, and wait while too much of what was written is not sent."""
        if not self.lost.is_set():
            self._transport.writelines(commands)
            await self._writable.wait()
        if self.lost.is_set():
            raise ConnectionResetError(self.problem)

    async def ask(self) -> bool:
        """Wait until the server answers; False if the connection has ended."""
        return await self._ping()

    def _ping(self) -> asyncio.Future[bool]:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self.lost.is_set():
            answer.set_result(False)
        else:
            self._pongs.append(answer)
            self._transport.write(PING)
        return answer

    async def end(self) -> None:
        """Close the connection, without waiting for a server that takes nothing any more."""
        if self._transport is None:
            return
        self._transport.close()
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                await self._closed.wait()
        except TimeoutError:
            pass
        finally:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, problem: str) -> None:
        """Use the connection no more."""
        if self.lost.is_set():
            return
        self.problem = problem
        self.lost.set()
        self._writable.set()
        for answer in (self._informed, *self._pongs):
            if not answer.done():
                answer.set_result(False)
        self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server will say who it is."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self.fail(HUNG_UP if exc is None else describe(exc))

    def pause_writing(self) -> None:
        """The server takes less than it is sent."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The server has taken most of it."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Take what came; much of it is read in several turns."""
        self._reader.feed(data)
        if self._read_on is None and not self._read_some():
            self._transport.pause_reading()
            self._read_on = asyncio.get_running_loop().call_soon(self._read_rest)

    def _read_rest(self) -> None:
        if self._read_some():
            self._read_on = None
            if not self.lost.is_set():
                self._transport.resume_reading()
        else:
            self._read_on = asyncio.get_running_loop().call_soon(self._read_rest)

    def _read_some(self) -> bool:
        """Read the frames of one turn; whether that was all."""
        for _ in range(FRAMES_PER_TURN):
            try:
                found = self._reader.read()
                if found is None or self.lost.is_set():
                    return True
                self._accept(*found)
            except (ValueError, RecursionError):
                self.fail("it does not speak the protocol of NATS")
                return True
        return self._reader.is_empty

    def _accept(self, verb: bytes, argument: bytes, payload: bytes) -> None:
        if verb == b"MSG":
            self.received += 1
            self._receive(argument.decode("ascii"), payload)
        elif verb == b"PING":
            # Whoever takes nothing needs no answer.
            if self._writable.is_set():
                self._transport.write(PONG)
        elif verb == b"PONG":
            if self._pongs and not (answer := self._pongs.popleft()).done():
                answer.set_result(True)
        elif verb == b"INFO":
            self.info = msgspec.json.decode(argument, type=ServerInfo)
            if not self._informed.done():
                self._informed.set_result(True)
        elif verb == b"-ERR":
            self.fail(refusal(argument.decode("ascii", "replace")))
        elif verb != b"+OK":
            raise ValueError("an unknown command")

    def _limit_unacknowledged(self) -> None:
        """Have the system end the connection when the other machine is gone, or the way to it.

        One that is there acknowledges what it gets. A server that reads nothing for so long, while
        something waits to be sent, is given up as well.
        """
        # Not every system can.
        with contextlib.suppress(AttributeError, OSError):
            self._transport.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENT_SECONDS * 1000)
            )


def refusal(said: str) -> str:
    """Why a server ends a connection, by its own words."""
    words = said.strip(" .'")
    return "it refuses this login" if words.lower().startswith("authorization") else words


def describe(error: BaseException) -> str:
    """What is wrong, in a few words."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, RuntimeError):
        return HUNG_UP
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.strerror:
        # asyncio's own words repeat the address instead.
        return os.strerror(error.errno or 0) if (error.errno or 0) > 0 else error.strerror
    return str(error).strip(" .'") or type(error).__name__
