"""The real command, in a process and a folder of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from folkmoot.cli.credentials import Keyring, Login, hub_at, write
from tests.cli.terminal import Terminal
from tests.forge import forked
from tests.forge.forked import Forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


class Ran(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def environment() -> dict[str, str]:
    """Our environment without settings, as wide as a plain terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLKMOOT_")}
    return {**kept, "COLUMNS": "80"}


@pytest.fixture
def folkmoot(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Ran]:
    """Run `folkmoot` in an empty folder; keyword arguments are environment variables."""

    def run(*arguments: str, **variables: str) -> Ran:
        env = {**environment, **variables}
        done = forked.run(arguments, cwd=tmp_path, env=env, timeout=60)
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


class Hub(NamedTuple):
    """A hub that listens, and what it said when it began."""

    process: Forked | subprocess.Popen[str]
    said: str
    url: str

    def stop(self, number: int = signal.SIGINT) -> Ran:
        """Stop it and answer how it ended."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return Ran(self.process.wait(), out, err)


def execute(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Start the command from nothing, for a test whose matter is the start."""
    return subprocess.Popen([sys.executable, "-m", "folkmoot", *arguments], text=True, **options)


@pytest.fixture
def start_hub(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., Hub]]:
    """Start hubs that listen on any free port; those still running at the end are killed."""
    hubs: list[Hub] = []

    def start(*arguments: str, begin: Callable[..., Any] = Forked, **variables: str) -> Hub:
        process = begin(
            ["serve", "--port", "0", *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Press Ctrl-C"):
                break
        url = re.search(r"http://\S+", said)
        assert url is not None, process.communicate()[1]
        hubs.append(Hub(process, said, url.group()))
        return hubs[-1]

    yield start
    for hub in hubs:
        if hub.process.poll() is None:
            hub.stop(signal.SIGKILL)


@pytest.fixture
def on_terminal(tmp_path: Path, environment: Mapping[str, str]) -> Callable[..., str]:
    """Run `folkmoot` on a terminal of 80 columns and answer what appears on it."""

    def run(*arguments: str, **variables: str) -> str:
        return watch(arguments, tmp_path, {**environment, **variables})

    return run


def watch(arguments: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """What a command shows on a terminal, until it ends."""
    leader, follower = os.openpty()
    process = Forked(
        arguments,
        cwd=folder,
        env={**environ, "TERM": "xterm"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            read = os.read(leader, 65536)
        except OSError:
            # Linux tells the end of the last writer as an error.
            break
        if not read:
            break
        shown += read
    os.close(leader)
    process.wait(60)
    return shown.decode().replace("\r\n", "\n")


class Person(NamedTuple):
    """Someone with a command line and credentials of their own, and a terminal if need be."""

    name: str
    hub: str
    folder: Path
    environ: dict[str, str]

    def __call__(self, *arguments: str, given: str | None = None, **variables: str) -> Ran:
        environ = {**self.environ, **variables}
        done = forked.run(arguments, cwd=self.folder, env=environ, input=given, timeout=60)
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str) -> Any:
        """What a command answers to a program."""
        ran = self(*arguments, "--json")
        assert (ran.code, ran.err) == (0, "")
        return json.loads(ran.out)

    def begin(self, *arguments: str, stdin: int | None = subprocess.PIPE) -> Forked:
        """Start a command that stays; all its streams are pipes."""
        return Forked(
            arguments,
            cwd=self.folder,
            env=self.environ,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def at_terminal(
        self, *arguments: str, columns: int = 80, rows: int = 24, **variables: str
    ) -> Terminal:
        """Start a command on a terminal."""
        environ = {**self.environ, "TERM": "xterm-256color", **variables}
        return Terminal(arguments, env=environ, cwd=self.folder, columns=columns, rows=rows)


@pytest.fixture
def person(tmp_path: Path, environment: dict[str, str]) -> Callable[[Hub, str], Person]:
    """Make people who have registered at a hub."""

    def make(hub: Hub, name: str, *options: str) -> Person:
        credentials = {"FOLKMOOT_CREDENTIALS": str(tmp_path / f"{name}.json")}
        made = Person(name, hub.url, tmp_path, {**environment, **credentials})
        if options:
            ran = made("register", name, "--url", hub.url, *options)
            assert (ran.code, ran.err) == (0, "")
        else:
            # What the command does, at a fifth of its cost.
            account = hub_at(hub.url).create_account(name)
            login = Login(hub.url, account.handle, account.token, account.recovery_code)
            write(tmp_path / f"{name}.json", Keyring([login]))
        return made

    return make
