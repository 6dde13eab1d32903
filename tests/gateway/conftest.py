"""A gateway on a store of its own, pins, and the rights of a hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from folkmoot.gateway.pins import Pins
from tests.conftest import settings_of
from tests.gateway.rights_support import FILES, Office, office, spec
from tests.gateway.scripted import Behind, behind
from tests.gateway.support import pinning


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Behind]:
    """A gateway with the service before it, and no backend yet."""
    async with behind(tmp_path) as made:
        yield made


@pytest.fixture
async def pins(tmp_path: Path) -> AsyncIterator[Pins]:
    async with pinning(tmp_path) as (made, _):
        yield made


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    """Accounts and their rights, with the backend `files` or what a `settings` mark gives."""
    async with office(tmp_path, **{"given": spec(FILES), **settings_of(request)}) as made:
        yield made
