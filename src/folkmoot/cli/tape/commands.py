"""The table of commands on tapes."""

from __future__ import annotations

from collections.abc import Callable

import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.output import say
from folkmoot.cli.tape import giving, judging, looking, play, serve

COMMANDS: dict[str, Callable[..., None]] = {
    "list": looking.list_tapes,
    "show": looking.show,
    "stats": looking.stats,
    "diff": judging.diff,
    "redact": giving.redact,
    "export": giving.export,
    "serve": serve.serve,
    "play": play.play,
}
"""Every command of the group by its name."""

app = typer.Typer(
    help="Inspect, compare and replay recorded conversations.",
    rich_markup_mode=None,
)
for name, what in COMMANDS.items():
    app.command(name)(what)


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context) -> None:
    """Inspect, compare and replay recorded conversations."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)
