"""`folkmoot names doc` and `folkmoot new server`, as people run them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.docs.following import fits
from tests.docs.pages import pages

BACKEND = str(Path(__file__).with_name("small_backend.py"))


def offer(project: Path, description: str) -> None:
    """What the server of the project lists from now on."""
    tool = {"name": "mynotes:create_note", "description": description, "inputSchema": {}}
    (project / "lists.json").write_text(json.dumps({"tools": [tool]}))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    command = json.dumps([sys.executable, BACKEND, "lists.json"])
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "my-notes"\nversion = "1.0.0"\n\n'
        f"[tool.folkmoot.names]\ncommand = {command}\n"
    )
    offer(tmp_path, "Create a note.")
    return tmp_path


@pytest.mark.requirement("names.namespaces-md")
def test_doc_writes_the_register_and_check_tells_when_it_is_out_of_date(cli, project):
    page = project / "NAMESPACES.md"
    missing = cli("names", "doc", "--check")
    assert (missing.code, missing.err) == (
        1,
        f"folkmoot: error: {page} does not exist. 'folkmoot names doc' writes it.\n",
    )
    assert cli("names", "doc") == Ran(0, f"{page} written.\n", "")
    assert cli("names", "doc") == Ran(0, f"{page} is up to date.\n", "")
    assert cli("names", "doc", "--check").code == 0
    offer(project, "Make a note.")
    assert cli("names", "doc", "--check") == Ran(
        1,
        f"{page} is out of date:\n  The tool mynotes:create_note has another description now.\n",
        "",
    )
    assert (
        "+| create_note | mynotes:create_note | Make a note. |" in cli("names", "doc", "--diff").out
    )
    assert cli("names", "doc", "--output", "-").out.startswith("# MCP Namespace Registry\n")
    assert cli("names", "doc") == Ran(0, f"{page} changed.\n", "")


def test_doc_leaves_a_page_of_someone_elses_alone(cli, project):
    (project / "NAMESPACES.md").write_text("Mine.\n")
    cli.fails("names", "doc", told="use --force to replace the whole file")
    assert (project / "NAMESPACES.md").read_text() == "Mine.\n"
    assert cli("names", "doc", "--force").code == 0


def test_doc_asks_any_server_and_reads_any_file(cli, project):
    page = project / "NAMESPACES.md"
    (project / "docs").mkdir()
    (project / "other.json").write_text('{"tools": [{"name": "memos:create_memo"}]}')
    # The namespace that the project has elsewhere is not that of this server.
    command = ("--namespace", "memos", "--", sys.executable, BACKEND, "other.json")
    assert cli("names", "doc", *command) == Ran(0, f"{page} written.\n", "")
    written = page.read_text()
    assert "| create_memo | memos:create_memo |  | 1.0.0 |" in written
    assert cli("names", "doc", "other.json") == Ran(0, f"{page} is up to date.\n", "")
    assert cli("names", "doc", "other.json", "-o", "docs/N.md").out == "docs/N.md written.\n"
    assert (project / "docs/N.md").read_text() == written


def test_a_page_keeps_its_permissions_and_a_link_stays_a_link(cli, project):
    (project / "docs").mkdir()
    real, page = project / "docs/names.md", project / "NAMESPACES.md"
    real.touch(0o640)
    page.symlink_to(real)
    assert cli("names", "doc") == Ran(0, f"{page} changed.\n", "")
    assert page.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "mynotes:create_note" in real.read_text()


def test_the_tutorial_for_authors_of_servers_shows_what_the_commands_print(cli):
    blocks = [it.text for it in pages()["docs/tutorials/server.md"].blocks if it.language == "text"]
    assert fits(blocks[0], cli("new", "server", "team-tasks").out)


def test_new_server_makes_it_and_says_how_to_go_on(cli, tmp_path):
    out = cli.says("new", "server", "my-notes", "--namespace", "memos")
    assert out.startswith("Created my-notes, an MCP server with the namespace memos:\n")
    assert "  pytest                                        # its own tests\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert 'NAMESPACE = "memos"' in (tmp_path / "my-notes/src/my_notes/names.py").read_text()


WRONG = [
    (("new", "server", "My_Server"), 1, "'My_Server' is no name for a server"),
    (("names", "doc", "README.md"), 1, "README.md: it has no tables of names"),
    (("names", "doc", "--", "./nowhere"), 7, "cannot be started"),
]


@pytest.mark.parametrize(("words", "code", "told"), WRONG)
def test_a_wrong_use_is_told_in_one_line(cli, project, words, code, told):
    (project / "README.md").touch()
    ran = cli.fails(*words, told=told, code=code)
    assert len([line for line in ran.err.splitlines() if not line.startswith("Try ")]) == 1
    assert ran.out == ""


def test_doc_does_not_write_the_page_from_itself(cli, tmp_path):
    page = "**Namespace:** `mynotes`\n\n## Registered Tools\n"
    (tmp_path / "NAMESPACES.md").write_text(page)
    told = "folkmoot: error: NAMESPACES.md is the page itself: give --url URL"
    cli.fails("names", "doc", told=told, code=2)
    assert (tmp_path / "NAMESPACES.md").read_text() == page
