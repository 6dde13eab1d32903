"""A hub that is killed at any moment, or told to stop before it has begun."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from folkmoot.datafolder import DataFolder
from folkmoot.keys import read_key
from folkmoot.store import find_faults, inspect_database
from tests.amounts import times
from tests.faults.doomed import check_starts
from tests.faults.letters import GONE
from tests.harness import run
from tests.process import STOP_SECONDS, Process, environment, serving
from tests.siege.wire import Line, registered

CLIENTS = 8


async def write_until_killed(hub: Process, handle: str, answers: int) -> int:
    """Have several clients write all the time, kill the hub amid it, and count what it answered."""
    answered = 0
    token = (await registered(hub.port, handle))[handle]

    async def client() -> None:
        nonlocal answered
        async with Line(hub.port, token) as mine:
            with suppress(*GONE):
                while True:
                    await mine.call("msg_set_profile", status=str(answered))
                    answered += 1
                    if answered == answers:
                        hub.child.kill()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(client())
    return answered


def check_kills(folder: Path, rounds: int) -> None:
    known = set()
    for round_ in range(rounds):
        with Process(folder) as hub:
            assert run(write_until_killed(hub, f"writer{round_}", 40 + 17 * round_)) >= 40
            assert hub.ended()[0] == -signal.SIGKILL
        assert find_faults(folder / "folkmoot.db") == []
        known.add(inspect_database(folder / "folkmoot.db").master_key_id)
    assert known == {read_key(folder / "master.key").id}
    check_starts(folder)
    names = {file.name for file in folder.iterdir()}
    assert names == {"folkmoot.db", "master.key", "hub.lock"}


def test_a_hub_killed_while_it_writes_starts_again_whole(tmp_path):
    check_kills(tmp_path, 3)


@pytest.mark.long
def test_a_hub_killed_again_and_again_starts_again_whole(tmp_path):
    check_kills(tmp_path, times(8))


class Start:
    """A hub that tells of every module it loads, so that its start can be stopped anywhere."""

    LOADED = re.compile(r"import time: .*\| +(\S+)$")

    def __init__(self, folder: Path) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "folkmoot", *serving(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            # A shell that runs tests in the background lets its children ignore SIGINT.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        self._said = ""

    def _next(self) -> str:
        """The next module that was loaded; nothing once there is a hub, or an end."""
        assert self._child.stderr
        for said in self._child.stderr:
            if loaded := self.LOADED.match(said.rstrip()):
                return loaded[1]
            self._said += said
            if '"listening"' in said:
                return ""
        return ""

    def until(self, module: str, further: int = 0) -> None:
        """Go on until a module is loaded, and so many after it."""
        while (loaded := self._next()) and loaded != module:
            pass
        while further and self._next():
            further -= 1

    def told(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal, and answer how the process ended and what it said but for its modules."""
        self._child.send_signal(number)
        out, err = self._child.communicate(timeout=STOP_SECONDS)
        lines = err.splitlines(keepends=True)
        said = [line for line in lines if not self.LOADED.match(line.rstrip())]
        return self._child.returncode, self._said + out + "".join(said)


def check_start(folder: Path, number: signal.Signals, module: str, further: int = 0) -> None:
    start = Start(folder)
    start.until(module, further)
    code, said = start.told(number)
    assert "Traceback" not in said
    # While there is no hub yet to hear it, a signal does what it does to any program.
    assert code == 0 or (code in {-number, 128 + number} and "Listening" not in said), said
    DataFolder.open(folder).close()


BEGUN = "folkmoot.cli"
# Modules in the order in which they are loaded: from the first line of ours to the hub's own.
STAGES = (BEGUN, "typer", "folkmoot.cli.program", "apsw", "starlette", "folkmoot.app")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_ends_it_in_good_order(tmp_path, number):
    for module in STAGES:
        check_start(tmp_path, number, module, further=1)
    check_starts(tmp_path)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_of_the_start_ends_it_in_good_order(tmp_path, number):
    chance = random.Random(number)
    for _ in range(times(8)):
        check_start(tmp_path, number, BEGUN, further=chance.randrange(1, 700))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_hub_killed_at_any_moment_of_its_first_start_starts_the_next_time(tmp_path):
    chance = random.Random(9)
    for round_ in range(times(5)):
        folder = tmp_path / str(round_)
        start = Start(folder)
        start.until("folkmoot.app")
        # The folder is made, the key, the database and the sockets: any part of it will do.
        time.sleep(chance.uniform(0, 0.05))
        start.told(signal.SIGKILL)
        check_starts(folder)
