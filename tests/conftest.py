"""For every test: its own user folders, the Hypothesis profile, the check of requirement marks.

An async test runs on the loop the hub runs on. With `-n` the tests run in several processes.
"""

from __future__ import annotations

import gc
import inspect
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from httpx2._transports import default as http_transports
from hypothesis import settings
from starlette import routing

from tests import nats, postgres
from tests.amounts import times
from tests.interaction.manifest import ManifestError, load
from tests.interaction.marks import COLLECTED, Collected, MarkError, check_marks, why_partial
from tests.stores import NODES, ON_POSTGRES
from tests.workers import Workers

if TYPE_CHECKING:
    from tests.mcp_harness import Meeting

CORE = Path(__file__).parent / "core"
SHARED_MEMORY = Path("/dev/shm")
SPARE_BYTES = 2 << 30
PROFILE_VARIABLE = "FOLKMOOT_TEST_PROFILE"

# The everyday profile tries the same examples in every run, so that a red run can be repeated;
# the deep one looks for new ones and prints how to repeat what it found.
PROFILES = {
    "default": settings(max_examples=20, deadline=None, database=None, derandomize=True),
    "deep": settings(max_examples=times(250), deadline=None, database=None, print_blob=True),
}
for _name, _profile in PROFILES.items():
    settings.register_profile(_name, _profile)

# Each HTTP client would read all certificates of the system again: 30 ms, longer than most tests.
http_transports.create_ssl_context = cache(http_transports.create_ssl_context)
# And each hub would compile the patterns of its 200 routes again.
routing.compile_path = cache(routing.compile_path)


def pytest_addoption(parser: pytest.Parser) -> None:
    # Only this way may an option be a small letter.
    parser.getgroup("folkmoot")._addoption(
        "-n",
        type=int,
        default=0,
        dest="workers",
        metavar="WORKERS",
        help="Run this many at a time.",
    )


def pytest_configure(config: pytest.Config) -> None:
    name = os.environ.get(PROFILE_VARIABLE, "default")
    if name not in PROFILES:
        raise pytest.UsageError(f"{PROFILE_VARIABLE} is {name!r}; use {' or '.join(PROFILES)}.")
    settings.load_profile(name)
    # A shell that starts the suite in the background has it ignore what Ctrl-C sends, and what the
    # suite starts would ignore it too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    keep_files_in_memory()
    leave_the_users_folders(config)
    if config.option.workers:
        config.pluginmanager.register(Workers(config.option.workers, rehearse_hub))


class Pending(NamedTuple):
    """An async fixture, entered in the loop of the test that asks for it."""

    make: Callable[..., Any]
    needs: dict[str, Any]


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> object | None:
    """Leave an async fixture to the test, whose task enters and leaves it."""
    is_generator = inspect.isasyncgenfunction(fixturedef.func)
    if not is_generator and not inspect.iscoroutinefunction(fixturedef.func):
        return None
    if not inspect.iscoroutinefunction(request.node.obj):
        pytest.fail(f"{fixturedef.argname} is for async tests", pytrace=False)
    needs = {name: request.getfixturevalue(name) for name in fixturedef.argnames}
    pending = Pending(
        asynccontextmanager(fixturedef.func) if is_generator else fixturedef.func, needs
    )
    fixturedef.cached_result = (pending, fixturedef.cache_key(request), None)
    return pending


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test in a loop of its own; tasks that are left when it returns are cancelled."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from tests.harness import run

    fixtures = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    limit = pyfuncitem.get_closest_marker("timeout")
    run(with_fixtures(pyfuncitem.obj, fixtures), *(limit.args if limit else ()))
    return True


async def with_fixtures(test: Callable[..., Awaitable[None]], fixtures: dict[str, Any]) -> None:
    """Run a test between the beginnings and the ends of its async fixtures."""
    entered: dict[int, Any] = {}

    async def enter(value: Any) -> Any:
        if not isinstance(value, Pending):
            return value
        if id(value) not in entered:
            needs = {name: await enter(need) for name, need in value.needs.items()}
            made = value.make(**needs)
            is_result = inspect.iscoroutine(made)
            entered[id(value)] = await (made if is_result else stack.enter_async_context(made))
        return entered[id(value)]

    async with AsyncExitStack() as stack:
        await test(**{name: await enter(value) for name, value in fixtures.items()})


