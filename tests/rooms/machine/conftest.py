"""A play with the owner, a member and an agent in it; what it leaves unsaid fails the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.rooms.machine.playbook import SETTINGS, Play


@pytest.fixture
def stage() -> Iterator[Callable[..., Play]]:
    """Makes plays, with people, settings and bounds of a test's own."""
    plays: list[Play] = []

    def make(*present: str, bounds: Mapping[str, Any] | None = None, **settings: Any) -> Play:
        bounded = replace(SETTINGS.bounds, **(bounds or {}))
        plays.append(Play(replace(SETTINGS, bounds=bounded, **settings), *present))
        return plays[-1]

    yield make
    for play in plays:
        play.done()


@pytest.fixture
def play(stage: Callable[..., Play]) -> Play:
    return stage("alice", "bob", "files")
