"""`folkmoot names lint`: what it says, to whom, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from folkmoot.cli import program
from folkmoot.cli.output import ExitCode
from folkmoot.names.lint import RULES
from tests.cli.conftest import Run

BACKEND = str(Path(__file__).with_name("small_backend.py"))
ROOT = Path(__file__).parents[2]

FAULTY = "shop:sell\nbuy\nshop:get\n"
TOLD = """\
names.txt:3: warning: Tool 'shop:get' does not say what it is about; add the noun: 'get_…'. \
[generic-name]
names.txt:2: error: Tool 'buy' has no namespace. Did you mean 'shop:buy'? [missing-namespace]
Found 1 error and 1 warning in 3 names of names.txt.
"""


@pytest.fixture
def lint(here: Run) -> Run:
    return partial(here, "names", "lint")


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A folder with names of which one has an error and one a warning."""
    (tmp_path / "names.txt").write_text(FAULTY)
    return tmp_path


def test_each_finding_is_a_line_with_its_place_and_the_sum_is_told(lint, faulty):
    assert lint("names.txt") == (ExitCode.FAILED, TOLD, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), ExitCode.FAILED),
        (("--standalone",), ExitCode.OK),
        (("--standalone", "--strict"), ExitCode.FAILED),
        (("--ignore", "missing-namespace"), ExitCode.OK),
        (("--ignore", "missing-namespace", "--strict"), ExitCode.FAILED),
        (("--ignore", "missing-namespace,generic-name", "--strict"), ExitCode.OK),
        (("--select", "generic-name"), ExitCode.OK),
        (("--select", "generic-name", "--select", "missing-namespace"), ExitCode.FAILED),
        (("--namespace", "store", "--select", "foreign-namespace"), ExitCode.FAILED),
    ],
)
def test_it_ends_with_1_for_an_error_and_strictly_for_a_warning(arguments, code, lint, faulty):
    assert lint("names.txt", *arguments).code == code


def test_names_without_faults_are_told_so(lint, tmp_path):
    (tmp_path / "names.txt").write_text("shop:sell\n")
    assert lint("names.txt") == (0, "No problems: 1 name of names.txt.\n", "")
    (tmp_path / "names.txt").write_text("# none yet\n")
    assert lint("names.txt") == (0, "No names in names.txt.\n", "")


def test_names_on_standard_input_are_read(cli):
    told = TOLD.replace("names.txt", "<stdin>")
    assert cli("names", "lint", "-", given=FAULTY) == (1, told, "")


MANY: dict[str, Any] = {
    "tools": [
        *({"name": name, "inputSchema": {}} for name in ("buy", "borrow-it", "lend", "sell.it")),
        {"name": "createTask", "inputSchema": {}},
        {"name": "create_task", "inputSchema": {}},
        {"name": "give_" * 14, "inputSchema": {}},
    ],
    "prompts": [{"name": "plan_day"}],
}


def test_what_collides_is_cut_or_refused_is_told_first_and_missing_namespaces_in_one_line(
    lint, tmp_path
):
    (tmp_path / "lists.json").write_text(json.dumps(MANY))
    ran = lint("lists.json")
    *told, last, _ = ran.out.splitlines()
    assert [(line.split("'")[1][:10], line.rpartition("[")[2].rstrip("]")) for line in told] == [
        ("sell.it", "tool-characters"),
        ("give_give_", "long-name"),
        ("create_tas", "safe-collision"),
        ("borrow-it", "tool-characters"),
        ("createTask", "tool-characters"),
    ]
    assert last == (
        "error: 8 of 8 names have no namespace: 'buy', 'borrow-it', 'lend' and 5 more. "
        "Behind a hub they get one; anywhere else they can collide with another server's. "
        "--select missing-namespace lists them. [missing-namespace]"
    )
    ran = lint("--select", "missing-namespace", "lists.json")
    assert [line.split("'")[1] for line in ran.out.splitlines()[:2]] == ["buy", "borrow-it"]
    assert len(ran.out.splitlines()) == 9
    told = json.loads(lint("--json", "lists.json").out)["findings"]
    assert sum(each["rule"] == "missing-namespace" for each in told) == 8


