"""The hub of these tests: people ask it over REST, without any library."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.telemetry import logs
from tests.accounts.support import SetClock
from tests.conftest import settings_of
from tests.transports.rest.support import ROOMS, Asker, House, house


@pytest.fixture
def clock() -> SetClock:
    """The clock of the hub, in a test that asks for it."""
    return SetClock()


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    clock = request.getfixturevalue("clock") if "clock" in request.fixturenames else None
    async with house(tmp_path, clock, **settings_of(request)) as there:
        yield there


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged, as a hub writes it."""
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.configure("debug", "json", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def someone(handle: str) -> Any:
    """Someone with an account, in a test that asks for them by their handle."""

    @pytest.fixture
    async def made(hub: House) -> Asker:
        return await hub.person(handle)

    return made


ada, ann, bob, cyd, eve, rob = map(someone, ("ada", "ann", "bob", "cyd", "eve", "rob"))


@pytest.fixture
async def planning(ada: Asker) -> str:
    """The path of a room of ada's."""
    await ada.create("planning")
    return f"{ROOMS}/planning"
