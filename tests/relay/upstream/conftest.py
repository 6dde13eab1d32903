"""A scripted server behind the hub."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import settings_of
from tests.relay.upstream.scripted import Running, running, spec


@pytest.fixture
async def there(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    """The server as a backend, in the era of the test; `settings` marks are its settings."""
    era = request.getfixturevalue("era") if "era" in request.fixturenames else "handshake"
    async with running(spec("demo", era, **settings_of(request))) as started:
        yield started
