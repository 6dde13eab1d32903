"""Clients of a front that has a played server behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import settings_of
from tests.mcp.server.played import Fronted, fronted


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Fronted]:
    """A client that has no session; `settings` marks are the options of the front."""
    async with fronted(**settings_of(request)) as there:
        yield there


@pytest.fixture
async def http(request: pytest.FixtureRequest) -> AsyncIterator[Fronted]:
    """A client that has a session."""
    async with fronted(**settings_of(request)) as there:
        await there.open()
        yield there
