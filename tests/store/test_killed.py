from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from folkmoot.store import find_faults
from tests.store import killed
from tests.store.support import opened, rows


def acknowledged_until_killed(database: Path, acknowledgements: int) -> set[int]:
    """Run the writing program, kill it after so many acknowledgements, and answer all of them."""
    command = [sys.executable, killed.__file__, str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(acknowledgements)]
        child.kill()
        told += child.stdout.readlines()
    return {int(line) for line in told if line.endswith(b"\n")}


@pytest.mark.parametrize("rounds", [3, pytest.param(30, marks=pytest.mark.long)])
async def test_every_acknowledged_write_of_a_killed_program_is_there_exactly_once(tmp_path, rounds):
    acknowledged: set[int] = set()
    for round_ in range(rounds):
        acknowledged |= acknowledged_until_killed(tmp_path / "folkmoot.db", 100 + 37 * round_)
        assert find_faults(tmp_path / "folkmoot.db") == []
    async with opened(tmp_path) as store:
        found = await store.read(rows("SELECT number, half FROM pairs"))
    halves = [{number for number, half in found if half == which} for which in ("a", "b")]
    assert halves[0] == halves[1] >= acknowledged
    assert len(found) == 2 * len(halves[0])
    assert len(acknowledged) >= rounds * 100
