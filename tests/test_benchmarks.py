"""The benchmarks that are short still run, though what they call of the hub changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.long
@pytest.mark.parametrize("name", ["events", "mail", "path", "store"])
def test_a_quick_run_ends_well(name):
    """Figures are for quiet machines; here it only has to come to its end and print some."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert len(ran.stdout.splitlines()) > 5, ran.stdout
