"""`folkmoot config`: what the settings are, and whether a file is valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from folkmoot.cli.backends_show import counted
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, settings_from
from folkmoot.cli.output import aligned, complain, console, on_terminal, say, say_json
from folkmoot.settings.fields import in_effect
from folkmoot.telemetry.redaction import visible

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="The settings file.  [default: the one a hub would read]",
        show_default=False,
    ),
]

app = typer.Typer(help="Show and check the settings.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def config(ctx: typer.Context) -> None:
    """Show and check the settings."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def show(
    config: ConfigOption = None,
    data: DataOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show every setting, its effective value and where it came from.

    Of backends, only values that differ from the default. Secrets are masked; references to them
    are shown.
    """
    loaded = settings_from(config, data=data)
    effect = list(in_effect(loaded))
    if as_json:
        told = {path: {"value": value, "origin": origin} for path, value, origin in effect}
        say_json({"file": loaded.file, "settings": told})
        return
    rows = [(path, json.dumps(value, ensure_ascii=False), origin) for path, value, origin in effect]
    if on_terminal():
        draw(rows)
    else:
        for line in aligned(rows):
            say(line)


@app.command()
def check(
    file: FileArgument = None,
    data: DataOption = None,
) -> None:
    """Check a settings file and report every problem.

    Also checks the environment, as a hub would read both. Each problem is reported with its line,
    and the exit code is 3.
    """
    loaded = settings_from(str(file) if file else None, runs=True, data=data)
    if loaded.file is None:
        say("There is no settings file. The environment is valid.")
        return
    count = sum(origin.startswith(f"{loaded.file}:") for origin in loaded.origins.values())
    told = [counted(count, "setting")]
    if loaded.gateway.backends:
        told.append(counted(len(loaded.gateway.backends), "backend"))
    say(f"{loaded.file} is valid: {' and '.join(told)} in effect.")
    for note in (*loaded.notes, *loaded.advice):
        complain(f"{note}.", kind="warning")


def draw(rows: list[tuple[str, str, str]]) -> None:
    """The settings as a table without lines; what is not the default stands out."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Setting", no_wrap=True)
    table.add_column("Value", overflow="fold")
    table.add_column("From", overflow="fold")
    for path, value, origin in rows:
        style = "dim" if origin == "default" else "bold"
        shown = (Text(visible(cell), style=style) for cell in (value, origin))
        table.add_row(Text(path), *shown)
    console().print(table)
