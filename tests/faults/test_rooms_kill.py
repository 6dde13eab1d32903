"""Rooms outlive a hub that is killed amid a burst: nothing heard is lost, and nothing is twice."""

from __future__ import annotations

import asyncio
import random
import signal

import pytest

from folkmoot.quotas import differences
from folkmoot.store import find_faults, look_up
from tests.amounts import times
from tests.faults.doomed import doomed
from tests.faults.talkers import Gathering
from tests.harness import run
from tests.process import Process

# Seconds from an answer to the kill: about what a commit takes. Half the time there is none.
LONGEST_DELAY = 0.004


async def talk_until_killed(hub: Process, people: Gathering, answers: int, chance: float) -> None:
    delay = max(0.0, chance - 0.5) * 2 * LONGEST_DELAY
    loop = asyncio.get_running_loop()
    await people.talk(hub.port, answers, lambda: loop.call_later(delay, hub.child.kill))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("room.durable", "room.resume", "wire.id-retry-safe")
def test_what_anyone_heard_is_there_once_after_many_kills(tmp_path):
    rounds, folder, people = times(20), tmp_path / "data", Gathering()
    moments = random.Random(rounds)
    for number in range(rounds):
        with doomed(folder, []) as hub:
            if number == 0:
                run(people.begin(hub.port))
            wanted = moments.randint(100, 200)
            run(talk_until_killed(hub, people, wanted, moments.random()))
        assert find_faults(folder / "folkmoot.db") == []
        assert look_up(folder / "folkmoot.db", differences) == []
    with Process(folder, FOLKMOOT_RATE_LIMITS="off") as last:
        run(people.settle(last.port))
        run(people.check(last.port))
        last.stop()
    assert people.acknowledged >= rounds * 100


@pytest.mark.requirement("room.close-restarting", "room.resume")
def test_a_hub_that_is_stopped_amid_a_burst_disturbs_nobody(tmp_path):
    people = Gathering()
    with Process(tmp_path, FOLKMOOT_RATE_LIMITS="off") as hub:
        run(people.begin(hub.port))
        run(people.talk(hub.port, 300, lambda: hub.signal(signal.SIGTERM)))
        code, output = hub.ended()
        assert code == 0, output
        assert "Traceback" not in output
        assert "error" not in output.lower()
    assert [talker.codes for talker in people.talkers] == [[1012]] * len(people.talkers)
    with Process(tmp_path, FOLKMOOT_RATE_LIMITS="off") as hub:
        run(people.settle(hub.port))
        run(people.check(hub.port))
        hub.stop()
