"""The conventions put into projects that exist, whatever they look like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.core.errors import InvalidName, ProjectUnusable
from folkmoot.names.generate.init import Step, Wishes, plan_init
from folkmoot.names.generate.layout import find_layout
from folkmoot.names.lint.source import read_sources
from tests.names.generate.conftest import texts

Make = Callable[..., Path]


def init(root: Path, **wishes: object) -> list[Step]:
    module = wishes.get("module")
    layout = find_layout(root, module if isinstance(module, Path) else None)
    asked = Wishes()._replace(**wishes)  # type: ignore[arg-type]
    plan, steps = plan_init(layout, read_sources([layout.root], layout.found), asked)
    plan.apply()
    return steps


NAMED = '[project]\nname = "my-notes"\nversion = "1.0"\n'
LAYOUTS = [
    ({"src/my_notes/__init__.py": ""}, "src/my_notes/names.py"),
    ({"my_notes/__init__.py": ""}, "my_notes/names.py"),
    ({"other/__init__.py": "", "tests/__init__.py": ""}, "other/names.py"),
    ({"a/__init__.py": "", "my_notes/__init__.py": ""}, "my_notes/names.py"),
    (
        {"src/my_notes/__init__.py": "", "src/my_notes/names.py": "X = 1"},
        "src/my_notes/mcp_names.py",
    ),
    ({"src/my_notes/__init__.py": "", "src/my_notes/names/a.py": ""}, "src/my_notes/mcp_names.py"),
    ({"server.py": ""}, "mcp_names.py"),
]


@pytest.mark.requirement("names.generated-helpers", "names.namespaces-md", "names.pre-commit")
@pytest.mark.parametrize(("files", "helper"), LAYOUTS)
def test_a_project_of_any_layout_gets_the_four_parts(
    project: Make, files: dict[str, str], helper: str
) -> None:
    root = project({"pyproject.toml": NAMED, **files})
    steps = init(root)
    after = texts(root)
    assert 'NAMESPACE = "mynotes"' in after[helper]
    assert f"(see `{helper}`)" in after["NAMESPACES.md"]
    assert 'namespace = "mynotes"' in after["pyproject.toml"]
    assert "validate-mcp-names" in after[".pre-commit-config.yaml"]
    assert [step.verb for step in steps] == ["create", "create", "change", "create"]
    assert {step.verb for step in init(root)} == {"keep"}
    assert texts(root) == after


@pytest.mark.requirement("names.namespaces-md")
def test_the_names_that_are_there_are_written_down(project: Make) -> None:
    root = project()
    init(root)
    page = (root / "NAMESPACES.md").read_text()
    assert "| create_note | notes:create_note | Create a note. | 1.2.0 |" in page
    assert "| notes://pages/daily.md | The page of today. | text/markdown |" in page
    assert r"List \| count all" in page


def test_what_is_there_is_kept_unless_it_may_be_replaced(project: Make) -> None:
    root = project()
    mine = 'NAMESPACE = "notes"\ndef make_tool_name(tool): return f"{NAMESPACE}:{tool}"\n'
    (root / "src/notes/names.py").write_text(mine)
    (root / "NAMESPACES.md").write_text("Written by hand.\n")
    steps = {step.file: step for step in init(root)}
    assert texts(root)["src/notes/names.py"] == mine
    assert texts(root)["NAMESPACES.md"] == "Written by hand.\n"
    assert steps["NAMESPACES.md"] == Step(
        "keep", "NAMESPACES.md", "has no folkmoot marks; --force replaces it"
    )
    init(root, force=True)
    assert "def validate_tool_name" in texts(root)["src/notes/names.py"]
    assert "## Registered Tools" in texts(root)["NAMESPACES.md"]


def test_a_module_that_is_named_is_the_helper_if_it_is_free(project: Make) -> None:
    root = project({"pyproject.toml": NAMED, "a/__init__.py": "", "b/__init__.py": "", "c.py": ""})
    with pytest.raises(ProjectUnusable, match=r"several packages \(a, b\); say with --module"):
        init(root)
    with pytest.raises(ProjectUnusable, match=r"c\.py exists and is no helper module"):
        init(root, module=root / "c.py")
    init(root, module=root / "b/spelling.py")
    assert 'NAMESPACE = "mynotes"' in texts(root)["b/spelling.py"]
    assert "(see `b/spelling.py`)" in texts(root)["NAMESPACES.md"]


def test_a_name_that_makes_no_namespace_is_refused_with_a_proposal(project: Make) -> None:
    root = project({"pyproject.toml": '[project]\nname = "my-awesome-long-project-name"\n'})
    with pytest.raises(ProjectUnusable, match="--namespace, for instance malpn"):
        init(root)
    init(root, namespace="malp")
    assert 'NAMESPACE = "malp"' in texts(root)["mcp_names.py"]


def test_a_namespace_that_is_wrong_or_another_is_refused(project: Make) -> None:
    root = project()
    with pytest.raises(ProjectUnusable, match="folkmoot names rename notes memos"):
        init(root, namespace="memos")
    assert "NAMESPACES.md" not in texts(root)
    for wrong in ("No", "folkmoot"):
        (root / "pyproject.toml").write_text("")
        (root / "src/notes/names.py").unlink(missing_ok=True)
        with pytest.raises(InvalidName):
            init(root, namespace=wrong)


def test_nothing_is_written_when_one_part_cannot_be(project: Make) -> None:
    root = project({"pyproject.toml": NAMED, ".pre-commit-config.yaml": "{repos: []}\n"})
    before = texts(root)
    with pytest.raises(ProjectUnusable, match="--no-pre-commit"):
        init(root)
    assert texts(root) == before
    init(root, pre_commit=False)
    assert texts(root)[".pre-commit-config.yaml"] == "{repos: []}\n"
