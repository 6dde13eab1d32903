"""No source ends the linter, whatever is in it."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rivals import FASTMCP, NotInstalled, installed
from folkmoot.names.lint.project import FoundProject
from folkmoot.names.lint.runner import LintRun, judge
from folkmoot.names.lint.sources import read_sources

PIECES = st.sampled_from(
    [
        "from fastmcp import FastMCP", "from mcp import types", "import fastmcp as f", "mcp",
        "FastMCP('x')", "mcp = ", "@mcp.tool", "@mcp.tool(", "@mcp.resource('a://b/{c}')",
        "def f(): ...", "async def g(x: FastMCP): ...", "class A(FastMCP):", "    ", "\n", "\r\n",
        "name=", "'shop:buy'", '"ü"', "f'{NAMESPACE}:x'", "NAMESPACE = 'shop'", "make_tool_name(",
        "'x'", ")", ",", "*a", "**k", "types.Tool(name=", "mcp.add_tool(f)", "mcp.tool(f)(g)",
        "self.mcp", "if x:", "else:", "try:", "except:", "match x:", "case _:", "lambda: mcp",
        "from . import *", "from ..x import y", "import a.b.c", "x = y = x", "(a, b) = b, a",
        "return", "yield", "@deprecated(since=1)", "# folkmoot: ignore[", "\ufeff", "\0", "\x0c",
        ";", " ", "Tool.from_function(f)", "mcp.mount(mcp)", "# coding: utf-16", "\\\n", "é",
    ]
)  # fmt: skip


def look(raw: bytes) -> LintRun:
    """Lint a source and plan what can be mended."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pyproject.toml").write_text("[tool.folkmoot.names]\nnamespace = 'shop'\n")
        (root / "server.py").write_bytes(raw)
        linting = LintRun([root])
        for change in linting.fixes().changes:
            ast.parse(change.after.removeprefix("\ufeff"))
        return linting


@given(st.lists(PIECES, max_size=25).map("".join))
def test_pieces_of_python_in_any_order_never_end_the_linter(text: str) -> None:
    look(text.encode("utf-8", "surrogatepass"))


STATEMENTS = st.sampled_from(
    [
        "@mcp.tool\ndef f(): ...", "@mcp.tool()\nasync def f(x): 'ü'", "mcp.tool(f)", "mcp = mcp",
        "@mcp.tool(tags={'é'})\ndef g(): ...", "f = mcp.tool", "@f\ndef h(): ...",
        "@mcp.prompt('a b')\ndef p(): ...", "mcp.tool(name='b')(f); 'ä'; mcp.tool(name='c')(f)",
        "if mcp:\n    @mcp.tool('x_y')\n    def q(): ...", "NAMESPACE = f = NAMESPACE",
        "class A:\n    @mcp.tool\n    def m(self): ...", "mcp.add_tool(A.m, name=A.m)",
        "@mcp.resource(f'{NAMESPACE}://{A}')\ndef r(): ...", "del mcp", "from x import *",
    ]
)  # fmt: skip


@given(st.lists(STATEMENTS, max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_every_source_that_parses_is_looked_at_whole_and_mended_into_one(
    statements: list[str], end: str
) -> None:
    text = "from fastmcp import FastMCP\nmcp = FastMCP('x')\n" + "\n".join(statements) + "\n"
    linting = look(text.replace("\n", end).encode())
    assert linting.project.files == ["server.py"]
    assert linting.project.unreadable == []


@given(st.binary(max_size=200))
def test_no_bytes_end_the_linter(raw: bytes) -> None:
    look(raw)


@pytest.mark.long
def test_the_source_of_fastmcp_is_read_whole() -> None:
    try:
        python = Path(installed(FASTMCP, "python"))
    except NotInstalled as error:
        pytest.skip(str(error))
    [package] = python.parent.parent.glob("lib/python*/site-packages/fastmcp")
    project = read_sources([package], FoundProject(root=package.parent))
    assert len(project.files) > 200
    assert project.unreadable == []
    names = {(each.kind, each.name) for each in project.declared}
    assert ("tool", "echo_tool") in names
    found = {each.rule for each in judge(project, FoundProject(root=package).config)}
    assert "missing-namespace" in found
