"""A scripted server behind the hub."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from folkmoot.relay.upstream.conversation import BackendConversation
from tests.conftest import settings_of
from tests.relay.upstream.scripted import Running, running, spec, talking


def era_of(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("era") if "era" in request.fixturenames else "handshake"


@pytest.fixture
async def conversation(request: pytest.FixtureRequest) -> AsyncIterator[BackendConversation]:
    """One link to the server, in the era of the test."""
    async with talking(era_of(request)) as opened:
        yield opened


@pytest.fixture
async def there(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    """The server as a backend, in the era of the test; `settings` marks are its settings."""
    async with running(spec("demo", era_of(request), **settings_of(request))) as started:
        yield started
