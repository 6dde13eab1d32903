"""`folkmoot names lint`: what it says, to whom, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from folkmoot.cli import program
from folkmoot.cli.output import ExitCode
from folkmoot.names.lint.project import Config
from folkmoot.names.lint.rules import RULES
from folkmoot.names.lint.runner import judge
from folkmoot.names.lint.sources import read_lists
from tests.cli.conftest import Ran
from tests.forge import forked
from tests.names.lint.projects import SERVER, write

BUILT = cache(program.get_command)
BACKEND = str(Path(__file__).with_name("small_backend.py"))
ROOT = Path(__file__).parents[2]

SETTINGS = "[tool.folkmoot.names]\nnamespace = 'shop'\n"
FAULTY = SERVER + "@mcp.tool\ndef buy(): ...\n\n@mcp.tool('shop:get')\ndef get(): ...\n"
TOLD = """\
pyproject.toml:2:13: warning: There is no NAMESPACES.md; 'folkmoot names doc' writes down the \
names of this project. [register-missing]
server.py:8:11: warning: Tool 'shop:get' does not say what it is about; add the noun: 'get_…'. \
[generic-name]
server.py:6:5: error: Tool 'buy' has no namespace. Did you mean 'shop:buy'? [missing-namespace]
Found 1 error and 2 warnings in 2 names of 1 file.
--fix can fix 1 of them.
"""


@pytest.fixture
def lint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run `folkmoot names lint` in this process, in a folder of its own: it is quicker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(program, "get_command", BUILT)

    def run(*arguments: str) -> Ran:
        code = program.run(["names", "lint", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A project with an error and two warnings."""
    return write(tmp_path, {"pyproject.toml": SETTINGS, "server.py": FAULTY})


def test_each_finding_is_a_line_with_its_place_and_the_sum_is_told(
    lint: Callable[..., Ran], faulty: Path
) -> None:
    assert lint() == (ExitCode.FAILED, TOLD, "")
    assert lint(".") == lint()


def test_places_are_told_from_where_one_is(
    lint: Callable[..., Ran], faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (faulty / "sub").mkdir()
    monkeypatch.chdir(faulty / "sub")
    assert lint("..").out.splitlines()[2].startswith("../server.py:6:5: error: ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), ExitCode.FAILED),
        (("--standalone",), ExitCode.OK),
        (("--standalone", "--strict"), ExitCode.FAILED),
        (("--ignore", "missing-namespace"), ExitCode.OK),
        (("--ignore", "missing-namespace", "--strict"), ExitCode.FAILED),
        (("--ignore", "missing-namespace,generic-name,register-missing", "--strict"), ExitCode.OK),
        (("--select", "generic-name"), ExitCode.OK),
        (("--select", "generic-name", "--select", "missing-namespace"), ExitCode.FAILED),
        (("--namespace", "store", "--select", "foreign-namespace"), ExitCode.FAILED),
    ],
)
def test_it_ends_with_1_for_an_error_and_strictly_for_a_warning(
    arguments: tuple[str, ...], code: ExitCode, lint: Callable[..., Ran], faulty: Path
) -> None:
    assert lint(*arguments).code == code


def test_a_project_without_faults_is_told_so(lint: Callable[..., Ran], tmp_path: Path) -> None:
    write(tmp_path, {"server.py": SERVER + "@mcp.tool('shop:buy')\ndef buy(): ...\n"})
    assert lint("server.py") == (0, "No problems: 1 name of 1 file.\n", "")
    write(tmp_path, {"server.py": "X = 1\n"})
    assert lint() == (0, "No names of an MCP server found in 1 file.\n", "")


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
    lint: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "lists.json").write_text(json.dumps(MANY))
    ran = lint("--", sys.executable, BACKEND, "lists.json")
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
    ran = lint("--select", "missing-namespace", "--", sys.executable, BACKEND, "lists.json")
    assert [line.split("'")[1] for line in ran.out.splitlines()[:2]] == ["buy", "borrow-it"]
    assert len(ran.out.splitlines()) == 9
    told = json.loads(lint("--format", "json", "--", sys.executable, BACKEND, "lists.json").out)
    assert sum(each["rule"] == "missing-namespace" for each in told["findings"]) == 8


@pytest.mark.requirement("names.lint-safe-spelling")
@pytest.mark.parametrize(
    ("title", "names", "missing"),
    [
        ("mcp-server-git", ("git_log", "git_diff"), ()),
        # One of them says what the namespace is.
        ("Versions", ("git_log", "git:diff"), ()),
        ("mcp-server-git", ("git_log", "diff"), ("git_log", "diff")),
        ("clock", ("get_time", "get_date"), ("get_time", "get_date")),
        ("mcp-server-git", ("git_log",), ("git_log",)),
    ],
)
def test_the_safe_spelling_of_a_namespaced_name_has_a_namespace(
    title: str,
    names: tuple[str, ...],
    missing: tuple[str, ...],
) -> None:
    listed = [{"name": name, "inputSchema": {}} for name in names]
    project = read_lists({"tool": listed}, {"name": title})
    found = judge(project, Config(select=("missing-namespace",)))
    assert tuple(each.name for each in found) == missing


