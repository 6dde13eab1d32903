"""The register of names: written, read back, and compared with a project."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.names import namespaces_md
from folkmoot.names.namespaces_md import MAX_CELL, cell, read_table, table
from folkmoot.names.project import Declared, DeclaredDeprecation, Project

SEED = """\
# MCP Namespace Registry

**Project:** myproject
**Namespace:** `myproject`
**Convention:** Chora MCP Conventions v1.0
**Status:** Active

---

## Registered Tools

| Tool Name | Full Name | Description | Version |
|-----------|-----------|-------------|---------|
| create_task | myproject:create_task | Create new task | 1.0.0 |
| list_tasks | myproject:list_tasks | List all tasks | 1.0.0 |

---

## Registered Resources

| Resource URI | Description | Type |
|--------------|-------------|------|
| myproject://templates/daily-report.md | Daily report template | text/markdown |
"""


def project(*declared: Declared, version: str = "1.1.0", **more: Any) -> Project:
    named = {"name": "myproject", "namespace": "myproject", "version": version}
    return Project(**named, declared=list(declared), **more)


CREATE = Declared(kind="tool", name="myproject:create_task", description="Create new task")
LIST = Declared(kind="tool", name="myproject:list_tasks", description="List all tasks")
NAMED = {"kind": "resource", "name": "myproject://templates/daily-report.md"}
DAILY = Declared(**NAMED, description="Daily report template", mime_type="text/markdown")


@pytest.mark.requirement("names.namespaces-md")
def test_the_page_has_the_sections_of_the_conventions():
    prompt = Declared(kind="prompt", name="myproject:plan_day", description="Plan a day")
    page = namespaces_md.render(project(CREATE, DAILY, prompt))
    for line in (
        "# MCP Namespace Registry",
        "**Project:** myproject\\",
        "**Namespace:** `myproject`\\",
        "**Convention:** Chora MCP Conventions v1.0\\",
        "**Status:** Active",
        "## Registered Tools",
        "| Tool Name | Full Name | Description | Version |",
        "| create_task | myproject:create_task | Create new task | 1.1.0 |",
        "## Registered Resources",
        "| myproject://templates/daily-report.md | Daily report template | text/markdown |",
        "## Registered Prompts",
        "| plan_day | myproject:plan_day | Plan a day |",
        "## Namespace Rules",
        "- **Format:** `myproject:{tool_name}` for tools",
        "- **Format:** `myproject://{type}/{id}` for resources",
        "- **Validation:** `folkmoot names lint`",
        "## References",
    ):
        assert line in page.splitlines()
    assert "## Deprecated" not in page


@pytest.mark.requirement("names.namespaces-md")
def test_a_page_written_by_hand_as_the_conventions_show_it_is_understood():
    assert namespaces_md.differences(project(CREATE, LIST, DAILY), SEED) == []


@pytest.mark.requirement("names.namespaces-md")
def test_what_is_no_longer_so_is_told_name_by_name():
    changed = Declared(kind="tool", name="myproject:list_tasks", description="List some tasks")
    new = Declared(kind="tool", name="myproject:delete_task")
    assert namespaces_md.differences(project(changed, new, DAILY), SEED) == [
        "The tool myproject:create_task is in it, but not in the project.",
        "The tool myproject:delete_task is missing.",
        "The tool myproject:list_tasks has another description now.",
    ]
    other = project(CREATE, LIST, DAILY)
    other.namespace = "other"
    assert "The namespace is other, not myproject." in namespaces_md.differences(other, SEED)


@pytest.mark.requirement("names.namespaces-md")
def test_a_page_that_was_just_written_is_up_to_date():
    hostile = Declared(kind="tool", name="myproject:x|y", description="a | b\n\n`c` <!-- d")
    bare = Declared(kind="tool", name="create_note", description="Standalone")
    for known in (project(), project(CREATE, DAILY, hostile, bare)):
        page = namespaces_md.render(known)
        assert namespaces_md.differences(known, page) == []
        assert namespaces_md.render(known, page) == page


def test_text_outside_of_the_marks_is_kept():
    page = namespaces_md.render(project(CREATE))
    mine = f"Mine, above.\n\n{page}\n## Ours\n\nMine, below.\n"
    after = namespaces_md.render(project(CREATE, LIST), mine)
    assert after.startswith("Mine, above.\n\n# MCP")
    assert after.endswith("<!-- folkmoot:end -->\n\n## Ours\n\nMine, below.\n")
    assert "| list_tasks |" in after


def test_a_tool_keeps_the_version_it_came_with_and_the_page_what_it_says_of_itself():
    page = namespaces_md.render(project(CREATE)).replace("Active", "Frozen")
    page = page.replace("`folkmoot names lint`", "At run time (see `names.py`)")
    after = namespaces_md.render(project(CREATE, LIST, version="2.0.0"), page)
    assert "| myproject:create_task | Create new task | 1.1.0 |" in after
    assert "| myproject:list_tasks | List all tasks | 2.0.0 |" in after
    assert "**Status:** Frozen\n" in after
    assert "- **Validation:** At run time (see `names.py`)\n" in after


def test_what_a_person_wrote_into_the_page_stays_where_the_server_says_nothing():
    page = namespaces_md.render(project(DAILY)).replace("text/markdown", "text/plain")
    assert "| text/markdown |" in namespaces_md.render(project(DAILY), page)
    bare = Declared(**NAMED, description=DAILY.description)
    assert "| text/plain |" in namespaces_md.render(project(bare), page)


def test_a_page_keeps_its_line_ends():
    page = namespaces_md.render(project(CREATE)).replace("\n", "\r\n")
    after = namespaces_md.render(project(CREATE, LIST), page)
    assert after.count("\r\n") == after.count("\n") == page.count("\n") + 1


def test_a_page_without_marks_is_left_alone_unless_it_is_to_be_replaced():
    with pytest.raises(e.ProjectUnusable, match="has no lines"):
        namespaces_md.render(project(CREATE), SEED)
    replaced = namespaces_md.render(project(CREATE), SEED, force=True)
    assert "| myproject:create_task | Create new task | 1.0.0 |" in replaced
    assert "list_tasks" not in replaced


@pytest.mark.requirement("names.namespaces-md", "names.deprecation-n-plus-1")
@pytest.mark.parametrize(
    ("version", "listed"), [("1.1.0", True), ("1.1.7", True), ("1.2.0", False), ("1.3.0", False)]
)
def test_a_deprecated_tool_is_documented_in_its_release_only(version, listed):
    dates = DeclaredDeprecation(since="1.1.0", removed_in="1.3.0", use="myproject:add_task")
    going = Declared(kind="tool", name="myproject:create_task", deprecation=dates)
    page = namespaces_md.render(project(going, LIST, version=version))
    assert ("| myproject:create_task | 1.1.0 | 1.3.0 | myproject:add_task |" in page) is listed
    assert ("myproject:create_task" in page) is listed
    assert "myproject:list_tasks" in page


TEXTS = (
    st.text(max_size=40)
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: not (text.startswith("`") or text.endswith("`")))
)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_what_is_written_into_a_table_is_read_back(rows):
    lines = table(("One", "Two"), rows)
    titles, read = read_table(lines)
    assert titles == ["One", "Two"]
    # A row is one line, whatever is in it, and characters that end lines or hide are spaces.
    assert len(lines) == len(rows) + 2
    assert [[cell(text) for text in row] for row in read] == [
        [cell(text) for text in row] for row in rows
    ]


def test_a_description_cannot_end_its_cell_its_line_or_our_part_of_the_page():
    hostile = "a | b\n<!-- folkmoot:end -->\x1b[2J \\"
    assert cell(hostile) == r"a \| b \<!-- folkmoot:end --> [2J \\"
    assert read_table(table(("One",), [(hostile,)]))[1] == [["a | b <!-- folkmoot:end --> [2J \\"]]


def test_a_long_description_is_cut():
    assert len(cell("x" * 1000)) == MAX_CELL