@pytest.fixture
def era() -> str:
    """The era of MCP in which people come, where a test does not say."""
    return "handshake"


@pytest.fixture
async def hub(tmp_path: Path, era: str, request: pytest.FixtureRequest) -> AsyncIterator[Meeting]:
    """A running hub, and people who use it through MCP; `settings` marks change its settings."""
    from tests.mcp_harness import meeting

    clock = request.getfixturevalue("clock") if "clock" in request.fixturenames else None
    async with meeting(tmp_path, era, clock, **settings_of(request)) as there:
        yield there


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Any]:
    """A store: of SQLite, or of PostgreSQL where the run asks for it."""
    from tests.stores import open_store

    made = await open_store(tmp_path / "folkmoot.db")
    yield made
    await made.close()


def settings_of(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What `@pytest.mark.settings(...)` says at a test and its module."""
    marks = reversed(list(request.node.iter_markers("settings")))
    return {name: value for mark in marks for name, value in mark.kwargs.items()}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without looking for garbage, of which there is little among so much."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def rehearse_hub() -> None:
    """Run a hub with clients of both eras, if the tests that were collected do."""
    harness = sys.modules.get("tests.mcp_harness")
    if harness is None:
        return
    from tests.harness import run

    async def meet(folder: str, era: str) -> None:
        async with harness.meeting(Path(folder), era) as there:
            person = await there.person("ada")
            await person.client.list_tools()
            await person.call("msg/whoami")

    for era in harness.ERAS:
        with tempfile.TemporaryDirectory() as folder:
            run(meet(folder, era))


def keep_files_in_memory() -> None:
    """Spare the disk what thousands of databases write, where the system has room in memory."""
    if "TMPDIR" in os.environ or not os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        return
    place = os.statvfs(SHARED_MEMORY)
    if place.f_bavail * place.f_frsize > SPARE_BYTES and not place.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(SHARED_MEMORY)
        tempfile.tempdir = None


def leave_the_users_folders(config: pytest.Config) -> None:
    """Let no test see the accounts and keys of whoever runs it; workers inherit the variables."""
    folder = tempfile.TemporaryDirectory(prefix="folkmoot-tests-")
    config.add_cleanup(folder.cleanup)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ[name] = str(Path(folder.name) / name.lower())


def why_left_out(item: pytest.Item) -> str:
    """Why a test is not run on PostgreSQL, if it is not."""
    if not postgres.is_available():
        return postgres.MISSING
    if NODES > 1 and not nats.is_available():
        return nats.MISSING
    if mark := item.get_closest_marker("sqlite"):
        return f"is about SQLite: {mark.args[0]}"
    mark = item.get_closest_marker("one_node") if NODES > 1 else None
    return f"is about one node: {mark.args[0]}" if mark else ""


@pytest.fixture(autouse=NODES > 1)
def chosen_nodes(request: pytest.FixtureRequest) -> None:
    """Choose nodes by the seed of the run."""
    from tests import nodes

    nodes.begin(request.node.nodeid)
    sys.stdout.write(f"To choose the same nodes again: TEST_SEED={nodes.SEED}\n")


def pytest_collection_finish(session: pytest.Session) -> None:
    postgres.start_servers(session.items, session.config)
    nats.start_server(session.items, session.config)


@pytest.hookimpl(tryfirst=True)  # before -m and -k take tests away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    try:
        proved = check_marks(items, load())
    except (ManifestError, MarkError) as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[COLLECTED] = Collected(proved, why_partial(config))
    for item in items:
        if ON_POSTGRES:
            item.add_marker("postgres")
            if NODES > 1:
                item.add_marker("nats")
            if reason := why_left_out(item):
                item.add_marker(pytest.mark.skip(reason=reason))
        if item.path.is_relative_to(CORE):
            item.add_marker("core")