@pytest.mark.requirement("names.lint-safe-spelling")
def test_in_sources_the_safe_spelling_has_a_namespace_too(
    lint: Callable[..., Ran], tmp_path: Path
) -> None:
    source = SERVER + "@mcp.tool('shop_buy')\ndef buy(): ...\n@mcp.tool\ndef shop_(): ...\n"
    write(tmp_path, {"pyproject.toml": SETTINGS, "server.py": source})
    ran = lint("--select", "missing-namespace")
    assert [line.split("'")[1] for line in ran.out.splitlines()[:1]] == ["shop_"]
    assert ran.out.splitlines()[1].startswith("Found 1 error")
    names = "@mcp.tool\ndef shop_buy(): ...\n@mcp.tool\ndef shop_sell(): ...\n"
    titled = "[project]\nname = 'mcp-shop'\nversion = '1.0'\n"
    write(tmp_path, {"pyproject.toml": titled, "server.py": SERVER + names})
    assert lint("--select", "missing-namespace").out == "No problems: 2 names of 1 file.\n"


def test_what_cannot_be_known_is_a_note_and_no_fault(
    lint: Callable[..., Ran], tmp_path: Path
) -> None:
    write(tmp_path, {"server.py": SERVER + "for n in x:\n    mcp.tool(name=n)(f)\n"})
    ran = lint("--strict")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == (
        "server.py:6:19: note: The name of this tool is only known at run time."
    )


def test_a_file_that_cannot_be_parsed_is_a_finding(
    lint: Callable[..., Ran], tmp_path: Path
) -> None:
    write(tmp_path, {"server.py": "\n\ndef (\n"})
    ran = lint()
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith("server.py:3:1: error: It is not Python: ")
    assert ran.out.splitlines()[0].endswith("[unreadable]")


