"""Another name for a tool, a resource or a namespace, in all of a project."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.core.errors import InvalidName, ProjectUnusable
from folkmoot.names.generate.layout import find_layout
from folkmoot.names.generate.rename.planning import Renamed, Wishes, plan_rename
from folkmoot.names.lint.source import read_sources
from tests.names.generate.conftest import PYPROJECT, texts, write

Make = Callable[..., Path]

TESTS = """
    from notes.names import make_tool_name

    WIRE = "notes_create_note"
    OTHER = "notes:create_note_now"


    def test_it(client):
        # notes:create_note is the old name
        client.call_tool("notes:create_note", {"text": "create_note"})
        client.call_tool(make_tool_name("create_note"))
        client.call_tool(name=f"notes:{client}")
"""


def plan(root: Path, old: str, new: str, **wishes: object) -> Renamed:
    layout = find_layout(root)
    asked = Wishes()._replace(**wishes)  # type: ignore[arg-type]
    return plan_rename(layout, read_sources([layout.root], layout.found), old, new, asked)


def rename(root: Path, old: str, new: str, **wishes: object) -> Renamed:
    renamed = plan(root, old, new, **wishes)
    renamed.plan.apply()
    return renamed


@pytest.mark.requirement("names.upgrading-md")
def test_a_tool_gets_its_new_name_and_keeps_the_old_one_for_two_releases(project: Make) -> None:
    root = write(project(), {"tests/test_it.py": TESTS, "README.md": "Use `notes:create_note`.\n"})
    renamed = rename(root, "notes:create_note", "notes:add_note")
    after = texts(root)
    server = after["src/notes/server.py"]
    assert (
        '@mcp.tool(name=make_tool_name("add_note"))\n'
        "def add_note(text: str, *, pinned: bool = False) -> str:\n"
        '    """Create a note.\n\n    Tool name: notes:add_note\n    """\n    return text\n\n\n'
        '@mcp.tool(name=make_tool_name("create_note"))\n'
        '@deprecated(since="1.2.0", removed_in="1.4.0", use="notes:add_note")\n'
        "def create_note(text: str, *, pinned: bool = False) -> str:\n"
        '    """Deprecated: use notes:add_note instead. Create a note."""\n'
        "    return add_note(text, pinned=pinned)\n\n\n"
        '@mcp.tool(name="notes:list_notes")\n'
    ) in server
    assert "from notes.names import deprecated, make_resource_uri, make_tool_name\n" in server
    assert after["README.md"] == "Use `notes:add_note`.\n"
    tests = after["tests/test_it.py"]
    assert 'WIRE = "notes_add_note"\nOTHER = "notes:create_note_now"\n' in tests
    assert 'call_tool("notes:add_note", {"text": "create_note"})' in tests
    assert 'make_tool_name("add_note")' in tests
    assert renamed.mentions == ["tests/test_it.py:8"]
    names = {it.name: it.deprecation for it in read_sources([root]).declared}
    assert names["notes:add_note"] is None
    assert names["notes:create_note"] is not None


@pytest.mark.requirement("names.upgrading-md")
def test_the_entry_tells_clients_everything_that_changes_for_them(project: Make) -> None:
    root = write(project(), {"UPGRADING.md": "# Upgrading\n\nRead it.\n\n## 1.1.0: before\n\nX.\n"})
    rename(root, "notes:create_note", "notes:add_note", since="1.3.0", removed_in="2.0.0")
    page = texts(root)["UPGRADING.md"]
    assert page.startswith(
        "# Upgrading\n\nRead it.\n\n## 1.3.0: `notes:create_note` is now `notes:add_note`\n\n"
    )
    assert page.endswith("\n## 1.1.0: before\n\nX.\n")
    for line in (
        'await client.call_tool("notes:create_note", arguments)',
        'await client.call_tool("notes:add_note", arguments)',
        "an error. It is removed in 2.0.0.",
        "| Safe spelling | `notes_create_note` | `notes_add_note` |",
        (
            "| Right at a gateway | `mcp.request.tools/call:notes:create_note` | "
            "`mcp.request.tools/call:notes:add_note` |"
        ),
        "| Tools of [backends.notes] | `create_note` | `add_note` |",
        "folkmoot names rename notes:create_note notes:add_note --clients PATH --diff",
    ):
        assert line in page.splitlines()


@pytest.mark.requirement("names.upgrading-md", "names.namespaces-md")
def test_the_register_follows_the_new_name(project: Make) -> None:
    from folkmoot.names.generate import namespaces_md

    root = project()
    (root / "NAMESPACES.md").write_text(namespaces_md.render(read_sources([root])))
    rename(root, "notes:list_notes", "notes:show_notes")
    page = texts(root)["NAMESPACES.md"]
    assert "| show_notes | notes:show_notes |" in page
    assert "| notes:list_notes | 1.2.0 | 1.4.0 | notes:show_notes |" in page
    assert namespaces_md.differences(read_sources([root]), page) == []


def test_without_an_alias_the_old_name_is_gone(project: Make) -> None:
    root = project()
    rename(root, "notes:create_note", "notes:add_note", alias=False)
    server = texts(root)["src/notes/server.py"]
    assert 'make_tool_name("add_note")' in server
    assert "deprecated" not in server
    assert "def create_note(" in server
    assert "The old name is gone." in texts(root)["UPGRADING.md"]


def test_a_function_that_others_call_keeps_its_python_name(project: Make) -> None:
    root = write(project(), {"src/notes/more.py": "from notes.server import create_note\n"})
    rename(root, "notes:create_note", "notes:add_note")
    server = texts(root)["src/notes/server.py"]
    assert "def create_note(text: str, *, pinned: bool = False) -> str:\n" in server
    assert "def create_note_deprecated(text: str, *, pinned: bool = False) -> str:\n" in server
    assert "    return create_note(text, pinned=pinned)\n" in server


@pytest.mark.parametrize("called", [False, True])
def test_a_tool_that_is_named_by_its_function_is_renamed_too(project: Make, called: bool) -> None:
    bare = """
        from fastmcp import FastMCP

        mcp = FastMCP("notes")


        @mcp.tool
        async def find(text: str, *rest: str, **more: str) -> str:
            return text
    """
    root = write(project(), {"src/notes/server.py": bare})
    if called:
        write(root, {"tests/test_it.py": "from notes.server import find\n"})
    rename(root, "find", "find_note")
    server = texts(root)["src/notes/server.py"]
    names = {it.name: it.deprecation for it in read_sources([root]).declared}
    assert names.keys() == {"find", "find_note"}
    assert names["find_note"] is None
    assert names["find"] is not None
    assert names["find"].use == "find_note"
    passed = f"    return await {'find' if called else 'find_note'}(text, *rest, **more)"
    assert passed in server
    compile(server, "server.py", "exec")


def test_a_resource_gets_a_new_uri_wherever_it_is_made(project: Make) -> None:
    more = 'from notes.names import make_resource_uri\nA = make_resource_uri("pages", "other.md")\n'
    root = write(
        project(), {"src/notes/more.py": more, "tests/a.py": 'U = "notes://pages/daily.md"'}
    )
    rename(root, "notes://pages/daily.md", "notes://reports/today.md")
    after = texts(root)
    assert 'make_resource_uri("reports", "today.md")' in after["src/notes/server.py"]
    assert 'make_resource_uri("pages", "daily.md")' in after["src/notes/server.py"]
    assert after["src/notes/more.py"] == more
    assert after["tests/a.py"] == 'U = "notes://reports/today.md"'


@pytest.mark.requirement("names.upgrading-md")
def test_a_namespace_is_changed_in_every_name(project: Make) -> None:
    tests = TESTS + '    check("notes", expected_namespace="notes")\n    x = data[notes:create]\n'
    tests += '    make_resource_uri("notes", "a", {"q": "b"})\n    make_tool_name("notes")\n'
    pages = {"README.md": "`notes:list_notes`, `notes://x/y`, `notes:`; notes: mine.\n"}
    root = write(project(), {"tests/test_it.py": tests, **pages})
    renamed = rename(root, "notes", "memos")
    after = texts(root)
    assert {it.namespace for it in read_sources([root]).declared} == {"memos"}
    assert 'NAMESPACE = "memos"' in after["src/notes/names.py"]
    assert 'namespace = "memos"' in after["pyproject.toml"]
    assert 'name = "notes"' in after["pyproject.toml"]
    assert 'MCPServer("notes")' in after["src/notes/server.py"]
    assert 'name="memos:list_notes"' in after["src/notes/server.py"]
    tested = after["tests/test_it.py"]
    assert 'WIRE = "memos_create_note"\nOTHER = "memos:create_note_now"\n' in tested
    assert 'f"memos:{client}"' in tested
    assert 'check("notes", expected_namespace="memos")' in tested
    assert "data[notes:create]" in tested
    assert 'make_resource_uri("notes", "a", {"q": "b"})\nmake_tool_name("notes")\n' in tested
    assert after["README.md"] == "`memos:list_notes`, `memos://x/y`, `memos:`; notes: mine.\n"
    assert "| Gateway | `[backends.notes]` | `[backends.memos]` |" in after["UPGRADING.md"]
    assert set(renamed.mentions) >= {"src/notes/server.py:5", "tests/test_it.py:8"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("notes:create_not", "notes:add_note", "did you mean notes:create_note"),
        ("nots", "memos", "did you mean notes"),
        ("notes:create_note", "notes:create_note", "are the same name"),
        ("notes:create_note", "notes:list_notes", "is taken"),
        ("notes:create_note", "notes:AddNote", "Did you mean notes:add_note"),
        ("notes:create_note", "memos:create_note", "Wrong namespace"),
        ("notes://pages/daily.md", "notes://pages/../x", "Invalid resource URI"),
        ("notes", "no", "Invalid namespace"),
        ("notes", "folkmoot", "cannot be taken"),
    ],
)
def test_a_name_that_cannot_be_given_is_refused(
    project: Make, old: str, new: str, why: str
) -> None:
    with pytest.raises((ProjectUnusable, InvalidName), match=why):
        plan(project(), old, new)


def test_what_cannot_be_changed_for_certain_changes_nothing(project: Make) -> None:
    dynamic = """
        from mcp.server import MCPServer
        from notes.names import NAMESPACE
        mcp = MCPServer("notes")
        HALF = "create"
        @mcp.tool(name=f"{NAMESPACE}:" + HALF + "_note")
        def create_note() -> str:
            return ""
    """
    root = write(project(), {"src/notes/server.py": dynamic})
    before = texts(root)
    with pytest.raises(ProjectUnusable, match="cannot be changed for certain"):
        rename(root, "notes:create_note", "notes:add_note", alias=False)
    assert texts(root) == before


def test_without_a_way_to_mark_the_old_name_one_is_asked_for(project: Make) -> None:
    root = project()
    helper = root / "src/notes/names.py"
    helper.write_text(helper.read_text().replace("def deprecated(", "def outdated("))
    with pytest.raises(ProjectUnusable, match="folkmoot names init"):
        plan(root, "notes:create_note", "notes:add_note")
    needing = PYPROJECT.replace('"1.2.0"', '"1.2.0"\n    dependencies = ["folkmoot>=0.1"]')
    write(root, {"pyproject.toml": needing})
    rename(root, "notes:create_note", "notes:add_note")
    assert "from folkmoot.names import deprecated\n" in texts(root)["src/notes/server.py"]


CLIENT = """\
{"allow": ["mcp__hub__notes_create_note", "mcp__hub__notes_create_note_now"],
 "grants": ["mcp.request.tools/call:notes:create_note", "mcp.request.tools/call:notes:create_*"],
 "text": "notes:create_note. xnotes:create_note"}
