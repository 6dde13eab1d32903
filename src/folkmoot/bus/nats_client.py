"""Servers of a bus, and a client for one connection to a NATS server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from nats.aio.client import Client
from nats.errors import Error as NatsError

from folkmoot.bus.limits import FRAMES_PER_TURN, SILENT_SECONDS
from folkmoot.core import errors as e

DEFAULT_PORT = 4222
SCHEMES = ("nats", "tls")
UNLIMITED_SECONDS = 86_400
"""For the library, where we wait no longer than we want ourselves."""
ENDED = (NatsError, OSError, RuntimeError)
"""What is raised where a connection has ended; uvloop's transports raise `RuntimeError`."""


class NatsServer(NamedTuple):
    """One server of a bus."""

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
        return {"token": server.user}
    return {"user": server.user, "password": server.password}


def default_tls() -> ssl.SSLContext:
    """Trust what the system trusts."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class BusClient(Client):  # type: ignore[misc]
    """A client for one connection.

    Frames pass it without the queues and tasks that the library has for each subscription. What
    comes next is read when a frame was received, so a server waits for a process that is slow.
    """

    def __init__(self, receive: Callable[[str, bytes], None], *, needs_tls: bool) -> None:
        super().__init__()
        self._receive = receive
        """Must not raise: the library would read nothing more."""
        self.received = 0
        """How many frames came."""
        self._needs_tls = needs_tls
        self.lost = asyncio.Event()

    async def _process_info(
        self,
        info: dict[str, Any],
        initial_connection: bool = False,  # noqa: FBT001, FBT002 - as the library has it
    ) -> None:
        # Without this, a server that offers no TLS is sent the password in the clear.
        if initial_connection and self._needs_tls and not info.get("tls_required"):
            raise NatsError("the server offers no TLS")
        await super()._process_info(info, initial_connection)

    async def _process_msg(
        self, _sid: int, subject: bytes, _reply: bytes, data: bytes, _headers: bytes | None
    ) -> None:
        self._receive(subject.decode(), data)
        self.received += 1
        if self.received % FRAMES_PER_TURN == 0:
            await asyncio.sleep(0)

    async def write(self, commands: Sequence[bytes]) -> None:
        """Write whole commands, and wait while too much of what was written is not sent."""
        self._transport.writelines(commands)
        await self._transport.drain()

    @property
    def is_alive(self) -> bool:
        """Whether it is read and written; the library does not notice when its tasks fail."""
        tasks = self._reading_task, self._flusher_task
        return self.is_connected and not any(one is None or one.done() for one in tasks)

    async def ask(self) -> bool:
        """Wait until the server answers; False if the connection has ended."""
        try:
            await self.flush(UNLIMITED_SECONDS)
        except ENDED:
            return False
        # Without its tasks the library answers at once.
        return self.is_alive

    async def end(self) -> None:
        """Close the connection, without waiting for a server that takes nothing any more."""
        with contextlib.suppress(*ENDED):
            async with asyncio.timeout(SILENT_SECONDS):
                await self.close()
        self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        for transport in self._transports():
            transport.abort()

    def watch(self) -> None:
        """Notice at once when a task of the library has ended, as it does after some errors."""
        for task in (self._reading_task, self._flusher_task):
            if task is not None:
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.lost.set()
        if not task.cancelled():
            # Else asyncio complains of what nobody asked for.
            task.exception()

    def limit_unacknowledged(self) -> None:
        """Have the system end the connection when the other machine is gone, or the way to it.

        One that is there acknowledges what it gets. A server that reads nothing for so long, while
        something waits to be sent, is given up as well.
        """
        for transport in self._transports():
            # Not every system can.
            with contextlib.suppress(AttributeError, OSError):
                transport.get_extra_info("socket").setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENT_SECONDS * 1000)
                )

    def _transports(self) -> list[Any]:
        writers = (getattr(self._transport, n, None) for n in ("_io_writer", "_bare_io_writer"))
        return [writer.transport for writer in writers if writer is not None]


def describe(error: BaseException) -> str:
    """What is wrong, in a few words; those of the library repeat no password."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, RuntimeError):
        return "it closed the connection"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.strerror:
        # asyncio's own words repeat the address instead.
        return os.strerror(error.errno or 0) if (error.errno or 0) > 0 else error.strerror
    said = str(error).removeprefix("nats: ").strip(" .'")
    if said.lower().startswith("authorization"):
        return "it refuses this login"
    return said or type(error).__name__
