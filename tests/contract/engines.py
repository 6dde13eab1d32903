"""The implementations that must all pass the same suite; another one joins with one entry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from folkmoot.bus import MemoryBus
from folkmoot.core.ports import Bus, Store
from folkmoot.store import SqliteStore

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
async def memory() -> AsyncIterator[Bus]:
    bus = MemoryBus(max_event=1024, max_queued=4, max_queued_bytes=4096)
    try:
        yield bus
    finally:
        await bus.close()


STORES: dict[str, OpenStore] = {"sqlite": sqlite}
BUSES: dict[str, OpenBus] = {"memory": memory}
"""Each with a limit of 1,024 bytes an event and 4 events in a subscription's queue."""


def with_store(
    open_store: OpenStore, folder: Path, body: Callable[[Store], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with open_store(folder) as store:
            await body(store)

    asyncio.run(run())


def with_bus(open_bus: OpenBus, body: Callable[[Bus], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_bus() as bus:
            await body(bus)

    asyncio.run(run())
