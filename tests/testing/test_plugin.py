"""The plugin in runs of pytest of its own: a server is recorded once, and not needed after."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.requirement("proxy.replay")

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("small_server.py")

TESTS = """
import asyncio
import sys

import pytest
from mcp import Client, MCPError, StdioServerParameters

SMALL = [sys.executable, "small_server.py"]


def client(tape):
    command, *arguments = tape.command
    return Client(StdioServerParameters(command=command, args=arguments))


async def said(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    return result.content[0].text


@pytest.mark.tape("small", command=SMALL, redact=["$.params.arguments.ssn"])
def test_small(tape):
    async def main():
        async with client(tape) as small:
            assert await said(small, "echo", text="hi", ssn="078-05-1120") == "hi"
            return [await said(small, "count") for _ in range(3)]

    assert asyncio.run(main()) == ["1", "2", "3"]
"""

LATER = """
from test_small import *

del test_small


@pytest.mark.tape("small")
def test_unknown(tape):
    async def main():
        async with client(tape) as small:
            try:
                await said(small, "echo", text="ho")
            except MCPError:
                pass

    asyncio.run(main())


@pytest.mark.tape("missing", command=SMALL)
def test_missing(tape):
    raise AssertionError("never reached")


@pytest.mark.tape("small", command=SMALL)
def test_nothing_to_do_with_tapes():
    pass
"""

ALONE = ("-p", "folkmoot.testing.plugin", "-p", "no:cacheprovider", "--strict-markers")


@pytest.mark.long
def test_a_server_is_recorded_once_and_replayed_after(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    # No plugin of this environment but ours: they cost more than the tests.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    shutil.copy(SERVER, pytester.path)
    pytester.makepyfile(test_small=TESTS)

    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)
    (kept,) = (pytester.path / "tapes").iterdir()
    recorded = kept.read_bytes()
    assert kept.name == "small.jsonl"
    assert b"078-05-1120" not in recorded

    (pytester.path / SERVER.name).unlink()
    pytester.makepyfile(test_later=LATER)
    second = pytester.runpytest_subprocess(*ALONE, "--tapes=replay")
    second.assert_outcomes(passed=2, failed=1, errors=1)
    second.stdout.fnmatch_lines(
        [
            "*There is no tape at *missing.jsonl. Record it with --tapes=record*",
            "*The test made requests that are not on *small.jsonl:",
            '*tools/call echo is not on the tape.*("hi" on the tape, "ho" asked)*',
            "*record it again with --tapes=record.",
        ],
        consecutive=False,
    )
    assert list(kept.parent.iterdir()) == [kept]
    assert kept.read_bytes() == recorded


def test_a_run_without_tapes_loads_nothing_but_the_plugin():
    code = "import folkmoot.testing.plugin, sys; print(*sys.modules, sep='\\n')"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    ours = [name for name in loaded if name.partition(".")[0] == "folkmoot"]
    assert set(ours) == {
        "folkmoot", "folkmoot.core", "folkmoot.core.defaults", "folkmoot.testing",
        "folkmoot.testing.plugin",
    }  # fmt: skip


def test_pytest_finds_the_plugin_by_its_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"folkmoot": "folkmoot.testing.plugin"}
