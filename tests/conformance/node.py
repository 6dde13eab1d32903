"""What the long tiers need of npm: exact versions, installed once into `.node` of the checkout.

python -m tests.conformance.node        installs it
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".node"
LISTS = ("package.json", "package-lock.json")
INSTALL = (
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    "--fetch-retries=1",
    "--fetch-retry-maxtimeout=10000",
)
INSTALL_SECONDS = 600
LEAST_NODE = 22

# Where the packages that carry Node itself have it; only the one for this machine is installed.
BINARIES = "node*/bin/node"

# How npm says that it could not reach its registry.
NOT_REACHED = re.compile(r"\b(E(NOTFOUND|CONN\w+|TIMEDOUT|AI_AGAIN|NETUNREACH|HOSTUNREACH))\b")


class Unavailable(Exception):
    """The packages cannot be had here, and why."""


class Node(NamedTuple):
    """Node, and the folder whose `node_modules` has the packages."""

    binary: str
    folder: Path

    @property
    def modules(self) -> Path:
        """The packages."""
        return self.folder / "node_modules"


def install() -> Node:
    """The packages, installed if they are not yet, or not in these versions."""
    wanted = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in LISTS)).hexdigest()
    # npm begins by removing the folder of packages, and with it the stamp.
    stamp = FOLDER / "node_modules" / ".folkmoot"
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        # No other test process installs at the same time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            for name in LISTS:
                shutil.copyfile(HERE / name, FOLDER / name)
            run_npm()
            stamp.write_text(wanted)
    return Node(find_node(), FOLDER)


def node_or_skip() -> Node:
    """The packages for a test, which is skipped where they cannot be had."""
    found = tried_once()
    if isinstance(found, str):
        pytest.skip(f"needs npm: {found}")
    return found


@cache
def tried_once() -> Node | str:
    """The packages, or why they cannot be had; npm takes its time to find out."""
    try:
        return install()
    except Unavailable as reason:
        return str(reason)


def run_npm() -> None:
    """Install; what keeps npm from its registry is not a failure of ours."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm was not found; it comes with Node.js")
    try:
        done = subprocess.run(
            [npm, *INSTALL],
            cwd=FOLDER,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm did not finish within {INSTALL_SECONDS} seconds") from None
    if (missed := NOT_REACHED.search(done.stderr)) and done.returncode:
        raise Unavailable(f"npm could not reach its registry ({missed[1]})")
    assert done.returncode == 0, f"npm failed:\n{done.stdout}{done.stderr}"


def find_node() -> str:
    """The Node of the packages, or the machine's own if it is new enough."""
    found = [*map(str, (FOLDER / "node_modules").glob(BINARIES)), shutil.which("node")]
    for binary in filter(None, found):
        told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
        version = re.match(r"v(\d+)\.", told.stdout)
        if version and int(version[1]) >= LEAST_NODE:
            return binary
    raise Unavailable(f"no Node.js {LEAST_NODE} or later was found, and npm has none for this kind")


if __name__ == "__main__":
    try:
        install()
    except Unavailable as reason:
        raise SystemExit(f"needs npm: {reason}") from None
