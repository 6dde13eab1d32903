"""The suite's own workers: every test is run once, and what becomes of it is told."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis.configuration import storage_directory

from tests import workers
from tests.process import ran

CONFTEST = """
import threading, time
from workers import Workers

def rehearse():
    # It is about to end when the workers are forked.
    threading.Thread(target=time.sleep, args=(0.2,)).start()

def pytest_configure(config):
    config.pluginmanager.register(Workers(2, rehearse))
"""
MODULE = """
import os, signal, pytest
from pathlib import Path

RAN = Path("ran")

@pytest.fixture(scope="module")
def shared():
    yield os.getpid()
    with RAN.open("a") as file:
        file.write("torn down\\n")

@pytest.mark.parametrize("number", range(40))
def test_number(number, shared, tmp_path):
    print("said by", number, os.getpid())
    (tmp_path / "own").touch(exist_ok=False)
    assert shared == os.getpid()
    with RAN.open("a") as file:
        file.write(f"{number}\\n")
    FAULT
"""


def run(folder: Path, fault: str, *arguments: str) -> tuple[int, str, list[str]]:
    """Run forty tests, of which some have a fault; what was said, and what the tests wrote."""
    shutil.copy(workers.__file__, folder / "workers.py")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_numbers.py").write_text(MODULE.replace("FAULT", fault))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Hypothesis makes its tables of Unicode, which takes longer than all else, where it finds none.
    tables = {"HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory().path.absolute())}
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments)
    done = ran(*command, cwd=folder, env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **tables})
    return done.returncode, done.stdout + done.stderr, (folder / "ran").read_text().splitlines()


def test_each_test_is_run_once_and_failures_and_deaths_are_told(tmp_path):
    fault = (
        "assert number != 3\n"
        "    if number in (5, 20): os.kill(os.getpid(), signal.SIGKILL)\n"
        "    if number == 7: pytest.skip('seven is odd')"
    )
    status, output, wrote = run(tmp_path, fault, "-rA")
    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "3 failed, 36 passed, 1 skipped" in output
    assert "assert 3 != 3" in output
    assert output.count("The process that ran this test was ended by signal 9.") >= 2
    assert "seven is odd" in output
    assert sorted(int(line) for line in wrote if line.isdecimal()) == list(range(40))
    # What each of them printed is its own, and nobody else's.
    assert output.count("said by 4 ") == 1
