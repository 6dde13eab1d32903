"""Mail that was acknowledged outlives a hub that is killed at any moment."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

from folkmoot.store import find_faults
from tests.amounts import times
from tests.faults.doomed import doomed
from tests.faults.letters import GONE, Ledger
from tests.forge import forked
from tests.harness import run
from tests.mail.support import BOOKS
from tests.process import Process, environment
from tests.siege.wire import Line, registered

PEOPLE = ("ann", "ben", "cat", "dan")
# Seconds from an answer to the kill: about what a message takes. Half the time there is none.
LONGEST_DELAY = 0.004


async def write_until_killed(hub: Process, ledger: Ledger, answers: int, chance: float) -> None:
    left = iter(range(answers - 1))
    delay = max(0.0, chance - 0.5) * 2 * LONGEST_DELAY
    loop = asyncio.get_running_loop()

    def answered() -> None:
        if next(left, None) is None:
            loop.call_later(delay, hub.child.kill)

    await ledger.write(hub.port, answered)


def check_books(database: Path) -> None:
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        for what, sql in BOOKS.items():
            assert list(connection.execute(sql)) == [], what


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("durable.answered-is-kept")
def test_every_acknowledged_message_is_there_once_after_many_kills(tmp_path):
    rounds, folder, ledger = times(40), tmp_path / "data", Ledger()
    moments = random.Random(rounds)
    for _ in range(rounds):
        with doomed(folder, []) as hub:
            run(ledger.begin(hub.port, *PEOPLE))
            wanted = moments.randint(15, 60)
            run(write_until_killed(hub, ledger, wanted, moments.random()))
        assert find_faults(folder / "folkmoot.db") == []
        check_books(folder / "folkmoot.db")
    assert len(ledger.acknowledged) >= rounds * 15
    with Process(folder, FOLKMOOT_RATE_LIMITS="off") as last:
        run(ledger.check(last.port))
        last.stop()
    looked = forked.run(["doctor", "--data", str(folder), "--port", "0"], env=environment())
    assert looked.returncode == 0, looked.stdout


async def send_until_killed(hub: Process, token: str, waiting: deque[int], answers: int) -> None:
    """Send what waits, each letter under its own key; what was not answered goes on waiting."""
    answered = 0

    async def sender() -> None:
        nonlocal answered
        with suppress(*GONE):
            async with Line(hub.port, token) as mine:
                while waiting:
                    waiting.append(number := waiting.popleft())
                    key, body = f"key {number}", f"letter {number}"
                    await mine.call("msg_send", to="ben", body=body, idempotency_key=key)
                    if number in waiting:  # several may send the last ones at once
                        waiting.remove(number)
                    answered += 1
                    if answered == answers:
                        hub.child.kill()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(4):
            tasks.create_task(sender())


@pytest.mark.long
@pytest.mark.requirement("message.idempotency-key", "durable.answered-is-kept")
def test_what_is_sent_again_after_each_kill_is_there_once(tmp_path):
    letters, folder, tokens = 200, tmp_path / "data", dict[str, str]()
    waiting, moments = deque(range(letters)), random.Random(9)
    while waiting:
        with doomed(folder, []) as hub:
            tokens = tokens or run(registered(hub.port, "ann", "ben"))
            run(send_until_killed(hub, tokens["ann"], waiting, moments.randint(5, 30)))
            hub.child.kill()
        check_books(folder / "folkmoot.db")

    async def read(port: int) -> list[str]:
        async with Line(port, tokens["ben"]) as mine:
            return [one["body"] async for one in mine.pages("msg_inbox", "messages")]

    with Process(folder, FOLKMOOT_RATE_LIMITS="off") as last:
        assert sorted(run(read(last.port))) == sorted(f"letter {n}" for n in range(letters))
        last.stop()
