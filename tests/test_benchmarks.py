"""The benchmarks that are short still run, though what they call of the hub changes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.process import ran

ROOT = Path(__file__).parent.parent


@pytest.mark.long
@pytest.mark.parametrize("name", ["events", "mail", "path", "store"])
def test_a_quick_run_ends_well(name):
    """Figures are for quiet machines; here it only has to come to its end and print some."""
    done = ran(sys.executable, "-m", "benchmarks", "--quick", name, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) > 5, done.stdout
