"""Programs that others wrote, each in an environment of its own, made when it is first needed."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent.parent / ".bench"
SECONDS: Final = 300

MCP_PROXY: Final = "mcp-proxy==0.13.0"
FASTMCP: Final = "fastmcp==4.1.2"
"""Later ones want a newer `certifi` than every mirror has."""


class NotInstalled(Exception):
    """Why it cannot be had."""


def installed(requirement: str, program: str) -> str:
    """The path of a program that comes with a requirement, which is installed if it is not yet."""
    folder = FOLDER / requirement.replace("==", "-")
    stamp = folder / "installed"
    FOLDER.mkdir(exist_ok=True)
    with alone(folder):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
            pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
            # Most modules of a framework are never imported: those that are, are compiled then.
            quick = ["--quiet", "--no-compile", "--disable-pip-version-check"]
            run([*pip, "install", *quick, requirement])
            stamp.touch()
    return str(folder / "bin" / program)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let nobody else install into a folder at the same time."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command: list[str]) -> None:
    """Run a step of the installation."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{Path(command[0]).name}: {error}") from None
    if done.returncode:
        told = (done.stderr or done.stdout).strip().splitlines() or ["it failed"]
        raise NotInstalled(f"{Path(command[0]).name}: {told[-1]}")
