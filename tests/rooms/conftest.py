"""The rooms of a hub with people who use them, on one node or several; a store with accounts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.rooms import Visitor
from tests.conftest import settings_of
from tests.rooms.gathering import Gathering, gathering
from tests.rooms.nodes import Member, running_nodes
from tests.rooms.storehouse import Storehouse, opened


@pytest.fixture
async def hub(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Gathering]:
    """A hub's rooms, and `ann` and `bob`; `settings` marks change how it is opened."""
    async with gathering(tmp_path, **settings_of(request)) as there:
        there.ann, there.bob = await there.people("ann", "bob")
        yield there


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Storehouse]:
    async with opened(tmp_path) as house:
        yield house


PLACES = ("one", "two", "three")


@pytest.fixture
async def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[list[Member]]:
    """As many nodes as the test names, or a `settings` mark says; maybe on `servers` of its own."""
    named = [at for at, place in enumerate(PLACES, 1) if place in request.fixturenames]
    how: dict[str, Any] = {"count": max(named, default=1), **settings_of(request)}
    if "servers" in request.fixturenames:
        how["urls"] = [server.url for server in request.getfixturevalue("servers")]
    async with running_nodes(tmp_path, **how) as there:
        yield there


def member(place: str) -> Any:
    """One of the nodes."""

    @pytest.fixture(name=place)
    async def found(nodes: list[Member]) -> Member:
        return nodes[PLACES.index(place)]

    return found


def someone(handle: str) -> Any:
    """Someone who uses the nodes."""

    @pytest.fixture(name=handle)
    async def registered(nodes: list[Member]) -> Visitor:
        return (await nodes[0].people(handle))[0]

    return registered


one, two, three = map(member, PLACES)
ann, bob, cyd = map(someone, ("ann", "bob", "cyd"))
