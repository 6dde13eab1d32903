"""Where people meet in rooms, each on a connection of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.clocks import Later
from tests.conftest import settings_of
from tests.interaction.room_client import Square, square


@pytest.fixture
async def there(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Square]:
    """A hub, and nobody in it; `settings` marks change its settings."""
    async with square(tmp_path, **settings_of(request)) as here:
        yield here


@pytest.fixture
def clock() -> Later:
    """The clock of the hub, where a test asks for one that it sets."""
    return Later()
