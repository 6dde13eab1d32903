"""The store or the bus of the implementation that a test is run with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from folkmoot.core.ports import Bus, Store
from tests.contract.engines import OpenBus, OpenStore


@pytest.fixture
async def store(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path) as made:
        yield made


@pytest.fixture
async def bus(open_bus: OpenBus) -> AsyncIterator[Bus]:
    async with open_bus() as made:
        yield made
