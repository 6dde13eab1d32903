"""The program: its commands, its exit codes and its last line of defence against errors."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import getdoc
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from folkmoot import __version__
from folkmoot.cli.output import (
    PROGRAM,
    Complaints,
    ExitCode,
    complain,
    exit_code,
    say,
)
from folkmoot.core import errors as e

INVALID = re.compile(r"^Invalid value for '([^']+)': must")
BARE = "Invalid value: "
DEBUG = "FOLKMOOT_DEBUG"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


COMMANDS: dict[str, dict[str, str]] = {
    "Your account": {
        "register": "account:register",
        "login": "login:login",
        "logout": "login:logout",
        "account": "account:app",
        "tokens": "tokens:app",
        "open": "tokens:open_page",
        "connect": "connect:connect",
        "bridge": "bridge:app",
    },
    "Mail and people": {
        "inbox": "mail:inbox",
        "send": "mail:send",
        "reply": "mail:reply",
        "mail": "mail:app",
        "invite": "people:app",
        "digest": "mail:digest",
    },
    "Rooms and decisions": {
        "room": "room:app",
        "asks": "room.decide:asks_app",
        "decisions": "room.decide:decisions",
        "watch": "watch:watch",
    },
    "Run a hub": {
        "serve": "serve:serve",
        "status": "serve:status",
        "doctor": "doctor:doctor",
        "config": "serve:app",
        "people": "operator_people:app",
        "audit": "operator_audit:audit",
        "backup": "backup:backup",
        "restore": "backup:restore",
        "export": "backup:export",
        "keys": "keys:app",
        "store": "store:app",
        "nodes": "store:nodes",
        "drain": "store:drain",
    },
    "Tool servers and rights": {
        "backends": "backends:app",
        "grant": "grants:grant",
        "revoke": "grants:revoke",
        "rights": "grants:rights",
        "policy": "grants:policy_app",
    },
    "Debug and build MCP servers": {
        "call": "call:call",
        "proxy": "proxy:app",
        "tape": "tape:app",
        "names": "names:app",
        "new": "names:new_app",
    },
}
"""Every command and group of commands, under the heading where the help lists it: the module, and
its name there. Only what is run is loaded.
"""
PLACES = {name: place for section in COMMANDS.values() for name, place in section.items()}


def find(name: str) -> tuple[Callable[..., None] | typer.Typer, type[TyperCommand] | None]:
    """The function or group of a command, and how it reads its arguments if not as usual."""
    module, _, attribute = PLACES[name].partition(":")
    loaded = import_module(f"folkmoot.cli.{module}")
    return getattr(loaded, attribute), getattr(loaded, "CLASSES", {}).get(name)


@cache
def made(name: str) -> Any:
    """A command, ready to be run."""
    found, cls = find(name)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name, cls=cls)(found)
    # With this it is a group, and what is in it is made as in any other.
    alone.callback()(lambda: None)
    return get_command(alone).commands[name]  # type: ignore[attr-defined]


class Commands(Mapping[str, Any]):
    """The commands by their names, each made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return made(name)

    def summary(self, name: str, limit: int) -> str:
        """What the help says of a command in one line, for which it need not be made."""
        found, _ = find(name)
        root = found.registered_callback if isinstance(found, typer.Typer) else None
        text = getdoc(found) if root is None else root.help or getdoc(root.callback)
        return TyperCommand(name, help=text).get_short_help_str(limit)

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


class Grouped(TyperGroup):
    """Lists commands under headings."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = Commands()

    def list_commands(self, _: object) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each heading, in columns that are aligned throughout."""
        width = max(map(len, self.list_commands(ctx)))
        limit = formatter.width - 6 - width
        for heading, section in COMMANDS.items():
            rows = [(name.ljust(width), self.commands.summary(name, limit)) for name in section]
            with formatter.section(heading):
                formatter.write_dl(rows)


app = typer.Typer(
    name=PROGRAM,
    cls=Grouped,
    help="One place where people, their AI assistants, agents and MCP tools meet.",
    epilog="Settings come from a TOML file, FOLKMOOT_… variables and options: see "
    "'folkmoot config show'.",
    context_settings=CONTEXT,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def show_version(wanted: bool) -> None:  # noqa: FBT001
    """Print the version and end."""
    if wanted:
        say(f"{PROGRAM} {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version", "-V", callback=show_version, is_eager=True, help="Show the version and exit."
    ),
]


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    *,
    version: VersionOption = False,  # noqa: ARG001
) -> None:
    """The options that all commands share."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


def main() -> None:
    """Run the command line and end with a documented exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line; every failure is one clear line on stderr."""
    prepare_streams()
    logging.lastResort = Complaints(logging.WARNING)
    code = command(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        silence()
        # What ended the command was told already, and may well have been this.
        if code == ExitCode.OK and not isinstance(error, BrokenPipeError):
            complain(f"cannot write the output: {reason(error)}")
        return ExitCode.FAILED
    return code


def prepare_streams() -> None:
    """Let neither a closed stream nor a character a terminal cannot show end the program."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def command(arguments: list[str]) -> int:
    """Run the command and turn what it raises into a line and an exit code."""
    try:
        code = get_command(app).main(arguments, prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        return misused(error)
    except e.FolkmootError as error:
        complain(*error.data.get("problems", [error.message]))
        return exit_code(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except typer.Abort as abort:
        return aborted(abort)
    except BrokenPipeError:
        # Whoever read our output has left: nothing to say, and nobody to say it to.
        silence()
        return ExitCode.FAILED
    except OSError as error:
        if debugging():
            raise
        complain(reason(error))
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 - it is raised again for whoever debugs
        return unexpected(error)
    return code if isinstance(code, int) else ExitCode.OK


def aborted(abort: typer.Abort) -> int:
    """How a command ends that was given up: by its user, or by an error taken for that."""
    if isinstance(abort.__cause__, EOFError):
        # Typer takes any EOFError for the end of the input, also that of a module that is cut off.
        return unexpected(abort.__cause__)
    if isinstance(abort.__context__, EOFError):
        say(err=True)
        complain("no answer was given, so nothing was done.")
        return ExitCode.FAILED
    return ExitCode.INTERRUPTED


def unexpected(error: Exception) -> int:
    """Print one line for an unforeseen error, and return the exit code."""
    if debugging():
        raise error
    told = f"{type(error).__name__}: {error}".splitlines()[0]
    complain(f"unexpected {told} (set {DEBUG}=1 to see where)")
    return ExitCode.UNEXPECTED


def misused(error: typer.TyperException) -> int:
    """One line for a wrong command line, and one that says where to look."""
    message = INVALID.sub(r"\1 must", error.format_message()).removeprefix(BARE).rstrip(".")
    # A name in capitals, such as CLIENT, stays as the help spells it.
    complain(message if message[1:2].isupper() else message[:1].lower() + message[1:])
    context = getattr(error, "ctx", None)
    say(f"Try '{context.command_path if context else PROGRAM} --help'.", err=True)
    return error.exit_code


def debugging() -> bool:
    """Whether whoever runs us wants tracebacks."""
    return bool(os.environ.get(DEBUG))


def reason(error: OSError) -> str:
    """The system's error message in one line."""
    words = (error.strerror or type(error).__name__).lower()
    return f"{error.filename}: {words}" if error.filename else words


def silence() -> None:
    """Let what is still buffered go nowhere, so that the interpreter ends without a word."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
