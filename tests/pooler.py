"""A pooler in transaction mode: each transaction runs on whichever connection is next.

It does what PgBouncer does in that mode, and no more: it keeps nothing of a client's connection for
the client, so a statement that was prepared in one transaction is unknown in another.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
READY, TERMINATE = b"Z", b"X"
IDLE = b"I"


class Side:
    """One end of a connection: the messages that come, and where to write."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.write = writer.write
        self.close = writer.close
        self.messages: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue()
        self._reader = reader
        self.pump = asyncio.create_task(self._pump())

    async def _pump(self) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await self._reader.readexactly(5)
                rest = await self._reader.readexactly(int.from_bytes(head[1:]) - 4)
                self.messages.put_nowait((head[:1], head + rest))
        self.messages.put_nowait((TERMINATE, b""))


class Pooler:
    """Connections to a server, shared by all clients."""

    def __init__(self, socket: Path, size: int) -> None:
        self._socket = socket
        self._size = size
        self._free: asyncio.Queue[Side] = asyncio.Queue()
        self._greeting = b""
        self._first = asyncio.Lock()
        self._sides: list[Side] = []
        self.transactions = 0

    async def _connect(self, startup: bytes) -> None:
        """Open the connections, as the first client would have its one."""
        for _ in range(self._size):
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
            writer.write(startup)
            server = Side(reader, writer)
            self._sides.append(server)
            greeting, kind = b"", b""
            while kind != READY:
                kind, message = await server.messages.get()
                greeting += message
            self._greeting = greeting
            self._free.put_nowait(server)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be a server for one client."""
        head = await reader.readexactly(4)
        startup = head + await reader.readexactly(int.from_bytes(head) - 4)
        async with self._first:
            if not self._sides:
                await self._connect(startup)
        client = Side(reader, writer)
        self._sides.append(client)
        client.write(self._greeting)
        while (message := await client.messages.get())[0] != TERMINATE:
            server = await self._free.get()
            server.write(message[1])
            await self._relay(client, server)
            self._free.put_nowait(server)
            self.transactions += 1
        client.close()

    async def _relay(self, client: Side, server: Side) -> None:
        """Carry what both say until the transaction is at its end."""
        said = asyncio.create_task(client.messages.get())
        while True:
            answered = asyncio.create_task(server.messages.get())
            await asyncio.wait((said, answered), return_when=asyncio.FIRST_COMPLETED)
            if said.done():
                server.write(said.result()[1])
                said = asyncio.create_task(client.messages.get())
            if not answered.done():
                answered.cancel()
                continue
            kind, message = answered.result()
            client.write(message)
            if kind == TERMINATE or (kind == READY and message[-1:] == IDLE):
                said.cancel()
                return

    def close(self) -> None:
        for side in self._sides:
            side.pump.cancel()
            side.close()


@asynccontextmanager
async def pooling(folder: Path, size: int = 3) -> AsyncIterator[tuple[Pooler, Path]]:
    """A pooler before the server whose socket is in a folder, and the folder of its own."""
    with tempfile.TemporaryDirectory(prefix="pool", dir="/tmp") as own:
        pooler = Pooler(folder / SOCKET, size)
        server = await asyncio.start_unix_server(pooler.serve, str(Path(own) / SOCKET))
        try:
            yield pooler, Path(own)
        finally:
            server.close()
            pooler.close()
