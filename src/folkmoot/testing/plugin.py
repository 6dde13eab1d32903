"""The pytest plugin: record a test's server once, replay it after, fail on what is not on the tape.

@pytest.mark.tape("weather", command=["python", "server.py"])
def test_forecast(tape):
    ...  # connect an MCP client to tape.command or tape.url
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from folkmoot.testing.recorded import RecordedServer

MARKER = (
    "tape(name, command=None, url=None, mode='arguments', ignore=(), redact=()): the MCP server "
    "that the fixture `tape` records and replays"
)
CHOICES = ("auto", "record", "replay")

_failed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let it be said whether tapes are recorded."""
    parser.getgroup("folkmoot").addoption(
        "--tapes",
        choices=CHOICES,
        default="auto",
        help="Tapes of MCP servers: re-record all (record), only replay (replay, as in CI), "
        "or replay existing ones and record the others (auto, the default).",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> Iterator[RecordedServer]:
    """The MCP server of a test, as its marker names it: recorded, or replayed from its tape."""
    from folkmoot.testing.recorded import Marked, RecordedServer

    node = request.node
    with _failing():
        marked = Marked.of(node.get_closest_marker("tape"), node.path.parent / "tapes")
        temporary = request.getfixturevalue("tmp_path_factory").mktemp("tape")
        made = RecordedServer(marked, request.config.getoption("--tapes"), temporary)
    try:
        yield made
    finally:
        made.stop()
    if made.mode == "record" and not node.stash.get(_failed, False):
        with _failing():
            made.keep()


@contextmanager
def _failing() -> Iterator[None]:
    """Fail the test with the sentence of an error, without where it came from."""
    from folkmoot.core import errors as e
    from folkmoot.testing.recorded import TapeUnusable

    told = ""
    try:
        yield
    except (TapeUnusable, e.FolkmootError) as error:
        told = str(error)
    if told:
        pytest.fail(told, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that made a request missing from its tape, even if its client hid the error."""
    made = getattr(item, "funcargs", {}).get("tape")
    missed = getattr(made, "missed", None)
    try:
        result = yield
    except BaseException:
        item.stash[_failed] = True
        if missed is not None and (told := missed()):
            item.add_report_section("call", "tape", told)
        raise
    if missed is not None and (told := missed()):
        item.stash[_failed] = True
        pytest.fail(told, pytrace=False)
    return result
