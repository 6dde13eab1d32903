"""The hub of these tests has a room, `plaza`, which belongs to ann and is open to all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import settings_of
from tests.transports.rooms.support import Person, Seat, Town, town


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Town]:
    clock = request.getfixturevalue("clock") if "clock" in request.fixturenames else None
    async with town(tmp_path, clock, **settings_of(request)) as there:
        yield there


@pytest.fixture
async def ann(hub: Town) -> Person:
    owner = await hub.person("ann")
    await hub.room(owner)
    return owner


@pytest.fixture
async def bob(hub: Town) -> Person:
    return await hub.person("bob")


@pytest.fixture
async def seat(hub: Town, ann: Person) -> AsyncIterator[Seat]:
    async with hub.joined(ann.token) as made:
        yield made


@pytest.fixture
async def other(hub: Town, ann: Person, bob: Person) -> AsyncIterator[Seat]:
    async with hub.joined(bob.token) as made:
        yield made
