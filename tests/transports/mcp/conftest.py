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
async def ann(hub: Meeting) -> Person:
    return await hub.person("ann")


@pytest.fixture
async def bob(hub: Meeting) -> Person:
    return await hub.person("bob")


@pytest.fixture
async def wire(hub: Meeting, ann: Person) -> Wire:
    """Ann's plain HTTP."""
    return await wired(hub, ann)


@pytest.fixture
async def bobs(hub: Meeting, bob: Person) -> Wire:
    """Bob's plain HTTP."""
    return await wired(hub, bob)
