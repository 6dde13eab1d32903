"""The real command, in a process and a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.app import Hub as RealHub
from folkmoot.cli import program
from folkmoot.cli.credentials import Keyring, Login, hub_at, write
from folkmoot.cli.output import ExitCode
from folkmoot.rooms import read_spec, visitor_of
from folkmoot.settings import load
from tests.cli.terminal import Terminal
from tests.forge import forked
from tests.forge.forked import Forked
from tests.harness import run

# The commands, built once for all tests.
BUILT = cache(program.get_command)
# What runs a command, and what of it a test asks for.
Run = Callable[..., Any]


class Ran(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


class Cli(NamedTuple):
    """A command line in a folder, and the account whose credentials it has, if there is one.

    Keyword arguments of its methods are environment variables.
    """

    folder: Path
    environ: dict[str, str]
    name: str = ""
    hub: str = ""

    def __call__(self, *arguments: str, given: str | bytes | None = None, **variables: str) -> Ran:
        env = {**self.environ, **variables}
        done = forked.run(arguments, cwd=self.folder, env=env, input=given, timeout=60)
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def someone(self, name: str) -> Cli:
        """The command line of someone with credentials of their own."""
        file = str(self.folder / f"{name}.json")
        return Cli(self.folder, {**self.environ, "FOLKMOOT_CREDENTIALS": file}, name)

    def says(self, *arguments: str, **variables: str) -> str:
        """What a command prints that ends well and warns of nothing."""
        ran = self(*arguments, **variables)
        assert (ran.code, ran.err) == (0, ""), ran
        return ran.out

    def json(self, *arguments: str, **variables: str) -> Any:
        """What a command answers to a program."""
        return json.loads(self.says(*arguments, "--json", **variables))

    def fails(
        self, *arguments: str, told: str, code: int = ExitCode.FAILED,
        given: str | None = None, **variables: str,
    ) -> Ran:  # fmt: skip
        """Run a command that prints nothing but why it fails."""
        ran = self(*arguments, given=given, **variables)
        assert (ran.code, ran.out) == (code, ""), ran
        assert told in ran.err, ran
        return ran

    def begin(self, *arguments: str, stdin: int = subprocess.PIPE, **variables: str) -> Forked:
        """Start a command that stays."""
        pipe = subprocess.PIPE
        env = {**self.environ, **variables}
        return Forked(arguments, cwd=self.folder, env=env, stdin=stdin, stdout=pipe, stderr=pipe)

    def at_terminal(
        self, *arguments: str, columns: int = 80, rows: int = 24, **variables: str
    ) -> Terminal:
        """Start a command on a terminal."""
        environ = {**self.environ, "TERM": "xterm-256color", **variables}
        return Terminal(arguments, env=environ, cwd=self.folder, columns=columns, rows=rows)

    def shown(self, *arguments: str, columns: int = 80, **variables: str) -> str:
        """All that a command writes on a terminal, until it ends."""
        with self.at_terminal(*arguments, columns=columns, TERM="xterm", **variables) as terminal:
            terminal.end()
            return terminal.raw.decode().replace("\r\n", "\n")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command without settings in an empty folder, as wide as a plain terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLKMOOT_")}
    homes = {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    return Cli(tmp_path, {**kept, **homes, "COLUMNS": "80"})


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command in this process, in a folder of its own: it is quicker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(program, "get_command", BUILT)
    return lambda *arguments: Ran(program.run(list(arguments)), *capsys.readouterr())


async def nothing(_: RealHub) -> None:
    pass


def let_run(
    folder: Path, act: Callable[[RealHub], Awaitable[None]] = nothing, **environ: str
) -> None:
    """Let a hub run on a data folder while something is done with it."""

    async def main() -> None:
        options = {"data": str(folder), "port": "0", "rate_limits": "off"}
        async with RealHub(load(None, options=options, environ=environ).settings).running() as hub:
            await act(hub)

    run(main())


@pytest.fixture(scope="session")
def ran_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a hub that ran once, with alice, an agent and a room."""
    folder = tmp_path_factory.mktemp("hub") / "data"

    async def settle(hub: RealHub) -> None:
        alice = (await hub.accounts.register("alice")).account
        await hub.accounts.register("robot", account_type="agent")
        square = read_spec({"name": "square", "access": "private"})
        await hub.rooms.create(visitor_of(alice), square)

    let_run(folder, settle)
    return folder


@pytest.fixture
def data(tmp_path: Path, ran_once: Path) -> Path:
    """A copy of it where commands look by themselves."""
    return shutil.copytree(ran_once, tmp_path / ".folkmoot", copy_function=shutil.copy)


class Hub(NamedTuple):
    """A hub that listens, and what it said when it began."""

    process: Forked | subprocess.Popen[str]
    said: str
    url: str

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def stop(self, number: int = signal.SIGINT) -> Ran:
        """Stop it and answer how it ended."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return Ran(self.process.wait(), out, err)


StartHub = Callable[..., Hub]


def execute(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Start the command from nothing, for a test whose matter is the start."""
    return subprocess.Popen([sys.executable, "-m", "folkmoot", *arguments], text=True, **options)


@pytest.fixture
def start_hub(cli: Cli) -> Iterator[StartHub]:
    """Start hubs that listen on any free port; those still running at the end are killed."""
    hubs: list[Hub] = []

    def start(*arguments: str, begin: Callable[..., Any] = Forked, **variables: str) -> Hub:
        pipe, env = subprocess.PIPE, {**cli.environ, **variables}
        streams = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
        process = begin(["serve", "--port", "0", *arguments], cwd=cli.folder, env=env, **streams)
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
def hub(start_hub: StartHub) -> Hub:
    """A hub without rate limits."""
    return start_hub(FOLKMOOT_RATE_LIMITS="off")


Person = Callable[..., Cli]


def registered(cli: Cli, hub: Hub, name: str, *options: str) -> Cli:
    """Someone who has registered at a hub."""
    made = cli.someone(name)._replace(hub=hub.url)
    if options:
        made.says("register", name, "--url", hub.url, *options)
    else:
        # What the command does, at a fifth of its cost.
        account = hub_at(hub.url).create_account(name)
        login = Login(hub.url, account.handle, account.token, account.recovery_code)
        write(Path(made.environ["FOLKMOOT_CREDENTIALS"]), Keyring([login]))
    return made


@pytest.fixture
def person(hub: Hub, cli: Cli) -> Person:
    """Make people who have registered at the hub."""
    return partial(registered, cli, hub)


@pytest.fixture
def ada(person: Person) -> Cli:
    return person("ada")


@pytest.fixture
def bob(person: Person) -> Cli:
    return person("bob")


@pytest.fixture
def room(ada: Cli, bob: Cli) -> None:
    """Ada's room `planning`, which is empty."""
    assert ada("room", "create", "planning").code == 0
