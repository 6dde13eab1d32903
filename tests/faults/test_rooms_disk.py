"""A disk that fills up under running rooms: everyone is cut off, resumes, and nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.store import find_faults
from tests.faults.doomed import leave_room
from tests.faults.talkers import Gathering
from tests.harness import ask
from tests.process import Process

ROUNDS = 3


@pytest.mark.requirement("room.commit-failure", "room.resume")
async def test_rooms_on_a_full_disk_close_and_go_on_where_they_were_once_there_is_space(tmp_path):
    people = Gathering()
    with Process(tmp_path, FOLKMOOT_RATE_LIMITS="off") as hub:

        def fill() -> None:
            """Leave room for a part of a page."""
            leave_room(hub, (tmp_path / "folkmoot.db-wal").stat().st_size + 100)

        await people.begin(hub.port)
        for _ in range(ROUNDS):
            await people.talk(hub.port, 100, fill)
            # Whoever comes back while it is full can listen; to speak ends it again.
            speakers = (talker for talker in people.talkers if talker.speaks)
            await asyncio.gather(*(one.stay(hub.port, lambda: None) for one in speakers))
            assert (await ask(hub.port, "/health")).status == 200
            leave_room(hub)
        await people.settle(hub.port)
        await people.check(hub.port)
        output = hub.stop()
    assert "a room could not store a message" in output
    assert people.codes.keys() == {1011}
    assert find_faults(tmp_path / "folkmoot.db") == []
