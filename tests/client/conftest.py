"""A hub whose connections can be cut, and people in its room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from folkmoot.client import Room
from tests.client.hub import SETTINGS, CuttingHub, cutting_hub
from tests.client.support import enter
from tests.conftest import settings_of
from tests.transports.rooms import support
from tests.transports.rooms.support import Town


@pytest.fixture
async def hub(request: pytest.FixtureRequest) -> AsyncIterator[CuttingHub]:
    """A hub with one room; `settings` marks change the room's settings."""
    async with cutting_hub(replace(SETTINGS, **settings_of(request))) as there:
        yield there


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A whole hub."""
    async with support.town(tmp_path) as there:
        yield there


def someone(name: str) -> Any:
    """Someone who is in the room."""

    @pytest.fixture(name=name)
    async def entered(hub: CuttingHub) -> AsyncIterator[Room]:
        async with enter(hub, name) as room:
            yield room

    return entered


alice, bob, carol, files, kim = map(someone, ("alice", "bob", "carol", "files", "kim"))
