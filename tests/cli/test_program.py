"""The program around its commands: help, version, mistakes, and how it ends."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from docs.pages.commands import EXIT_CODE_MEANINGS
from folkmoot import __version__
from folkmoot.cli import program, serve
from folkmoot.cli.output import (
    ENDS,
    ExitCode,
    exit_code,
)
from folkmoot.core import errors as e
from tests.forge.forked import Forked


def test_the_version_is_printed(cli):
    assert cli("--version") == (0, f"folkmoot {__version__}\n", "")


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


def test_every_command_explains_itself_within_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    every = dict(commands(get_command(program.app), ("folkmoot",)))
    assert len(every) > 100
    for path, command in every.items():
        with command.make_context(path, [], resilient_parsing=True) as context:
            text = command.get_help(context)
        assert text.startswith(f"Usage: {path} "), text
        assert max(map(len, text.splitlines())) <= 80, text
        assert re.search(r"<[a-z]+(\[\w+\])?>", text) is None, "a type of Python says nothing"
        assert "..." not in re.sub(r"[\]A-Z}]\.\.\.", "", text), text


@pytest.mark.parametrize("command", [[], ["room"], ["room", "join"]], ids=" ".join)
def test_the_short_option_is_the_same(cli, command):
    assert cli(*command, "-h") == cli(*command, "--help")


def test_the_help_says_of_a_command_what_the_command_says_of_itself():
    commands = program.Commands()
    for name, command in commands.items():
        assert commands.summary(name, 60) == command.get_short_help_str(60)


def test_the_help_lists_every_command_once_under_six_headings(cli):
    shown = cli("--help").out
    assert len(program.COMMANDS) == 6
    place = -1
    for heading, section in program.COMMANDS.items():
        place = shown.index(f"\n{heading}:\n", place + 1)
        rows = shown[place:].partition(":\n")[2].partition("\n\n")[0].splitlines()
        assert [row.split()[0] for row in rows] == list(section)


@pytest.mark.parametrize("command", [[], ["config"]], ids=" ".join)
def test_a_group_without_a_command_shows_its_help_as_a_mistake(cli, command):
    cli.fails(*command, told="Usage: folkmoot", code=ExitCode.USAGE)


def test_an_unexpected_error_is_one_line_that_says_how_to_see_more(monkeypatch, capsys):
    monkeypatch.setattr(serve, "settings_from", lambda *_, **__: 1 / 0)
    assert program.run(["config", "show"]) == ExitCode.UNEXPECTED
    assert capsys.readouterr().err == (
        "folkmoot: error: unexpected ZeroDivisionError: division by zero "
        "(set FOLKMOOT_DEBUG=1 to see where)\n"
    )
    monkeypatch.setenv("FOLKMOOT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        program.run(["config", "show"])


@pytest.mark.parametrize(
    ("damaged", "told"),
    [
        ("folkmoot.cli.program", "the installation is damaged: marshal data too short"),
        pytest.param(
            "folkmoot.proxy.tape.reader",
            "unexpected EOFError: marshal data too short (set FOLKMOOT_",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_compiled_module_that_is_cut_off_is_an_error_and_no_interruption(tmp_path, damaged, told):
    script = (
        "import py_compile, sys\n"
        "from importlib.util import find_spec\n"
        f"source = find_spec({damaged!r}).origin\n"
        "compiled = py_compile.compile(source)\n"
        "with open(compiled, 'r+b') as file:\n"
        "    file.truncate(100)\n"
        "for name in [name for name in sys.modules if name.startswith('folkmoot')]:\n"
        "    del sys.modules[name]\n"
        "from folkmoot.cli import main\n"
        "sys.argv[1:] = ['tape', 'list']\n"
        "main()\n"
    )
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environ
    )
    assert ran.returncode == ExitCode.UNEXPECTED
    assert ran.stderr.strip().startswith(f"folkmoot: error: {told}")


def test_a_question_that_nobody_answers_ends_with_an_error(monkeypatch, capsys):
    monkeypatch.setattr(serve, "settings_from", lambda *_, **__: typer.confirm("Go?", abort=True))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert program.run(["config", "show"]) == ExitCode.FAILED
    told = capsys.readouterr().err
    assert told == "\nfolkmoot: error: no answer was given, so nothing was done.\n"


def test_a_reader_that_leaves_early_is_not_an_error_worth_a_word(cli):
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["config", "show", "--json"]
    shown = Forked(arguments, env=cli.environ, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert shown.communicate()[1] == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_one_line(cli):
    with Path("/dev/full").open("wb") as full:
        shown = Forked(["config", "show"], env=cli.environ, stdout=full, stderr=subprocess.PIPE)
    told = shown.communicate()[1]
    assert shown.returncode == ExitCode.FAILED
    assert re.fullmatch(r"folkmoot: error: .*no space left on device\n", told)


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(">&-", marks=pytest.mark.long),
        pytest.param("2>&-", marks=pytest.mark.long),
        ">&- 2>&-",
    ],
)
def test_a_closed_stream_is_no_error(cli, closed):
    ran = subprocess.run(
        f"{sys.executable} -m folkmoot config show {closed}",
        shell=True, capture_output=True, text=True, check=False, env=cli.environ,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")


def test_errors_on_a_terminal_have_colour_unless_it_is_unwanted(cli):
    assert "\x1b[" in cli.shown("serv")
    assert "\x1b[" not in cli.shown("serv", NO_COLOR="1")


def test_every_exit_code_has_a_meaning_and_every_error_an_exit_code():
    assert set(EXIT_CODE_MEANINGS) == set(ExitCode)
    assert set(ENDS.values()) <= set(ExitCode)
    for error in e.ERRORS.values():
        assert exit_code(error.__new__(error)) in set(ExitCode)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_every_shell(cli, shell):
    ran = cli(_FOLKMOOT_COMPLETE=f"source_{shell}")
    assert ran.code == 0
    assert "_FOLKMOOT_COMPLETE" in ran.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("folkmoot s", {"send", "serve", "status", "store"}),
        ("folkmoot config ", {"show", "check"}),
        ("folkmoot serve --log-level ", {"debug", "info", "warning", "error"}),
        ("folkmoot serve --log-f", {"--log-format"}),
        ("folkmoot mail list --state ", {"active", "archived", "muted", "starred"}),
    ],
)
def test_bash_completes_commands_options_and_values(cli, words, expected):
    count = str(len(words.split(" ")) - 1)
    ran = cli(_FOLKMOOT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)
    assert set(ran.out.split()) == expected


def test_help_loads_neither_the_hub_nor_other_commands(cli):
    script = (
        "import sys\n"
        "from folkmoot.cli import program\n"
        "program.run(['--version']); program.run(['inbox', '--help'])\n"
        "unwanted = {'folkmoot.cli.account', 'folkmoot.cli.room'} & set(sys.modules)\n"
        "program.run(['--help'])\n"
        "unwanted |= {'uvicorn', 'starlette', 'apsw', 'rich', 'asyncio'} & set(sys.modules)\n"
        "print(sorted(unwanted))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=cli.environ
    )
    assert ran.stdout.splitlines()[-1] == "[]"
