"""The hub of these tests is its HTTP side with WebSockets at `/ws`, as `settings` say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import settings_of
from tests.transports.websocket.support import Client, Open, client, opened


@pytest.fixture
async def hub(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    async with opened(**settings_of(request)) as at:
        yield at


@pytest.fixture
async def caller(hub: Open) -> AsyncIterator[Client]:
    """A client that has not asked for a WebSocket yet."""
    made = await Client.connect(hub.port)
    yield made
    made.leave()


@pytest.fixture
async def one(hub: Open) -> AsyncIterator[Client]:
    """A client whose handshake is done."""
    async with client(hub) as made:
        yield made
