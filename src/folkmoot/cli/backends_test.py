"""`folkmoot backends test`: connect to a server once, and show what it offers."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from folkmoot.cli.commands import Output, with_json_option
from folkmoot.cli.limits import MAX_NAMES
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    HeaderOption,
    argument,
    command_behind,
    option,
    written_headers,
)
from folkmoot.cli.output import complain, on_terminal, say
from folkmoot.cli.show import counted, word
from folkmoot.core import errors as e
from folkmoot.settings import BackendSpec, Loaded

if TYPE_CHECKING:
    from folkmoot.gateway.trial import Named, Tried


REFERENCE: Final = re.compile(r"((?:\S.*)?\s)?(env|file):(.+)", re.DOTALL)
PAIR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def value_of(text: str) -> str | dict[str, str]:
    """A value as a table holds it: `env:NAME` and `file:PATH` refer to one, perhaps behind words.

    A path is made absolute: the settings file may be anywhere.
    """
    found = REFERENCE.fullmatch(text)
    if found is None:
        return text
    prefix, kind, name = found.groups()
    told = str(Path(name).expanduser().absolute()) if kind == "file" else name
    return {kind: told, **({"prefix": prefix} if prefix else {})}


def pairs(
    option: str, form: str, pattern: re.Pattern[str], given: Sequence[str] | None
) -> dict[str, Any]:
    """Options of the form NAME=VALUE by name."""
    values: dict[str, Any] = {}
    for text in given or ():
        found = pattern.fullmatch(text)
        if found is None:
            # What was given instead may well be a secret.
            raise typer.BadParameter(f"{option} must be {form}")
        if found[1] in values:
            raise typer.BadParameter(f"{option} names {found[1]} twice")
        values[found[1]] = value_of(found[2])
    return values


def variables(given: Sequence[str] | None) -> dict[str, Any]:
    """The environment variables given by `--env`."""
    return pairs("--env", "NAME=VALUE, NAME=env:VARIABLE or NAME=file:PATH", PAIR, given)


def check_table(name: str, table: dict[str, Any]) -> None:
    """Refuse a command line that describes no server, before anyone is asked."""
    from folkmoot.settings import backend_tables

    spec, told, _ = backend_tables.check_table(name, table, Path.cwd())
    if spec is None:
        wrong = told[0].removeprefix(f"{name}: ")
        advice = re.sub(r'add namespace = "(\w+)"$', r"give it one with --namespace \1", wrong)
        raise typer.BadParameter(advice)


UrlOption = Annotated[
    str | None,
    option("--url", "URL", "The server's address; without it, the server is the COMMAND after --."),
]
NamespaceOption = Annotated[
    str | None, option("--namespace", "NS", "The prefix of its tools' names.  [default: NAME]")
]
EnvOption = Annotated[
    list[str] | None,
    option(
        "--env", "NAME=VALUE",
        "An environment variable for the command; a value of env:VARIABLE or file:PATH refers to "
        "a secret of the hub. May be repeated.",
    ),
]  # fmt: skip
NameArgument = Annotated[str, argument("NAME", "The backend, by its name or its namespace.")]


NAMELESS = "tested"
"""The name of a server that is only tried out."""


WhichArgument = Annotated[
    str | None,
    argument(
        "[NAME | -- COMMAND...]",
        "A backend of the settings, or the command that starts another server.",
    ),
]


@with_json_option
def try_out(
    ctx: typer.Context,
    name: WhichArgument = None,
    url: UrlOption = None,
    namespace: NamespaceOption = None,
    env: EnvOption = None,
    header: HeaderOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
) -> Output:
    """Connect to a server once, and show what it offers.

    Shows the names its tools would have here, and which could not be listed and why. Nothing is
    saved. A running hub connects to it, with its own environment; without one, this command does.
    The exit code is 1 when the server cannot be reached.
    """
    command = command_behind(ctx)
    if bool(name) + bool(url) + bool(command) != 1:
        raise typer.BadParameter("give a NAME, or --url URL, or a command after --")
    hub = OperatedHub(config, data, starts=True)
    if name:
        if namespace or env or header:
            raise typer.BadParameter("--namespace, --env and --header are for other servers")
        found = hub.test_server(name=name).tried
    else:
        name, table = namespace or NAMELESS, table_of(url, command, env, header)
        check_table(name, table)
        found = hub.test_server(name=name, table=table).tried
    return Output(found, lambda: show_tried(found), failed=not found.ok)


def table_of(
    url: str | None,
    command: Sequence[str],
    env: Sequence[str] | None,
    header: Sequence[str] | None,
    **more: Any,
) -> dict[str, Any]:
    """The settings table of a server that the command line describes."""
    return {
        **({"url": url} if url else {"command": list(command)}),
        **more,
        **({"env": variables(env)} if env else {}),
        **({"headers": written_headers(header)} if header else {}),
    }


def find_spec(loaded: Loaded, name: str) -> BackendSpec:
    """A backend of the settings, by its name or its namespace."""
    for spec in loaded.gateway.backends.values():
        if name in (spec.name, spec.namespace):
            return spec
    raise e.BackendUnknown(f"The settings have no backend {word(name)}.")


def show_tried(tried: Tried) -> None:
    """What came of a test, for people."""
    if not tried.ok:
        who = "" if tried.namespace == NAMELESS else f"{tried.namespace}: "
        complain(f"{who}{word(tried.why)}")
        return
    server = " ".join(filter(None, (word(tried.server), tried.version and word(tried.version))))
    say(f"Reached {server} in {tried.seconds:.1f} s, over {tried.transport}, {tried.era} era.")
    sorts = (
        ("tool", tried.tools),
        ("prompt", tried.prompts),
        ("resource", tried.resources),
        ("template", tried.templates),
    )
    width = shutil.get_terminal_size().columns if on_terminal() else None
    for noun, named in sorts:
        if named:
            say(f"{counted(len(named), noun)}:")
            for line in name_lines(named, width):
                say(line)
    if not any(named for _, named in sorts):
        say("It offers nothing.")
    room = max((width or 80) - 2, 10)
    if tried.faults:
        say("What is wrong:")
        for fault in tried.faults:
            say(textwrap.indent(textwrap.fill(word(fault), room, break_on_hyphens=False), "  "))
    if tried.advice:
        say(textwrap.fill(word(tried.advice), room, break_on_hyphens=False))


def name_lines(named: list[Named], width: int | None) -> Iterator[str]:
    """The names of things, with the server's own where that is another."""
    for each in named[:MAX_NAMES]:
        _, _, short = each.name.partition(":")
        line = f"  {word(each.name)}"
        own = "" if each.own in (short, each.name) else f"(there: {word(each.own)})"
        if width is not None and len(line) + len(own) + 2 > width:
            yield line
            line = "  "
        if own or line.strip():
            yield f"{line}  {own}".rstrip()
        if each.findings:
            yield f"    suspicious: {', '.join(each.findings)}"
    if len(named) > MAX_NAMES:
        yield f"  … and {len(named) - MAX_NAMES:,} more"
