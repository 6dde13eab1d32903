"""The accounts of a hub, with the real parts that they are made of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.accounts import support
from tests.accounts.support import World
from tests.conftest import settings_of


@pytest.fixture
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with support.world(tmp_path, **settings_of(request)) as here:
        yield here
