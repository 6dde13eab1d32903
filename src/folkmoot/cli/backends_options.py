"""What the commands of `folkmoot backends` take, and the table of a backend that it comes to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from folkmoot.settings import BackendSpec

COMMAND: Final = "folkmoot.backends.command"
REFERENCE: Final = re.compile(r"((?:\S.*)?\s)?(env|file):(.+)", re.DOTALL)
PAIR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


class BeforeCommand(TyperCommand):
    """Takes everything behind `--` for a server's command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the server's command aside."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


def command_behind(ctx: typer.Context) -> tuple[str, ...]:
    """The command that stands behind `--`; empty if none does."""
    found: tuple[str, ...] = ctx.meta.get(COMMAND, ())
    return found


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
    """What `--env` options say."""
    return pairs("--env", "NAME=VALUE, NAME=env:VARIABLE or NAME=file:PATH", PAIR, given)


def checked_spec(name: str, table: dict[str, Any]) -> tuple[BackendSpec, list[str]]:
    """The backend that a table from the command line describes, and what is to be said of it."""
    from folkmoot.settings.backend_tables import check_table

    spec, told, notes = check_table(name, table, Path.cwd())
    if spec is None:
        advice = re.sub(r'add namespace = "(\w+)"$', r"give it one with --namespace \1", told[0])
        raise typer.BadParameter(advice)
    return spec, notes


UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", show_default=False,
        help="The server's address; without it, the server is the COMMAND after --.",
    ),
]  # fmt: skip
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NS", show_default=False,
        help="The prefix of its tools' names.  [default: NAME]",
    ),
]  # fmt: skip
EnvOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="NAME=VALUE", show_default=False,
        help="An environment variable for the command; a value of env:VARIABLE or file:PATH "
             "refers to a secret of the hub. May be repeated.",
    ),
]  # fmt: skip
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", show_default=False, help="The backend, by its name or its namespace."
    ),
]  # fmt: skip
