"""The page of all commands, options and exit codes, from `folkmoot.cli`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from typer.main import get_command

from docs.pages.markdown import document, table
from folkmoot.cli.output import PROGRAM, ExitCode
from folkmoot.cli.program import COMMANDS, app

if TYPE_CHECKING:
    from collections.abc import Iterator

INTRODUCTION = """\
Every command has `-h` and `--help`. Results go to stdout and everything else to stderr; a failure
is one line, `folkmoot: error: …`, and an exit code of the table below. On a terminal the output has
some colour unless `NO_COLOR` is set; in a pipe it is plain text. Completion for your shell is set
up by `folkmoot --install-completion`."""

EXIT_CODES = """\
## Exit codes

What a script may rely on:"""


EXIT_CODE_MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: (
        "Success; or a command that runs until it is stopped was stopped, and "
        "everything is written."
    ),
    ExitCode.FAILED: (
        "The command failed, or found something: `doctor` a problem, `tape diff` and `tape play` "
        "a difference, `tape serve --strict` a mismatch, `names lint` an error."
    ),
    ExitCode.USAGE: "The command line is wrong: an unknown command or option, or a wrong value.",
    ExitCode.SETTINGS: (
        "The settings file or a `FOLKMOOT_…` variable is not valid, or the file cannot be changed."
    ),
    ExitCode.DATA: (
        "The data folder, the database, the bus, the master key or a key for redaction cannot be "
        "used."
    ),
    ExitCode.LISTEN: (
        "A hub, a proxy or a served tape cannot listen: the port is taken or the address is not "
        "usable."
    ),
    ExitCode.NOT_RUNNING: ("The command needs a running hub (or proxy), and none is running."),
    ExitCode.UNREACHABLE: ("No hub answers at the address (for `names lint`: no server)."),
    ExitCode.SIGNED_OUT: "The command needs an account: none is saved, or its token is not valid.",
    ExitCode.UNEXPECTED: "Unexpected error; `FOLKMOOT_DEBUG=1` shows the traceback.",
    ExitCode.INTERRUPTED: (
        "Interrupted with Ctrl-C. Commands that run until then (`serve`, `proxy`, "
        "`tape serve`, the view of `room join`) exit with 0 instead."
    ),
}


def page() -> str:
    """The whole page."""
    sections = (
        [heading, ", ".join(f"[`{name}`](#folkmoot-{name})" for name in section)]
        for heading, section in COMMANDS.items()
    )
    codes = ([str(code.value), meaning] for code, meaning in EXIT_CODE_MEANINGS.items())
    return document(
        "# Commands",
        INTRODUCTION,
        table(["For", "Commands"], sections),
        *described(get_command(app), PROGRAM),
        EXIT_CODES,
        table(["Code", "Meaning"], codes),
    )


def described(command: Any, path: str) -> Iterator[str]:
    """A command with its options, then the commands below it."""
    yield f"## `{path}`"
    # What a terminal shows as it stands would be a comment here.
    yield inspect.cleandoc(command.help or "").replace("\b\n", "").replace("<!--", "\\<!--")
    rows = [row(param) for param in command.params if not getattr(param, "hidden", False)]
    if rows:
        yield table(["Option", "Meaning"], rows)
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from described(inner, f"{path} {name}")


def row(param: Any) -> list[str]:
    """One option or argument with what it takes."""
    names = param.opts if param.param_type_name == "option" else [param.metavar]
    takes = f" {param.metavar}" if param.param_type_name == "option" and param.metavar else ""
    return [", ".join(f"`{name}{takes}`" for name in names), " ".join((param.help or "").split())]
