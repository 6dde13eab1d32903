"""`folkmoot names doc` and `folkmoot new server`, as people run them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.docs.pages import pages

Run = Callable[..., Ran]

SERVER = '''\
from mcp.server import MCPServer

mcp = MCPServer("my-notes")


@mcp.tool(name="mynotes:create_note")
def create_note(text: str) -> str:
    """Create a note."""
    return text
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "src/my_notes"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "server.py").write_text(SERVER)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "my-notes"\nversion = "1.0.0"\n')
    return tmp_path


@pytest.mark.requirement("names.namespaces-md")
def test_doc_writes_the_register_and_check_tells_when_it_is_out_of_date(
    folkmoot: Run, project: Path
) -> None:
    page = project / "NAMESPACES.md"
    missing = folkmoot("names", "doc", "--check")
    assert (missing.code, missing.err) == (
        1,
        f"folkmoot: error: {page} does not exist. 'folkmoot names doc' writes it.\n",
    )
    assert folkmoot("names", "doc") == Ran(0, f"{page} written.\n", "")
    assert folkmoot("names", "doc") == Ran(0, f"{page} is up to date.\n", "")
    assert folkmoot("names", "doc", "--check").code == 0
    source = project / "src/my_notes/server.py"
    source.write_text(SERVER.replace("Create a note", "Make a note"))
    assert folkmoot("names", "doc", "--check") == Ran(
        1,
        f"{page} is out of date:\n  The tool mynotes:create_note has another description now.\n",
        "",
    )
    assert (
        "+| create_note | mynotes:create_note | Make a note. |"
        in folkmoot("names", "doc", "--diff").out
    )
    assert folkmoot("names", "doc", "--output", "-").out.startswith("# MCP Namespace Registry\n")
    assert folkmoot("names", "doc") == Ran(0, f"{page} changed.\n", "")


def test_doc_leaves_a_page_of_someone_elses_alone(folkmoot: Run, project: Path) -> None:
    (project / "NAMESPACES.md").write_text("Mine.\n")
    refused = folkmoot("names", "doc")
    assert refused.code == 1
    assert "use --force to replace the whole file" in refused.err
    assert (project / "NAMESPACES.md").read_text() == "Mine.\n"
    assert folkmoot("names", "doc", "--force").code == 0


def test_the_tutorial_for_authors_of_servers_shows_what_the_commands_print(folkmoot: Run) -> None:
    blocks = [it.text for it in pages()["docs/tutorials/server.md"].blocks if it.language == "text"]
    made = folkmoot("new", "server", "team-tasks")
    assert like(made.out, blocks[0])


def like(text: str, shown: str) -> bool:
    """Whether a text is what a page shows, where `…` stands for anything."""
    pattern = ".*".join(map(re.escape, shown.rstrip("\n").split("…")))
    return re.fullmatch(pattern, text.rstrip("\n"), re.DOTALL) is not None


def test_new_server_makes_it_and_says_how_to_go_on(folkmoot: Run, tmp_path: Path) -> None:
    made = folkmoot("new", "server", "my-notes", "--namespace", "memos")
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith("Created my-notes, an MCP server with the namespace memos:\n")
    assert "  pytest                                        # its own tests\n" in made.out
    assert max(map(len, made.out.splitlines())) <= 80
    assert 'NAMESPACE = "memos"' in (tmp_path / "my-notes/src/my_notes/names.py").read_text()


WRONG = [
    (("new", "server", "My_Server"), 1, "'My_Server' is no name for a server"),
    (("new", "server", "notes", "--sdk", "other"), 2, "must be mcp or fastmcp, not 'other'"),
    (("new", "server"), 2, "missing argument 'NAME'"),
    (("names", "doc", "nowhere"), 2, "nowhere: there is no such file or folder"),
    (("names", "doc", "--check", "--diff"), 2, "give either --check or --diff"),
    (("names", "doc", "--header", "a=b"), 2, "--header needs the URL of a server"),
    (("names", "doc", ".", "--", "y"), 2, "give either paths, or a URL, or a command"),
    (("names", "doc", "--", "./nowhere"), 7, "cannot be started"),
]


@pytest.mark.parametrize(("words", "code", "told"), WRONG)
def test_a_wrong_use_is_told_in_one_line(
    folkmoot: Run, project: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = folkmoot(*words)
    assert ran.code == code
    assert told in ran.err
    assert len([line for line in ran.err.splitlines() if not line.startswith("Try ")]) == 1
    assert ran.out == ""
