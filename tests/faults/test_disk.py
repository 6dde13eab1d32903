"""A disk that is full before the hub begins, or becomes full while it works."""

from __future__ import annotations

import itertools
import resource

import pytest

from folkmoot.cli.output import ExitCode
from folkmoot.store import find_faults
from tests.faults.doomed import check_starts, leave_room
from tests.forge import forked
from tests.process import STOP_SECONDS, Process, environment, serving
from tests.siege.wire import Line, registered


@pytest.mark.parametrize("room", [0, 20, 4096, 20_000])
def test_a_hub_without_room_to_begin_says_so_in_one_line_and_begins_when_there_is(tmp_path, room):
    limits = {resource.RLIMIT_FSIZE: (room, room)}
    ended = forked.run(serving(tmp_path), env=environment(), timeout=STOP_SECONDS, limits=limits)
    assert ended.returncode == ExitCode.DATA
    assert ended.stderr.startswith("folkmoot: error: ")
    assert ended.stderr.count("\n") == 1
    check_starts(tmp_path)


async def test_a_disk_that_fills_up_again_and_again_loses_nothing_but_the_writes_it_refused(
    tmp_path,
):
    with Process(tmp_path) as hub:
        numbers = itertools.count()
        token = (await registered(hub.port, "alice"))["alice"]
        async with Line(hub.port, token) as alice:

            async def writes() -> bool:
                answer = await alice.answer("msg_set_profile", {"status": str(next(numbers))})
                assert answer.status == 200
                return not answer.json()["result"]["isError"]

            for _ in range(20):
                wal = (tmp_path / "folkmoot.db-wal").stat().st_size
                # Room for one more page of the write-ahead log, or for a part of it.
                for room in (wal + 5000, wal + 100, 0):
                    leave_room(hub, room)
                    for _ in range(3):
                        await writes()
                assert not await writes()
                leave_room(hub)
                assert await writes()
        hub.stop()
    assert find_faults(tmp_path / "folkmoot.db") == []