"""


@pytest.mark.requirement("names.upgrading-md")
def test_the_script_for_clients_changes_both_spellings_and_nothing_else(
    project: Make, tmp_path: Path
) -> None:
    root = project()
    rename(root, "notes:create_note", "notes:add_note")
    (script,) = (root / "migrations").iterdir()
    client = tmp_path / "client.json"
    client.write_text(CLIENT)
    command = [sys.executable, "-S", str(script), str(client)]
    shown = subprocess.run([*command, "--diff"], capture_output=True, text=True, check=True)
    assert '+{"allow": ["mcp__hub__notes_add_note", "mcp__hub__notes_create_note_now"],' in (
        shown.stdout
    )
    assert client.read_text() == CLIENT
    rewritten = runpy.run_path(str(script))["rewrite"]
    rules = runpy.run_path(str(script))["RULES"]
    wanted = (
        CLIENT.replace('hub__notes_create_note"', 'hub__notes_add_note"')
        .replace('call:notes:create_note"', 'call:notes:add_note"')
        .replace('"notes:create_note. ', '"notes:add_note. ')
    )
    assert rewritten(CLIENT, rules, ".json") == wanted
    code = 'x[notes:create_note]  # notes:create_note\ncall("notes:create_note")\n'
    assert rewritten(code, rules, ".py") == (
        'x[notes:create_note]  # notes:add_note\ncall("notes:add_note")\n'
    )
