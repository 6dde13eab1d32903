"""The hub of these tests: people ask it over REST, without any library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import settings_of
from tests.transports.rest.support import House, house


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    async with house(tmp_path, **settings_of(request)) as there:
        yield there
