"""The memory of a process that holds keys is not dumped, nor read by its neighbours."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process import Process, environment, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux has the switch")

TELLS = """
import ctypes, subprocess, sys
from folkmoot.coredumps import forbid_dumps
forbid_dumps()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
asked = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
subprocess.run([sys.executable, "-c", asked], check=True)
"""


def allow_cores() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def dumps(command: list[str], folder: Path, *, wait_for: bytes = b"") -> bool:
    """Whether a process that is ended by a fault leaves a core file behind."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=allow_cores,
    ) as child:
        assert child.stdout
        while wait_for and wait_for not in (line := child.stdout.readline()):
            assert line, "it ended early"
        child.send_signal(signal.SIGSEGV)
        assert child.wait(60) == -signal.SIGSEGV
    found = list(folder.glob("core*"))
    for core in found:
        core.unlink()
    return bool(found)


@pytest.mark.requirement("process.not-dumpable")
def test_a_process_forbids_its_own_dumps_and_not_those_of_what_it_starts() -> None:
    told = subprocess.run(
        [sys.executable, "-c", TELLS], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout.split() == ["0", "1"]


@pytest.mark.requirement("process.not-dumpable")
def test_a_hub_that_is_ended_by_a_fault_leaves_no_core(tmp_path: Path) -> None:
    waits = "import sys, time; print('here', flush=True); time.sleep(60)"
    if not dumps(["-c", waits], tmp_path, wait_for=b"here"):
        pytest.skip("this system writes no core files here")
    serve = ["-m", "folkmoot", *serving(tmp_path / "data")]
    assert not dumps(serve, tmp_path, wait_for=b"Listening on")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads the memory of all processes")
@pytest.mark.requirement("process.not-dumpable")
def test_the_memory_of_a_hub_is_not_its_users_to_read(tmp_path: Path) -> None:
    with Process(tmp_path) as hub:
        assert Path(f"/proc/{hub.child.pid}/mem").stat().st_uid == 0
        hub.stop()
