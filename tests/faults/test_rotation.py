"""The master key changes under load, amid kills and on a full disk; the key in the file opens."""

from __future__ import annotations

import asyncio
import random
import resource
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.keys import format_key, read_key
from folkmoot.store import find_faults, inspect_database
from tests.amounts import times
from tests.faults.doomed import check_starts, doomed, leave_room
from tests.faults.letters import Ledger
from tests.forge.forked import Forked
from tests.harness import ask, run
from tests.operator import ask_socket
from tests.process import STOP_SECONDS, Process, environment

pytestmark = pytest.mark.requirement("rest.rotate-master")

PEOPLE = ("ann", "ben", "cat")
GONE = (e.CommandFailed, e.HubNotRunning)
# Seconds from the sign of a change to the kill: about what a step of it takes.
LONGEST_DELAY = 0.003


def rotate(folder: Path, **arguments: Any) -> dict[str, Any]:
    changed: dict[str, Any] = ask_socket(
        folder / "control.sock", "folkmoot/rotate_key", {"discard": True, **arguments}
    )
    return changed


def key_id(folder: Path) -> str:
    return read_key(folder / "master.key").id


def openers(folder: Path) -> tuple[str, ...]:
    return inspect_database(folder / "folkmoot.db").opened_by


async def write_and_rotate(hub: Process, ledger: Ledger, folder: Path, changes: int) -> None:
    """Change the key so many times while everyone writes, then kill the hub."""
    another = asyncio.Event()

    async def change() -> None:
        for _ in range(changes):
            old = key_id(folder)
            changed = await asyncio.to_thread(rotate, folder)
            assert (changed["old"], changed["new"]) == (old, key_id(folder))
            another.clear()
            await another.wait()
        hub.child.kill()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ledger.write(hub.port, another.set))
        tasks.create_task(change())


def test_the_key_changes_under_load_and_every_acknowledged_message_opens_after_it(tmp_path):
    folder, ledger = tmp_path / "data", Ledger()
    log: list[str] = []
    with doomed(folder, log) as hub:
        run(ledger.begin(hub.port, *PEOPLE))
        first = read_key(folder / "master.key")
        run(write_and_rotate(hub, ledger, folder, 5))
    assert openers(folder) == (key_id(folder),)
    with doomed(folder, log) as hub:
        run(ledger.check(hub.port))
    for secret in (format_key(first), format_key(read_key(folder / "master.key"))):
        assert secret not in "".join(log)


def sign(folder: Path, *, begun: bool) -> int:
    """What changes when a new key waits beside the file, or when it takes the file's place."""
    if begun:
        return len(list(folder.glob(".master.key.*.part")))
    return (folder / "master.key").stat().st_ino


async def rotate_until_killed(
    hub: Process, ledger: Ledger, folder: Path, number: int, delay: float
) -> None:
    """Change the key again and again while everyone writes; kill the hub amid it."""

    async def change() -> None:
        with suppress(*GONE):
            while True:
                await asyncio.to_thread(rotate, folder)

    def kill() -> None:
        begun = number % 2 == 0
        before = sign(folder, begun=begun)
        while sign(folder, begun=begun) == before:
            pass
        time.sleep(delay)
        hub.child.kill()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ledger.write(hub.port))
        tasks.create_task(change())
        tasks.create_task(asyncio.to_thread(kill))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_hub_killed_while_its_key_changes_starts_with_the_key_in_the_file(tmp_path):
    rounds, folder, ledger = times(20), tmp_path / "data", Ledger()
    moments = random.Random(rounds)
    for number in range(rounds):
        with doomed(folder, []) as hub:
            assert openers(folder) == (key_id(folder),)
            run(ledger.begin(hub.port, *PEOPLE))
            delay = moments.uniform(0, LONGEST_DELAY)
            run(rotate_until_killed(hub, ledger, folder, number, delay))
        assert key_id(folder) in openers(folder)
        assert find_faults(folder / "folkmoot.db") == []
    with doomed(folder, []) as hub:
        run(ledger.check(hub.port))
    assert {path.name for path in folder.glob(".master.key.*")} == set()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process")
def test_a_full_disk_leaves_a_key_in_the_file_that_opens_the_database(tmp_path):
    refused = 0
    with Process(tmp_path) as hub:
        wal = tmp_path / "folkmoot.db-wal"
        for frames in range(-1, 12):
            # From no room at all, over some for the key alone, to some for one commit or two.
            room = 0 if frames < 0 else 60 if frames == 0 else wal.stat().st_size + 4200 * frames
            leave_room(hub, room)
            old = key_id(tmp_path)
            try:
                rotate(tmp_path)
            except e.FolkmootError:
                refused += 1
            assert frames > 0 or key_id(tmp_path) == old
            leave_room(hub)
            assert key_id(tmp_path) in openers(tmp_path)
        assert refused >= 2
        assert run(ask(hub.port, "/health/ready")).status == 200
        rotate(tmp_path)
        assert openers(tmp_path) == (key_id(tmp_path),)
        hub.stop()
    assert list(tmp_path.glob(".master.key.*")) == []
    check_starts(tmp_path)


def test_commands_that_change_the_key_at_the_same_moment_end_with_one_key(tmp_path):
    order = ["keys", "rotate-master", "--discard-old", "--data", str(tmp_path)]
    with Process(tmp_path) as hub:
        started = [
            Forked(order, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
            for _ in range(4)
        ]
        said = [child.communicate(timeout=STOP_SECONDS)[1] for child in started]
        codes = [child.returncode for child in started]
        assert codes.count(0) >= 1
        for code, text in zip(codes, said, strict=True):
            assert code == 0 or "is already being rotated" in text, text
        assert openers(tmp_path) == (key_id(tmp_path),)
        hub.stop()
    check_starts(tmp_path)
