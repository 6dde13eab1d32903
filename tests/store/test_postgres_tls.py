"""PostgreSQL over TLS, with a CA that only the address of the database names.

The server of the tests has no TLS of its own, so something that has it stands before it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from tests import postgres
from tests.certificates import certificate

pytestmark = postgres.needs_own()

SOCKET = ".s.PGSQL.5432"
ASKS_FOR_TLS = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def encrypted(folder: Path) -> AsyncIterator[tuple[int, Path]]:
    """The port of a server with TLS before that of the tests, and its certificate."""
    chain, key = certificate(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain, key)
    where = postgres.SHARED[postgres.NEWEST].folder / SOCKET

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            assert await reader.readexactly(8) == ASKS_FOR_TLS
            writer.write(b"S")
            await writer.drain()
            await writer.start_tls(context)
            there, back = await asyncio.open_unix_connection(str(where))
            await asyncio.gather(pump(reader, back), pump(there, writer))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], chain
    finally:
        server.close()


async def test_a_ca_in_the_address_of_the_database_is_trusted_and_no_other(tmp_path):
    from folkmoot.store.postgres import PostgresStore

    schema = (await postgres.schema_of(tmp_path)).rpartition("search_path=")[2]
    async with encrypted(tmp_path / "server") as (port, chain):
        url = f"postgresql://hub@127.0.0.1:{port}/postgres?search_path={schema}"
        trusted = f"{url}&sslmode=verify-full&sslrootcert={chain}"
        store = await PostgresStore.open(trusted)
        await store.ready()
        await store.close()
        other, _ = certificate(tmp_path / "other")
        with pytest.raises(e.DatabaseUnreachable, match="certificate verify failed"):
            await PostgresStore.open(f"{url}&sslmode=verify-full&sslrootcert={other}")
