"""A hub for every test of the bridge that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from folkmoot.app import Hub
from tests.bridge.support import Desk, Town
from tests.harness import serving
from tests.mcp_harness import settings


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A hub that tells the truth until it is told to lie."""
    async with Hub(settings(tmp_path / "hub")).running() as hub:
        there = Town(hub, tmp_path)
        async with serving(endpoints={"/mcp": there}, max_body_bytes=1 << 22) as front:
            there.url = f"http://127.0.0.1:{front.port}"
            try:
                yield there
            finally:
                await there.close()


@pytest.fixture
async def ada(town: Town) -> Desk:
    return (await town.people("ada"))[0]


@pytest.fixture
async def bob(town: Town) -> Desk:
    return (await town.people("bob"))[0]