WRONG = {
    ("nowhere",): "nowhere: there is no such file or folder",
    ("--select", "nope"): "--select: there is no rule 'nope' (--list-rules has them all)",
    ("--ignore", "generic-names"): (
        "--ignore: there is no rule 'generic-names'; did you mean 'generic-name'? "
        "(--list-rules has them all)"
    ),
    ("--explain", "x"): "--explain: there is no rule 'x' (--list-rules has them all)",
    ("--format", "xml"): "--format must be text, json or sarif, not 'xml'",
    ("--namespace", "My-Shop"): (
        "--namespace must be 3 to 20 lower-case letters and digits, a letter first; "
        "myshop would be one"
    ),
    ("--project-version", "next"): "--project-version must be a version such as 1.4.0, not 'next'",
    ("--timeout", "0", "http://127.0.0.1/mcp"): (
        "--timeout must be a whole number from 1 to 600, not '0'"
    ),
    ("--fix", "--diff"): "give either --fix or --diff",
    ("--fix", "http://127.0.0.1/mcp"): "--fix needs sources, not a server",
    ("--diff", "--", "server"): "--diff needs sources, not a server",
    ("--header", "a=b"): "--header needs the URL of a server",
    ("--header", "sesame", "http://127.0.0.1/mcp"): ("--header must be 'NAME: VALUE'"),
    ("--header", "a=Bearer env:NOT_THERE", "http://127.0.0.1/mcp"): (
        "--header: the environment variable NOT_THERE is not set"
    ),
    ("--header", "a=sesame\n", "http://127.0.0.1/mcp"): (
        "--header: the value of a has more than one line"
    ),
    (".", "http://127.0.0.1/mcp"): "give one URL, and no paths with it",
    (".", "--", "server"): "give either paths, or a URL, or a command after --",
    ("--",): "the command that starts the server is missing after --",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_command_line_is_told_in_one_line(
    arguments: tuple[str, ...], lint: Callable[..., Ran]
) -> None:
    ran = lint(*arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    told, where = ran.err.splitlines()
    assert told == f"folkmoot: error: {WRONG[arguments]}"
    assert where == "Try 'folkmoot names lint --help'."


def test_a_wrong_configuration_ends_with_3(lint: Callable[..., Ran], tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "[tool.folkmoot.names]\nnamspace = 'x'\nselect = 1\n"})
    ran = lint()
    assert (ran.code, ran.out) == (ExitCode.SETTINGS, "")
    assert [line.rpartition("]: ")[2] for line in ran.err.splitlines()] == [
        "there is no key 'namspace'; did you mean 'namespace'?",
        "'select' must be a list of strings",
    ]


def test_diff_shows_what_fix_would_do_and_fix_does_it(
    lint: Callable[..., Ran], faulty: Path
) -> None:
    shown = lint("--diff")
    assert (shown.code, shown.err) == (1, "")
    assert [line for line in shown.out.splitlines() if line.startswith(("+", "-"))] == [
        "--- a/server.py", "+++ b/server.py", "-@mcp.tool", '+@mcp.tool(name="shop:buy")',
    ]  # fmt: skip
    assert (faulty / "server.py").read_text() == FAULTY
    fixed = lint("--fix", "--ignore", "generic-name,register-missing")
    assert fixed == (0, "No problems: 2 names of 1 file.\n", "Fixed server.py.\n")
    assert (faulty / "server.py").read_text() == FAULTY.replace(
        "@mcp.tool\n", '@mcp.tool(name="shop:buy")\n'
    )
    assert lint("--fix").err == ""


def test_json_and_sarif_are_for_programs(lint: Callable[..., Ran], faulty: Path) -> None:
    ran = lint("--format", "json")
    assert ran.code == 1
    told = json.loads(ran.out)
    assert [each["rule"] for each in told["findings"]] == [
        "register-missing", "missing-namespace", "generic-name",
    ]  # fmt: skip
    log = json.loads(lint("--format", "sarif").out)
    assert [each["ruleId"] for each in log["runs"][0]["results"]] == [
        each["rule"] for each in told["findings"]
    ]


def test_every_rule_is_listed_and_explained(lint: Callable[..., Ran]) -> None:
    listed = lint("--list-rules").out.splitlines()
    assert [line.split()[0] for line in listed] == list(RULES)
    assert lint("--explain", "missing-namespace").out == (
        "missing-namespace: an error, a hint with --standalone; --fix can fix it\n"
        "\n"
        "A name begins with the project's namespace, so that it collides with nobody\n"
        "else's behind a gateway.\n"
        "\n"
        'Wrong:  `@mcp.tool(name="create_task")`\n'
        "Fix:    Register it as `myproject:create_task`.\n"
    )
    for rule in RULES:
        told = lint("--explain", rule).out
        assert max(map(len, told.splitlines())) <= 80
        assert "Fix:" in told


@pytest.mark.parametrize("columns", [80, 40])
def test_a_terminal_shows_all_of_it_within_its_width(
    columns: int, on_terminal: Callable[..., str], faulty: Path
) -> None:
    shown = on_terminal("names", "lint", COLUMNS=str(columns), NO_COLOR="1")
    lines = shown.replace("\r", "").splitlines()
    assert max(map(len, lines)) <= columns
    assert "    Tool 'buy' has no namespace. Did you" in shown
    assert lines[-1] == "--fix can fix 1 of them."
    coloured = on_terminal("names", "lint", COLUMNS=str(columns))
    assert "\x1b[1;31merror\x1b[0m" in coloured


def test_a_name_from_a_stranger_cannot_act_on_the_terminal(
    lint: Callable[..., Ran], tmp_path: Path
) -> None:
    write(tmp_path, {"server.py": SERVER + "@mcp.tool('\\x1b[2J\\u202e')\ndef f(): ...\n"})
    for form in ("text", "json", "sarif"):
        out = lint("--format", form).out
        assert "\x1b" not in out
        assert "\u202e" not in out


LISTED: dict[str, Any] = {
    "tools": [{"name": "shop:buy", "inputSchema": {}}, {"name": "get", "inputSchema": {}}],
    "resources": [{"uri": "shop://template/a", "name": "a"}],
    "prompts": [{"name": "shop:plan_day"}],
}


def test_a_server_that_a_command_starts_is_asked(lint: Callable[..., Ran], tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("http://127.0.0.1:9/mcp", "--header", "a=sesame"), "connection refused"),
        (("--", "/nowhere/server"), "it was not found"),
    ],
)
def test_a_server_that_cannot_be_reached_ends_with_7(
    arguments: tuple[str, ...], told: str, lint: Callable[..., Ran]
) -> None:
    ran = lint(*arguments)
    assert (ran.code, ran.out) == (ExitCode.UNREACHABLE, "")
    assert ran.err.startswith("folkmoot: error: The server cannot be asked. ")
    assert told in ran.err
    assert "sesame" not in ran.err


HOOK = """\
- id: folkmoot-names
  name: Validate MCP naming conventions
  description: Check the names of an MCP server's tools, resources and prompts.
  entry: folkmoot names lint
  language: python
  types_or: [python, toml, markdown]
  pass_filenames: false
"""


@pytest.mark.requirement("names.pre-commit")
def test_the_hook_stops_a_commit_with_a_wrong_name_and_lets_a_right_one_pass(
    faulty: Path, environment: dict[str, str]
) -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert text == HOOK
    [entry] = [line.split(":", 1)[1] for line in text.splitlines() if line.startswith("  entry:")]
    subprocess.run(["git", "init", "-q"], cwd=faulty, check=True)
    [name, *arguments] = entry.split()
    assert name == program.PROGRAM
    stopped = forked.run(arguments, cwd=faulty, env=environment, timeout=60)
    assert stopped.returncode == 1
    assert "missing-namespace" in stopped.stdout
    write(faulty, {"server.py": SERVER + "@mcp.tool('shop:buy')\ndef buy(): ...\n"})
    passed = forked.run(arguments, cwd=faulty, env=environment, timeout=60)
    assert passed.returncode == 0
