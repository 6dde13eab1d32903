"""A play with the owner, a member and an agent in it; what it leaves unsaid fails the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.rooms.machine.playbook import SETTINGS, Play


@pytest.fixture
def stage() -> Iterator[Callable[..., Play]]:
    """Makes plays, with settings and people of a test's own."""
    plays: list[Play] = []

    def make(settings: object = SETTINGS, *present: str) -> Play:
        plays.append(Play(settings, *present))  # type: ignore[arg-type]
        return plays[-1]

    yield make
    for play in plays:
        play.done()


@pytest.fixture
def play(stage: Callable[..., Play]) -> Play:
    return stage(SETTINGS, "alice", "bob", "files")
