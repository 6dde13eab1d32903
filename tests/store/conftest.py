"""A store on a file of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from folkmoot.store import SqliteStore
from tests.conftest import settings_of
from tests.store.support import opened


@pytest.fixture
async def store(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[SqliteStore]:
    async with opened(tmp_path, **settings_of(request)) as made:
        yield made
