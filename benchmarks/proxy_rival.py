"""`mcp-proxy`, another proxy, in an environment of its own that is made when it is first needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENT = "mcp-proxy==0.13.0"
FOLDER = Path(__file__).parent.parent / ".bench" / "mcp-proxy-0.13.0"
STAMP = FOLDER / "installed"
SECONDS = 180


class NotInstalled(Exception):
    """Why it cannot be had."""


def installed() -> str:
    """The command, installed first if it is not yet there."""
    if not STAMP.exists():
        shutil.rmtree(FOLDER, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(FOLDER)])
        run([str(FOLDER / "bin" / "pip"), "install", "--quiet", REQUIREMENT])
        STAMP.touch()
    return str(FOLDER / "bin" / "mcp-proxy")


def run(command: list[str]) -> None:
    """Run a step of the installation."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{Path(command[0]).name}: {error}") from None
    if done.returncode:
        told = (done.stderr or done.stdout).strip().splitlines() or ["it failed"]
        raise NotInstalled(f"{Path(command[0]).name}: {told[-1]}")
