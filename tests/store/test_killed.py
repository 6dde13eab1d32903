from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from folkmoot.core.ports import Tx
from folkmoot.store import find_faults
from tests.store import killed
from tests.store.support import opened


def acknowledged_until_killed(database: Path, acknowledgements: int) -> set[int]:
    """Run the writing program, kill it after so many acknowledgements, and answer all of them."""
    command = [sys.executable, killed.__file__, str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(acknowledgements)]
        child.kill()
        told += child.stdout.readlines()
    return {int(line) for line in told if line.endswith(b"\n")}


async def check_rounds(tmp_path: Path, rounds: int) -> None:
    acknowledged: set[int] = set()
    for round_ in range(rounds):
        acknowledged |= acknowledged_until_killed(tmp_path / "folkmoot.db", 100 + 37 * round_)
        assert find_faults(tmp_path / "folkmoot.db") == []

    async def all_pairs(tx: Tx) -> list[tuple[int, str]]:
        return [(row[0], row[1]) for row in await tx.fetch("SELECT number, half FROM pairs")]

    async with opened(tmp_path) as store:
        found = Counter(await store.read(all_pairs))
    assert set(found.values()) == {1}
    assert {number for number, half in found if half == "a"} == {
        number for number, half in found if half == "b"
    }
    assert acknowledged <= {number for number, _ in found}
    assert len(acknowledged) >= rounds * 100


async def test_every_acknowledged_write_of_a_killed_program_is_there_exactly_once(tmp_path):
    await check_rounds(tmp_path, 3)


@pytest.mark.long
async def test_it_holds_through_many_kills(tmp_path):
    await check_rounds(tmp_path, 30)
