"""The hub of these tests: people ask it over REST, without any library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.accounts.support import SetClock
from tests.conftest import settings_of
from tests.transports.rest.support import House, house


@pytest.fixture
def clock() -> SetClock:
    """The clock of the hub, in a test that asks for it."""
    return SetClock()


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    clock = request.getfixturevalue("clock") if "clock" in request.fixturenames else None
    async with house(tmp_path, clock, **settings_of(request)) as there:
        yield there