WRONG = {
    (): "give a FILE, --url URL or a command after --, or set 'command' in [tool.folkmoot.names]",
    ("nowhere",): "nowhere: there is no such file or folder",
    ("http://h/mcp",): "http://h/mcp: there is no such file or folder; give a URL with --url",
    ("--url", "127.0.0.1/mcp"): "--url must be a URL such as https://example.org/mcp",
    ("--select", "nope"): "--select: there is no rule 'nope' (--list-rules has them all)",
    (
        "--ignore",
        "collisions",
    ): "--ignore: there is no rule 'collisions'; did you mean 'collision'?",
    ("--explain", "x"): "--explain: there is no rule 'x' (--list-rules has them all)",
    (
        "--namespace",
        "My-Shop",
    ): "--namespace must be 3 to 20 lower-case letters and digits, a letter",
    ("--project-version", "next"): "--project-version must be a version such as 1.4.0, not 'next'",
    ("--timeout", "0"): "--timeout must be a whole number from 1 to 600, not '0'",
    ("--header", "a=b"): "--header needs --url",
    ("--header", "sesame", "--url", "http://127.0.0.1/mcp"): "--header must be 'NAME: VALUE'",
    (".", "--url", "http://127.0.0.1/mcp"): "give a FILE, or --url URL, or a command after --",
    (".", "--", "server"): "give a FILE, or --url URL, or a command after --",
    ("--",): "the command that starts the server is missing after --",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_command_line_is_told_in_one_line(arguments, lint):
    ran = lint(*arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    told, where = ran.err.splitlines()
    assert told.startswith(f"folkmoot: error: {WRONG[arguments]}")
    assert where == "Try 'folkmoot names lint --help'."


def test_a_wrong_configuration_ends_with_3(lint, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.folkmoot.names]\nnamspace = 'x'\nselect = 1\n")
    ran = lint()
    assert (ran.code, ran.out) == (ExitCode.SETTINGS, "")
    assert [line.rpartition("]: ")[2] for line in ran.err.splitlines()] == [
        "there is no key 'namspace'; did you mean 'namespace'?",
        "'select' must be a list of strings",
    ]


def test_a_file_that_cannot_be_used_ends_with_1(lint, faulty):
    (faulty / "names.json").write_text("{}")
    ran = lint("names.json")
    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert ran.err.startswith("folkmoot: error: names.json: it is JSON, but not a list of tools")


def test_json_is_for_programs(lint, faulty):
    ran = lint("--json", "names.txt", "--select", "missing-namespace")
    assert ran.code == 1
    assert json.loads(ran.out) == {
        "project": {"name": "", "namespace": "shop", "version": None, "path": "names.txt"},
        "names": [
            {"kind": "tool", "name": name, "deprecated": False, "line": line}
            for line, name in enumerate(FAULTY.split(), 1)
        ],
        "findings": [{
            "rule": "missing-namespace", "severity": "error", "name": "buy", "line": 2,
            "message": "Tool 'buy' has no namespace. Did you mean 'shop:buy'?",
        }],
    }  # fmt: skip


def test_every_rule_is_listed_and_explained(lint):
    listed = lint("--list-rules").out.splitlines()
    assert [line.split()[0] for line in listed] == list(RULES)
    assert lint("--explain", "missing-namespace").out == (
        "missing-namespace: an error, a hint with --standalone\n"
        "\n"
        "A name begins with the project's namespace, so that it collides with nobody\n"
        "else's behind a gateway.\n"
        "\n"
        "Wrong:  `create_task`\n"
        "Fix:    Register it as `myproject:create_task`.\n"
    )
    for rule in RULES:
        told = lint("--explain", rule).out
        assert max(map(len, told.splitlines())) <= 80
        assert "Fix:" in told


@pytest.mark.parametrize("columns", [80, 40])
def test_a_terminal_shows_all_of_it_within_its_width(columns, cli, faulty):
    shown = cli.shown("names", "lint", "names.txt", columns=columns, NO_COLOR="1")
    assert max(map(len, shown.replace("\r", "").splitlines())) <= columns
    assert "    Tool 'buy' has no namespace. Did you" in shown
    assert "\x1b[1;31merror\x1b[0m" in cli.shown("names", "lint", "names.txt", columns=columns)


def test_a_name_from_a_stranger_cannot_act_on_the_terminal(lint, tmp_path):
    (tmp_path / "names.txt").write_text("\x1b[2J\u202e\n")
    for form in ((), ("--json",)):
        out = lint("names.txt", *form).out
        assert "\x1b" not in out
        assert "\u202e" not in out


LISTED: dict[str, Any] = {
    "tools": [{"name": "shop:buy", "inputSchema": {}}, {"name": "get", "inputSchema": {}}],
    "resources": [{"uri": "shop://template/a", "name": "a"}],
    "prompts": [{"name": "shop:plan_day"}],
}


def test_a_server_that_a_command_starts_is_asked(lint, tmp_path):
    (tmp_path / "lists.json").write_text(json.dumps(LISTED))
    ran = lint("--", sys.executable, BACKEND, "lists.json")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines() == [
        "warning: Tool 'get' does not say what it is about; add the noun: 'get_…'. [generic-name]",
        (
            "warning: Resource 'shop://template/a': The type 'template' is singular; call it "
            "'templates'. [singular-type]"
        ),
        "error: Tool 'get' has no namespace. Did you mean 'shop:get'? [missing-namespace]",
        "Found 1 error and 2 warnings in 4 names of the server.",
    ]


@pytest.mark.requirement("names.namespaces-md")
def test_in_a_project_the_server_that_it_names_is_asked_and_compared_with_the_register(
    lint, tmp_path, monkeypatch
):
    (tmp_path / "server").symlink_to(sys.executable)
    command = json.dumps(["./server", BACKEND, "lists.json"])
    (tmp_path / "pyproject.toml").write_text(f"[tool.folkmoot.names]\ncommand = {command}\n")
    (tmp_path / "lists.json").write_text(json.dumps({"tools": LISTED["tools"][:1]}))
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    missing = (
        "warning: There is no NAMESPACES.md; 'folkmoot names doc' writes down the names of this "
        "project. [register-missing]\nFound 1 warning in 1 name of the server.\n"
    )
    assert lint() == lint("..") == (0, missing, "")
    (tmp_path / "NAMESPACES.md").write_text("**Namespace:** `shop`\n\n## Registered Tools\n")
    outdated = lint()
    assert outdated.code == 1
    assert outdated.out.startswith("error: NAMESPACES.md: The tool shop:buy is missing.")


def test_a_project_that_names_no_server_has_its_register_checked(lint, tmp_path):
    (tmp_path / "NAMESPACES.md").write_text("## Registered Tools\n\nNone yet.\n")
    assert lint() == lint("NAMESPACES.md") == (0, "No names in NAMESPACES.md.\n", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--url", "http://127.0.0.1:9/mcp", "--header", "a=sesame"), "connection refused"),
        (("--", "/nowhere/server"), "it was not found"),
    ],
)
def test_a_server_that_cannot_be_reached_ends_with_7(arguments, told, lint):
    ran = lint(*arguments)
    assert (ran.code, ran.out) == (ExitCode.UNREACHABLE, "")
    assert ran.err.startswith("folkmoot: error: The server cannot be asked. ")
    assert told in ran.err
    assert "sesame" not in ran.err


PAGE = """\
**Namespace:** `shop`

## Registered Tools

| Tool Name | Full Name | Description | Version |
|---|---|---|---|
| buy | {} | Buy it. | 1.0.0 |
"""


@pytest.mark.requirement("names.pre-commit")
def test_the_hook_stops_a_commit_with_a_wrong_name_and_lets_a_right_one_pass(cli):
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["pass_filenames"]) == ("folkmoot-names", False)
    [name, *arguments] = [*hook["entry"].split(), *hook["args"]]
    assert name == program.PROGRAM
    subprocess.run(["git", "init", "-q"], cwd=cli.folder, check=True)
    (cli.folder / "NAMESPACES.md").write_text(PAGE.format("buy"))
    stopped = cli(*arguments)
    assert stopped.code == 1
    assert stopped.out.startswith("NAMESPACES.md:7: error: Tool 'buy' has no namespace.")
    (cli.folder / "NAMESPACES.md").write_text(PAGE.format("shop:buy"))
    assert cli(*arguments).code == 0
