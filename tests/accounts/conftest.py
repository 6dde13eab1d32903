"""The accounts of a hub, with the real parts that they are made of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from folkmoot.accounts import Account, Registered
from tests.accounts import support
from tests.accounts.support import World
from tests.conftest import settings_of


@pytest.fixture
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with support.world(tmp_path, **settings_of(request)) as here:
        yield here


@pytest.fixture
async def new(world: World) -> Registered:
    """Alice, who has just registered, with her secrets."""
    return await world.register("alice")


@pytest.fixture
async def alice(world: World) -> Account:
    return await world.join("alice")


@pytest.fixture
async def bob(world: World) -> Account:
    return await world.join("bobby")


@pytest.fixture
async def viewer(world: World) -> Account:
    return await world.join("viewer")
