"""The store or the bus of the implementation that a test is run with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from folkmoot.core.ports import Bus, Store
from tests.contract.engines import OpenBus, OpenStore
from tests.store.support import make_table


@pytest.fixture
async def store(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Store]:
    """A store with a table of notes."""
    async with open_store(tmp_path) as made:
        await made.write(make_table)
        yield made


@pytest.fixture
async def bus(open_bus: OpenBus) -> AsyncIterator[Bus]:
    async with open_bus() as made:
        yield made
