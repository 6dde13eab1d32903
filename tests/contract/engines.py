"""The implementations that must all pass the same suite; another one joins with one entry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from folkmoot.bus import MemoryBus
from folkmoot.core.ports import Bus, Store
from tests import nats, postgres
from tests.pooler import pooling
from tests.store.support import opened

OpenStore: TypeAlias = Callable[[Path], AbstractAsyncContextManager[Store]]
OpenBus: TypeAlias = Callable[[], AbstractAsyncContextManager[Bus]]


@asynccontextmanager
async def on_postgres(folder: Path, version: int = postgres.NEWEST) -> AsyncIterator[Store]:
    from folkmoot.store.postgres import PostgresStore

    store = await PostgresStore.open(await postgres.schema_of(folder, version))
    try:
        yield store
    finally:
        await store.close()


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


BOUNDS = {"max_event": 1024, "max_queued": 4, "max_queued_bytes": 4096}


@asynccontextmanager
async def memory() -> AsyncIterator[Bus]:
    bus = MemoryBus(**BOUNDS)
    try:
        yield bus
    finally:
        await bus.close()


STORES = [
    pytest.param(opened, id="sqlite"),
    pytest.param(on_postgres, id="postgres", marks=postgres.NEEDED),
    pytest.param(partial(on_postgres, version=16), id="postgres-16", marks=postgres.needs_own(16)),
    pytest.param(behind_a_pooler, id="postgres-pooler", marks=postgres.needs_own()),
]
# Each with a limit of 1,024 bytes an event and 4 events in a subscription's queue.
BUSES = [
    pytest.param(memory, id="memory"),
    pytest.param(partial(nats.node, **BOUNDS), id="nats", marks=nats.NEEDED),
]
