"""Where people meet in rooms, each on a connection of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.clocks import Later
from tests.conftest import settings_of
from tests.interaction.room_client import Square, square
from tests.mcp_harness import Meeting, meeting


@pytest.fixture
async def there(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Square]:
    """A hub, and nobody in it; `settings` marks change its settings."""
    async with square(tmp_path, **settings_of(request)) as here:
        yield here


@pytest.fixture
def era() -> str:
    """The era of MCP in which people come, where a test does not say."""
    return "handshake"


@pytest.fixture
def clock() -> Later:
    """The clock of the hub, where a test asks for one that it sets."""
    return Later()


@pytest.fixture
async def hub(tmp_path: Path, era: str, request: pytest.FixtureRequest) -> AsyncIterator[Meeting]:
    """A running hub, and people who use it through MCP; `settings` marks change its settings."""
    clock = request.getfixturevalue("clock") if "clock" in request.fixturenames else None
    async with meeting(tmp_path, era, clock, **settings_of(request)) as here:
        yield here
