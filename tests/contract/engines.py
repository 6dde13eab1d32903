"""The implementations that must all pass the same suite; another one joins with one entry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from folkmoot.bus import MemoryBus
from folkmoot.core.ports import Bus, Store
from folkmoot.store import SqliteStore
from tests import nats, postgres
from tests.pooler import pooling

OpenStore: TypeAlias = Callable[[Path], AbstractAsyncContextManager[Store]]
OpenBus: TypeAlias = Callable[[], AbstractAsyncContextManager[Bus]]


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Store]:
    store = await SqliteStore.open(folder / "folkmoot.db")
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def on_postgres(folder: Path, version: int = postgres.NEWEST) -> AsyncIterator[Store]:
    from folkmoot.store.postgres import PostgresStore

    store = await PostgresStore.open(await postgres.schema_of(folder, version))
    try:
        yield store
    finally:
        await store.close()


def on_postgres_16(folder: Path) -> AbstractAsyncContextManager[Store]:
    return on_postgres(folder, 16)


@asynccontextmanager
async def behind_a_pooler(folder: Path) -> AsyncIterator[Store]:
    from folkmoot.store.postgres import PostgresStore

    url = await postgres.schema_of(folder)
    place = postgres.SHARED[postgres.NEWEST].folder
    async with pooling(place) as (pooler, own):
        store = await PostgresStore.open(url.replace(str(place), str(own)), prepare=False)
        try:
            yield store
        finally:
            await store.close()
        assert pooler.transactions > 0


@asynccontextmanager
async def memory() -> AsyncIterator[Bus]:
    bus = MemoryBus(max_event=1024, max_queued=4, max_queued_bytes=4096)
    try:
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def on_nats() -> AsyncIterator[Bus]:
    async with nats.node(max_event=1024, max_queued=4, max_queued_bytes=4096) as bus:
        yield bus


STORES = [
    pytest.param(sqlite, id="sqlite"),
    pytest.param(on_postgres, id="postgres", marks=postgres.NEEDED),
    pytest.param(on_postgres_16, id="postgres-16", marks=postgres.needs_own(16)),
    pytest.param(behind_a_pooler, id="postgres-pooler", marks=postgres.needs_own()),
]
BUSES = [
    pytest.param(memory, id="memory"),
    pytest.param(on_nats, id="nats", marks=nats.NEEDED),
]
"""Each with a limit of 1,024 bytes an event and 4 events in a subscription's queue."""
