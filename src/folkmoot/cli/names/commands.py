"""The table of commands on names."""

from __future__ import annotations

from collections.abc import Callable

import typer
from typer.core import TyperCommand

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.names import doc, lint
from folkmoot.cli.output import say

COMMANDS: dict[str, Callable[..., None]] = {
    "lint": lint.lint,
    "doc": doc.doc,
}
"""Every command of the group by its name."""

CLASSES: dict[str, type[TyperCommand]] = {**lint.CLASSES, "doc": doc.OneTarget}
"""Commands that are read in a way of their own."""

app = typer.Typer(
    help="Check and document the names of an MCP server.",
    rich_markup_mode=None,
)
for name, what in COMMANDS.items():
    app.command(name, cls=CLASSES.get(name))(what)


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context) -> None:
    """Check and document the names of an MCP server."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)
