"""A hub that is besieged: a real process with its settings as they come, and what it takes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.process import environment, serving
from tests.siege.wire import FAILURES, Line, request, rest, rpc

PEER: Final = Path(__file__).parents[2] / "benchmarks" / "proxy_peer.py"
# The servers behind the hub that everyone can use, and the era of each.
BACKENDS: Final = {"oven": "stateless", "mill": "handshake"}
# A server behind the hub that nobody has a right to.
FORBIDDEN: Final = "cellar"
# A server behind the hub that attacks it.
ROGUE: Final = "rogue"
# With an address of its own, a hub takes no request for one of its own machine's.
PUBLIC_URL: Final = "https://hub.test"
ROOMS: Final = ("square", "market")
STOP_SECONDS: Final = 30
START_SECONDS: Final = 30
# How many accounts one address may make in an hour, by default.
ACCOUNTS_PER_ADDRESS: Final = 5


class Sample(NamedTuple):
    """What a hub takes at one moment."""

    # By the monotonic clock, which all processes share.
    at: float
    resident: int
    disk: int
    cpu: float
    descriptors: int


class Account(NamedTuple):
    """Someone who can sign in."""

    handle: str
    token: str
    recovery_code: str


class Host:
    """A hub that runs, and its data folder."""

    def __init__(self, child: subprocess.Popen[str], folder: Path, port: int) -> None:
        self.child = child
        self.folder = folder
        self.port = port

    @property
    def pid(self) -> int:
        """The process of the hub."""
        return self.child.pid

    def sample(self) -> Sample:
        """What the hub takes now; the disk is everything in its folder."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        # Behind the name, which may hold spaces: the twelfth and thirteenth are ticks of a clock.
        counted = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(counted[11]) + int(counted[12])
        return Sample(
            time.monotonic(),
            pages * os.sysconf("SC_PAGE_SIZE"),
            disk_of(self.folder),
            ticks / os.sysconf("SC_CLK_TCK"),
            open_files(self.pid),
        )

    async def register(self, handles: Iterable[str], network: int) -> list[Account]:
        """Make accounts from addresses of 127.`network`.0.0/16, as many each as is allowed."""
        made = []
        for number, handle in enumerate(handles):
            source = f"127.{network}.255.{1 + number // ACCOUNTS_PER_ADDRESS}"
            async with Line(self.port, source=source) as line:
                told = await line.call("msg_register", handle=handle)
            made.append(Account(handle, told["token"], told["recovery_code"]))
        return made

    async def prepare(self, owner: Account) -> None:
        """Make the rooms, and wait until the servers behind the hub are reached."""
        wanted = [f'"{name}_echo"'.encode() for name in BACKENDS]
        async with Line(self.port) as line, asyncio.timeout(START_SECONDS):
            for room in ROOMS:
                answer = await line.ask(rest("POST", "", owner.token, {"name": room}))
                assert answer.status == 201, answer
            listed = b""
            while not all(name in listed for name in wanted):
                listed = (await line.ask(rpc("tools/list", {}, token=owner.token))).body
                await asyncio.sleep(0.1)

    async def is_ready(self) -> bool:
        """Whether the hub says that it works."""
        async with Line(self.port, seconds=START_SECONDS) as line:
            try:
                return (await line.ask(request("GET", "/health/ready"))).status == 200
            except FAILURES:
                return False


def cores() -> tuple[set[int], set[int]]:
    """The processors of the hub, and those of everyone else; the same where there is but one."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def settings_file(rogue: int) -> str:
    """Settings of a hub that strangers reach, with its servers; `rogue` is a port, or 0."""
    tables = [f'public_url = "{PUBLIC_URL}"\nregistration = "open"\n']
    for name, era in {**BACKENDS, FORBIDDEN: "stateless"}.items():
        command = json.dumps([sys.executable, str(PEER), "answer", "-", era])
        everyone = json.dumps(name != FORBIDDEN)
        tables.append(f"[backends.{name}]\ncommand = {command}\neveryone = {everyone}\n")
    if rogue:
        url = f"http://127.0.0.1:{rogue}/mcp"
        tables.append(f'[backends.{ROGUE}]\nurl = "{url}"\neveryone = true\ncall_seconds = 5\n')
    return "\n".join(tables)


@contextmanager
def spawned(
    arguments: list[str], processors: set[int], **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A Python process on these processors that is told to end when this is left."""
    ours = os.sched_getaffinity(0)
    # A child begins where its parent runs.
    os.sched_setaffinity(0, processors)
    command = [sys.executable, *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    os.sched_setaffinity(0, ours)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()
        child.wait()


@contextmanager
def hosting(folder: Path, *, rogue: int = 0, **settings: str) -> Iterator[Host]:
    """Start a hub on a free port and a processor of its own, and stop it in good order."""
    folder.mkdir(mode=0o700)
    config = folder / "config.toml"
    config.write_text(settings_file(rogue))
    config.chmod(0o600)
    arguments, env = ["-m", "folkmoot", *serving(folder)], environment(**settings)
    with (
        (folder.parent / "hub.log").open("w") as log,
        spawned(arguments, cores()[0], stderr=log, env=env) as child,
    ):
        assert child.stdout
        found = (re.search(r"Listening on\s+\S+:(\d+)", line) for line in child.stdout)
        port = next((int(one[1]) for one in found if one), None)
        assert port, f"the hub did not start: {Path(log.name).read_text()}"
        yield Host(child, folder, port)


def open_files(pid: int) -> int:
    """How many files a process has open; 0 where only root may know, as of one without dumps."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    except PermissionError:
        return 0


def disk_of(folder: Path) -> int:
    """The bytes of all files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        total += status.st_size if path.is_file() else 0
    return total


@contextmanager
def helper(module: str, setup: object, *, nice: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Start people or attackers beside the hub; they get their setup on standard input."""
    options = {"stdin": subprocess.PIPE, "cwd": Path(__file__).parents[2]}
    with spawned(["-m", module, str(nice)], cores()[1], **options) as child:
        assert child.stdin
        child.stdin.write(json.dumps(setup) + "\n")
        child.stdin.flush()
        yield child
