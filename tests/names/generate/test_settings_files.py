"""`.pre-commit-config.yaml` and `pyproject.toml` get our part, and lose nothing of theirs."""

from __future__ import annotations

import tomllib

import pytest
import yaml

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate import precommit, pyproject

HOOK = {
    "repo": "local",
    "hooks": [
        {
            "id": "validate-mcp-names",
            "name": "Validate MCP naming conventions",
            "entry": "folkmoot names lint .",
            "language": "system",
            "pass_filenames": False,
        }
    ],
}
CONFIGS = [
    "repos:\n- repo: https://example.org/a\n  rev: v1\n  hooks:\n  - id: a  # mine\n",
    "repos:\n  - repo: local\n    hooks:\n      - id: b\n        args: [x,\n          y]\n",
    "# above\nrepos:\n- repo: meta\n  hooks:\n  - id: c\n\n# between\nexclude: ^docs/\n",
    "exclude: x\nrepos: []  # none yet\nfail_fast: true\n",
    "repos:\n",
    "repos:\r\n- repo: meta\r\n  hooks:\r\n  - id: c\r\n",
    "ci:\n  autofix_prs: false\nrepos:\n    -   repo: meta\n        hooks:\n        -   id: d",
]


@pytest.mark.requirement("names.pre-commit")
@pytest.mark.parametrize("text", CONFIGS)
def test_the_hook_is_put_beside_those_that_are_there(text: str) -> None:
    after = precommit.with_hook(text)
    wanted = yaml.safe_load(text)
    wanted["repos"] = [*(wanted["repos"] or []), HOOK]
    assert yaml.safe_load(after) == wanted
    kept = after.splitlines()
    assert [line for line in text.splitlines() if line not in kept] in (
        [],
        ["repos: []  # none yet"],
    )
    assert ("\r\n" in after) is ("\r\n" in text)
    assert precommit.with_hook(after) == after


@pytest.mark.requirement("names.pre-commit")
def test_a_project_without_hooks_gets_a_file_with_ours() -> None:
    assert yaml.safe_load(precommit.with_hook(None)) == {"repos": [HOOK]}


@pytest.mark.parametrize(
    "text",
    [
        "repos: [{repo: meta, hooks: [{id: a}]}]\n",
        "exclude: x\n",
        "repos: &r\n- repo: meta\n",
        "{repos: []}\n",
        "repos:\n- repo: meta\n---\nrepos: []\n",
        "repos: []\n- repo: meta\n",
    ],
)
def test_a_file_that_cannot_be_read_for_certain_is_left_alone(text: str) -> None:
    with pytest.raises(ProjectUnusable, match="cannot be read for certain"):
        precommit.with_hook(text)


@pytest.mark.parametrize(
    "text",
    [
        '[project]\nname = "a"  # mine\n',
        '[project]\nname = "a"',
        '[project]\r\nname = "a"\r\n',
        "",
        "[tool.folkmoot]\n",
    ],
)
def test_the_namespace_is_put_at_the_end_of_pyproject_toml(text: str) -> None:
    after = pyproject.with_names(text, "notes")
    assert after.startswith(text)
    assert tomllib.loads(after)["tool"]["folkmoot"]["names"] == {"namespace": "notes"}
    assert pyproject.with_names(after, "other") == after


@pytest.mark.parametrize(
    ("text", "why"),
    [("tool = {folkmoot = {}}\n", "takes no table"), ("[project\n", "is not TOML")],
)
def test_a_pyproject_toml_that_takes_no_table_is_left_alone(text: str, why: str) -> None:
    with pytest.raises(ProjectUnusable, match=why):
        pyproject.with_names(text, "notes")


def test_only_the_namespace_of_our_section_is_changed() -> None:
    text = (
        '[tool.other]\nnamespace = "notes"\n[tool.folkmoot.names]\n'
        "namespace = 'notes' # ours\nstandalone = true\n"
    )
    after = pyproject.with_namespace(text, "notes", "memos")
    assert after == text.replace("'notes' # ours", "'memos' # ours")
