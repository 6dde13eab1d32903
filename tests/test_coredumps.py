"""The memory of a process that holds keys is not dumped, nor read by its neighbours."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forge.forked import Forked
from tests.process import Process, environment, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux has the switch")

TELLS = """
import ctypes, subprocess, sys
from folkmoot.keys import forbid_dumps
forbid_dumps()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
asked = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
subprocess.run([sys.executable, "-c", asked], check=True)
"""


def cores() -> tuple[int, int]:
    """The limit that lets a process write as large a core file as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    return hard, hard


def dumps(started: subprocess.Popen[str] | Forked, folder: Path, *, wait_for: str) -> bool:
    """Whether a process that is ended by a fault leaves a core file behind."""
    with started as child:
        assert child.stdout
        while wait_for not in (line := child.stdout.readline()):
            assert line, "it ended early"
        child.send_signal(signal.SIGSEGV)
        assert child.wait(60) == -signal.SIGSEGV
    found = list(folder.glob("core*"))
    for core in found:
        core.unlink()
    return bool(found)


def test_a_process_forbids_its_own_dumps_and_not_those_of_what_it_starts():
    told = subprocess.run(
        [sys.executable, "-c", TELLS], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout.split() == ["0", "1"]


def test_a_hub_that_is_ended_by_a_fault_leaves_no_core(tmp_path):
    usual = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "print('here', flush=True); input()"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, cores()),
        text=True,
    )
    if not dumps(usual, tmp_path, wait_for="here"):
        pytest.skip("this system writes no core files here")
    hub = Forked(
        serving(tmp_path / "data"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limits={resource.RLIMIT_CORE: cores()},
    )
    assert not dumps(hub, tmp_path, wait_for="Listening on")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads the memory of all processes")
def test_the_memory_of_a_hub_is_not_its_users_to_read(tmp_path):
    with Process(tmp_path) as hub:
        assert Path(f"/proc/{hub.child.pid}/mem").stat().st_uid == 0
        hub.stop()
