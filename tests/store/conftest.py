"""A store on a file of its own, and stores on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.store import SqliteStore
from tests import postgres
from tests.conftest import settings_of
from tests.store.support import OpenStore, make_table, opened


@pytest.fixture
async def store(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[SqliteStore]:
    """A store with a table of notes."""
    async with opened(tmp_path, **settings_of(request)) as made:
        await made.write(make_table)
        yield made


@pytest.fixture
async def url(tmp_path: Path) -> str:
    """The address of an empty schema of PostgreSQL."""
    return await postgres.schema_of(tmp_path)


@pytest.fixture
async def open_store(url: str) -> AsyncIterator[OpenStore]:
    """Opens stores on one schema, which are closed with the test."""
    from folkmoot.store.postgres import PostgresStore

    opened: list[Any] = []

    async def start(**options: Any) -> Any:
        opened.append(await PostgresStore.open(url, **options))
        return opened[-1]

    yield start
    for store in opened:
        await store.close()


@pytest.fixture
async def stores(open_store: OpenStore) -> list[Any]:
    """The stores of two hubs on one schema."""
    return [await open_store(), await open_store()]


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Any]:
    """A connection of another program to the schema."""
    import asyncpg

    made = await asyncpg.connect(url)
    yield made
    await made.close()
