"""Names read from files, and what a project says of them in its `pyproject.toml`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.names import namespaces_md
from folkmoot.names.limits import MAX_PROJECT_FILE_BYTES
from folkmoot.names.lint import judge
from folkmoot.names.listing import Config, find_config, read_file
from folkmoot.names.project import DeclaredDeprecation, Project

TOOL = {"name": "shop:buy", "description": "Buy it.\nOr not."}
LISTS = {
    "tools": [TOOL],
    "resources": [{"uri": "shop://docs/a", "mimeType": "text/plain"}],
    "resourceTemplates": [{"uriTemplate": "shop://docs/{id}"}],
    "prompts": [{"name": "shop:plan_day"}],
}
NAMES = [
    ("tool", "shop:buy"),
    ("resource", "shop://docs/a"),
    ("template", "shop://docs/{id}"),
    ("prompt", "shop:plan_day"),
]


def read(folder: Path, name: str, text: str, **config: Any) -> Project:
    """The names in a file of this text."""
    (folder / name).write_text(text, encoding="utf-8")
    return read_file(str(folder / name), Config(**config))


def names(project: Project) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in project.declared]


ANSWERS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "the result of tools/list": ({"tools": [TOOL]}, NAMES[:1]),
    "an answer": ({"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}, NAMES[:1]),
    "all lists in one": (LISTS, NAMES),
    "several answers": ([{"result": {member: LISTS[member]}} for member in LISTS], NAMES),
    "what folkmoot call --json prints": (
        {"server": {"name": "shop", "version": "2"}, "templates": LISTS["resourceTemplates"]},
        NAMES[2:3],
    ),
    "names alone": ([name for _, name in NAMES[:3]], NAMES[:3]),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_json_as_servers_and_commands_write_it_is_read(case, tmp_path):
    answer, expected = ANSWERS[case]
    project = read(tmp_path, "names.json", json.dumps(answer))
    assert names(project) == expected
    assert project.path == str(tmp_path / "names.json")
    if "server" in answer:
        assert (project.name, project.version) == ("shop", "2")


def test_a_name_on_each_line_may_have_a_comment_and_has_its_number(tmp_path):
    text = "# The shop's names\n\nshop:buy\nshop:sell  # Deprecated, removed in 1.2\nshop://a/{b}\n"
    project = read(tmp_path, "names.txt", text)
    assert [(each.kind, each.name, each.line) for each in project.declared] == [
        ("tool", "shop:buy", 3), ("tool", "shop:sell", 4), ("template", "shop://a/{b}", 5),
    ]  # fmt: skip
    assert project.declared[1].deprecation == DeclaredDeprecation(removed_in="1.2")
    again = read(tmp_path, "names.txt", "shop:buy\nshop:buy\n")
    assert [each.message for each in judge(again)] == [
        "Tool 'shop:buy' is listed twice; the first time in line 1."
    ]


@pytest.mark.requirement("names.namespaces-md")
def test_a_register_is_read_as_it_was_written(tmp_path):
    page = namespaces_md.render(read(tmp_path, "all.json", json.dumps(LISTS), version="1.0"))
    project = read(tmp_path, "NAMESPACES.md", page)
    assert names(project) == NAMES
    assert project.namespace == "shop"
    assert judge(project) == []
    lines = page.splitlines()
    for each in project.declared:
        assert each.line is not None
        assert each.name in lines[each.line - 1]
    assert namespaces_md.render(read(tmp_path, "NAMESPACES.md", page), page) == page


BY_HAND = """\
**Namespace:** `shop`

## Registered Tools

| Tool Name | Full Name |
|---|---|
| sell | shop:sell |
| give | store:give |
| lend | |

## Deprecated

