"""The hub of these tests has a backend, and people use it through MCP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import settings_of
from tests.mcp_harness import Meeting, Person
from tests.transports.mcp.gateway_support import Demo, Wire, fronted, wired


@pytest.fixture
def era() -> str:
    return "handshake"


@pytest.fixture
def backend() -> Demo:
    return Demo()


@pytest.fixture
async def hub(
    tmp_path: Path, era: str, backend: Demo, request: pytest.FixtureRequest
) -> AsyncIterator[Meeting]:
    async with fronted(tmp_path, era, backend, **settings_of(request)) as there:
        yield there


@pytest.fixture
async def ann(hub: Meeting) -> AsyncIterator[Person]:
    yield await hub.person("ann")  # noqa: PT022 - async fixtures are generators


@pytest.fixture
async def bob(hub: Meeting) -> AsyncIterator[Person]:
    yield await hub.person("bob")  # noqa: PT022 - async fixtures are generators


@pytest.fixture
async def wire(hub: Meeting, ann: Person) -> AsyncIterator[Wire]:
    """Ann's plain HTTP."""
    yield await wired(hub, ann)  # noqa: PT022 - async fixtures are generators


@pytest.fixture
async def bobs(hub: Meeting, bob: Person) -> AsyncIterator[Wire]:
    """Bob's plain HTTP."""
    yield await wired(hub, bob)  # noqa: PT022 - async fixtures are generators
