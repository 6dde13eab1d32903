"""A forked command is like one that was started from nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.amounts import few
from tests.forge import forked
from tests.forge.forked import Forked
from tests.process import environment

HAS_PROC = Path("/proc/self/status").exists()
# A command that waits for its input, and then for a hub where there is none.
READS = ["account", "recover", "ada", "--url", "http://127.0.0.1:1"]
# All but the two of the C library, which each process that has threads handles for itself.
SIGNALS = sum(1 << number - 1 for number in signal.valid_signals())
PIPES = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)


def executed(arguments: list[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "folkmoot", *arguments], text=True, **options)


@pytest.mark.parametrize(
    "arguments",
    few([READS, ["config", "show"], ["statu"]]),
    ids=" ".join,
)
def test_a_forked_command_says_and_ends_like_one_started_from_nothing(tmp_path, arguments):
    kept = str(tmp_path / "kept.json")
    names = {"FOLKMOOT_TELEMETRY_SERVICE_NAME": "Grüße", "FOLKMOOT_CREDENTIALS": kept}
    env = environment(COLUMNS="60", **names)
    with executed(arguments, env=env, cwd=tmp_path, **PIPES) as child:
        out, err = child.communicate("a code")
    done = forked.run(arguments, env=env, cwd=tmp_path, input="a code")
    assert (done.returncode, done.stdout, done.stderr) == (child.returncode, out, err)
    assert out + err


def inside(pid: int) -> dict[str, object]:
    """What the system knows of a process, as far as two of a kind share it."""
    root = Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (root / "status").read_text().splitlines())
    return {
        "umask": status["Umask"],
        **{name: int(status[name], 16) & SIGNALS for name in ("SigBlk", "SigIgn", "SigCgt")},
        "cwd": (root / "cwd").readlink(),
        "limits": (root / "limits").read_text(),
        "streams": [(root / f"fd/{number}").readlink().name[:4] for number in range(3)],
    }


def channels(pid: int) -> int:
    """How many pipes and sockets a process has; a library may have opened a file of its own."""
    opened = [file.readlink().name for file in Path(f"/proc/{pid}/fd").iterdir()]
    return sum(name.startswith(("pipe:", "socket:")) for name in opened)


@pytest.mark.skipif(not HAS_PROC, reason="looks at processes through /proc")
def test_the_system_sees_no_difference_but_the_sign_of_life(tmp_path):
    env = environment(FOLKMOOT_CREDENTIALS=str(tmp_path / "kept.json"))
    options: dict[str, Any] = {"env": env, "cwd": tmp_path, **PIPES}
    with Forked(READS, **options) as child, executed(READS, **options) as other:
        # Both come to wait for their input, each at its own pace.
        while inside(child.pid) != inside(other.pid):
            assert child.poll() is None
            assert other.poll() is None
        while channels(child.pid) != 4:
            assert child.poll() is None
