"""The hub of these tests is its HTTP side: `SERVED` of the module and `settings` say what it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest

from tests.conftest import settings_of
from tests.harness import Serving, serving

Dial: TypeAlias = Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def hub(request: pytest.FixtureRequest) -> AsyncIterator[Serving]:
    async with serving(**{**getattr(request.module, "SERVED", {}), **settings_of(request)}) as made:
        yield made


@pytest.fixture
async def dial(hub: Serving) -> AsyncIterator[Dial]:
    """Open a connection and send something; it is closed at the end of the test."""
    writers: list[asyncio.StreamWriter] = []

    async def open_one(
        sent: bytes = b"", source: str = "127.0.0.1"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        local = (source, 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port, local_addr=local)
        writers.append(writer)
        writer.write(sent)
        return reader, writer

    yield open_one
    for writer in writers:
        writer.close()
