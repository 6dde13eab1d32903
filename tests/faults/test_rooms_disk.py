"""A disk that fills up under running rooms: everyone is cut off, resumes, and nothing is lost."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from folkmoot.store import find_faults
from tests.faults.talkers import Gathering
from tests.harness import ask
from tests.process import Process

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
ROUNDS = 3


class Full:
    """Fills the disk of a hub, and makes room on it again."""

    def __init__(self, hub: Process, folder: Path) -> None:
        self._pid = hub.child.pid
        self._wal = folder / "folkmoot.db-wal"

    def fill(self) -> None:
        """Leave room for a part of a page."""
        room = self._wal.stat().st_size + 100
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (room, UNLIMITED[1]))

    def clear(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, UNLIMITED)


@pytest.mark.requirement("room.commit-failure", "room.resume")
async def test_rooms_on_a_full_disk_close_and_go_on_where_they_were_once_there_is_space(tmp_path):
    people = Gathering()
    with Process(tmp_path, FOLKMOOT_RATE_LIMITS="off") as hub:
        disk = Full(hub, tmp_path)
        await people.begin(hub.port)
        for _ in range(ROUNDS):
            await people.talk(hub.port, 100, disk.fill)
            # Whoever comes back while it is full can listen; to speak ends it again.
            await asyncio.gather(*(one.stay(hub.port, lambda: None) for one in people.speakers))
            assert (await ask(hub.port, "/health")).status == 200
            disk.clear()
        await people.settle(hub.port)
        await people.check(hub.port)
        output = hub.stop()
    assert "a room could not store a message" in output
    assert {code for talker in people.talkers for code in talker.codes} == {1011}
    people.check_nobody_left()
    assert find_faults(tmp_path / "folkmoot.db") == []