| Name | Deprecated Since | Removed In | Use Instead |
|---|---|---|---|
| shop:sell | 1.2 | next year | shop:give |
"""


@pytest.mark.requirement("names.consistent-namespace", "names.deprecation-n-plus-2")
def test_a_register_written_by_hand_is_judged_by_the_same_rules(tmp_path):
    def judged(text: str) -> list[tuple[str, str, int | None]]:
        project = read(tmp_path, "NAMESPACES.md", text, version="1.4")
        return [(each.rule, each.name, each.line) for each in judge(project)]

    assert judged(BY_HAND) == [
        ("version-syntax", "shop:sell", 7),
        ("foreign-namespace", "store:give", 8),
        ("missing-namespace", "lend", 9),
    ]
    assert judged(BY_HAND.replace("next year", "1.4"))[0] == ("past-removal", "shop:sell", 7)


UNUSABLE = {
    "x.json": [
        ('{"tools": ', "it is not valid JSON: Input data was truncated."),
        ("[" * 5_000, "it is not valid JSON: "),
        ('{"tool": []}', "it is JSON, but not a list of tools, resources, resourceTemplates or"),
        ("[3]", "it is JSON, but not a list of"),
    ],
    "README.md": [("# Shop\n", "it has no tables of names, as 'names doc' writes them.")],
    "server.py": [("import mcp\n", "sources are not read; give the server's command after --")],
    "x.txt": [("x" * (MAX_PROJECT_FILE_BYTES + 1), "it is larger than 4 MiB.")],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_holds_no_names_is_refused_in_a_sentence(name, tmp_path):
    for text, message in UNUSABLE[name]:
        with pytest.raises(e.ProjectUnusable) as raised:
            read(tmp_path, name, text)
        assert raised.value.message.startswith(f"{tmp_path / name}: {message}")


def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"\xff")
    for name, message in (("x.txt", "it is not UTF-8 text."), ("y", "there is no such file.")):
        with pytest.raises(e.ProjectUnusable) as raised:
            read_file(str(tmp_path / name), Config())
        assert raised.value.message == f"{tmp_path / name}: {message}"


PIECES = st.sampled_from(
    [
        '{"tools":', "[", "]", "{", "}", '"name"', ":", ",", '"shop:buy"', "null", "1", "\n", "|",
        "## Registered Tools\n", "| Tool Name | Full Name |\n|--|--|\n", "## Deprecated\n", "\\",
        "`", "**Namespace:** ", "<!-- folkmoot:begin -->", "shop:buy", "shop://a/{b}", "#", " ",
        "://", "Deprecated since ", "\x1b", "\u2028", "é", "1.2", "_v2", '"result":',
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join), st.sampled_from(["a.json", "a.md", "a.txt"]))
def test_no_file_ends_the_linter_whatever_is_in_it(tmp_path_factory, text, name):
    try:
        project = read(tmp_path_factory.getbasetemp(), name, text, namespace="shop")
    except e.ProjectUnusable:
        return
    for finding in judge(project):
        assert finding.message.endswith((".", "?"))


WRONG = {
    "namspace = 'x'": "there is no key 'namspace'; did you mean 'namespace'?",
    "standalone = 'yes'": "'standalone' must be true or false",
    "command = 'server'": "'command' must be a list of strings",
    "ignore = [1]": "'ignore' must be a list of strings",
    "select = 1": "'select' must be a list of strings",
    "ignore = ['singular']": "there is no rule 'singular'",
    "select = ['collisions']": "there is no rule 'collisions'; did you mean 'collision'?",
    "client-prefix = '{server}'": "'client-prefix' may hold {namespace}, and no other braces",
    "namespaces-file = '../x.md'": "'namespaces-file' must be a file inside the project",
    "namespace = 'My-Shop'": "'namespace': Invalid namespace: My-Shop.",
    "command = ['a']\nurl = 'http://127.0.0.1/mcp'": "give either 'command' or 'url'",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_configuration_is_told_clearly(line, tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.folkmoot.names]\n{line}\n")
    with pytest.raises(e.SettingsError) as raised:
        find_config(tmp_path)
    assert raised.value.message.startswith(f"{file}: [tool.folkmoot.names]: {WRONG[line]}")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[tool\n", ":1:6: expected ']' at the end of a table declaration"),
        (b"\xff", ": it is not UTF-8 text."),
        (b"x = 1" + b"0" * MAX_PROJECT_FILE_BYTES, ": it is larger than 4 MiB."),
        (b"x = " + b"[" * 5_000, ": lists and tables are nested too deeply"),
    ],
)
def test_a_pyproject_that_cannot_be_read_is_told(raw, message, tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(raw)
    with pytest.raises(e.SettingsError) as raised:
        find_config(tmp_path)
    assert raised.value.message == f"{tmp_path / 'pyproject.toml'}{message}"


def test_what_the_nearest_pyproject_says_is_used(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'my-shop'\nversion = '1.2'\n\n[tool.folkmoot.names]\n"
        "standalone = true\nnamespace = 'shop'\nnamespaces-file = 'docs/NAMES.md'\n"
        "command = ['my-shop', '--quiet']\n"
    )
    assert find_config(tmp_path / "a/b/names.txt") == Config(
        root=tmp_path, name="my-shop", version="1.2", standalone=True, namespace="shop",
        namespaces_file="docs/NAMES.md", command=("my-shop", "--quiet"),
    )  # fmt: skip
