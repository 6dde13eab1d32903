"""The HTTP connections to one server that are kept open, and new ones."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import aiohappyeyeballs

from folkmoot.core.entity import Entity
from folkmoot.mcp.client.connection import HttpAnswer, HttpConnection, HttpFailure

if TYPE_CHECKING:
    from folkmoot.core.transport import ConnectionInfo
    from folkmoot.mcp.client.url import HttpUrl

KEEP_ALIVE_SECONDS: Final = 4.0
"""Shorter than the five seconds after which common servers hang up, perhaps on our next request."""
NEXT_ADDRESS_SECONDS: Final = 0.25
"""How long one address of a host is tried before the next one is tried too."""


class HttpConnections(Entity):
    """The connections to one origin, the last one used first; as many as are needed at once.

    Where it listens on a Unix socket, `unix` is that.
    """

    url: HttpUrl
    tls: ssl.SSLContext | None
    seconds: float
    describe: Callable[[asyncio.BaseTransport], ConnectionInfo] | None
    unix: str = ""
    admits: Callable[[str], bool] | None = None
    """Which addresses of the host can be connected to; all where nobody says."""
    _all: set[HttpConnection] = set()
    idle: list[HttpConnection] = []
    """Those that can be used again, the last one used last."""
    sweep: asyncio.TimerHandle | None = None

    def ask(
        self, method: str, head: bytes, body: bytes | None, patience: float | None
    ) -> Awaitable[HttpAnswer]:
        """One exchange over an idle or a new connection."""
        if not self.ready:
            return self._newly(head, body, patience)
        connection = self.idle.pop()
        if method != "POST":
            return self._twice(connection, head, patience)
        return connection.ask(head, body, patience)

    @property
    def ready(self) -> bool:
        """Whether a connection is open that can be used again."""
        while self.idle:
            if self.idle[-1].usable and not self.idle[-1].transport.is_closing():
                return True
            self.idle.pop()
        return False

    async def _newly(self, head: bytes, body: bytes | None, patience: float | None) -> HttpAnswer:
        connection = await self._open()
        return await connection.ask(head, body, patience)

    async def _twice(
        self, connection: HttpConnection, head: bytes, patience: float | None
    ) -> HttpAnswer:
        """What may be done twice is asked again where the server may have hung up just then."""
        try:
            return await connection.ask(head, None, patience)
        except HttpFailure as error:
            if type(error) is not HttpFailure:
                raise
        return await self._newly(head, None, patience)

    def look_soon(self) -> None:
        """Close those that were idle for too long, from now on and while there are any."""
        loop = asyncio.get_running_loop()
        self.sweep = loop.call_later(KEEP_ALIVE_SECONDS / 2, self._close_idle)

    def lost(self, connection: HttpConnection) -> None:
        self._all.discard(connection)
        if connection in self.idle:
            self.idle.remove(connection)

    def close(self) -> None:
        if self.sweep is not None:
            self.sweep.cancel()
            self.sweep = None
        self.idle.clear()
        for connection in tuple(self._all):
            connection.close()

    def _close_idle(self) -> None:
        self.sweep = None
        latest = asyncio.get_running_loop().time() - KEEP_ALIVE_SECONDS / 2
        idle, self.idle = self.idle, []
        for connection in idle:
            if connection.idle_since <= latest:
                connection.close()
            else:
                self.idle.append(connection)
        if self.idle:
            self.look_soon()

    async def _open(self) -> HttpConnection:
        try:
            async with asyncio.timeout(self.seconds):
                return await self._connect()
        except TimeoutError:
            words = "it takes no connection in time"
        except ssl.SSLCertVerificationError as error:
            words = f"its certificate is not trusted ({error.verify_message})"
        except ssl.SSLError as error:
            reason = error.reason or error.strerror or "unknown"
            words = f"no TLS could be agreed on ({reason.lower().replace('_', ' ')})"
        except socket.gaierror:
            words = "its name is not known"
        except OSError as error:
            words = os.strerror(error.errno).lower() if error.errno else "it does not answer"
        except ValueError:
            words = "its name is not known"
        raise HttpFailure(words, unsent=True)

    async def _connect(self) -> HttpConnection:
        loop, url = asyncio.get_running_loop(), self.url
        connection = HttpConnection(self)
        if self.unix:
            transport, _ = await loop.create_unix_connection(lambda: connection, self.unix)
        else:
            found = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
            if self.admits is not None:
                found = [each for each in found if self.admits(str(each[4][0]))]
            if not found:
                raise HttpFailure("its address is not one of the public internet", unsent=True)
            reached = await aiohappyeyeballs.start_connection(
                found, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, interleave=1
            )
            try:
                transport, _ = await loop.create_connection(
                    lambda: connection,
                    sock=reached,
                    ssl=self.tls,
                    server_hostname=url.host if self.tls is not None else None,
                )
            except BaseException:
                reached.close()
                raise
        if self.describe is not None:
            connection.info = self.describe(transport)
        self._all.add(connection)
        return connection
