"""Rooms and the tools that use them, and a hub whose people use REST."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import settings_of
from tests.operations.test_room_tools import Office
from tests.rooms.gathering import QUIET, gathering
from tests.transports.rest.support import House, house


@pytest.fixture
async def office(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    async with gathering(tmp_path, **{"options": QUIET, **settings_of(request)}) as here:
        yield Office(here)


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    async with house(tmp_path, **settings_of(request)) as made:
        yield made
