"""A plan of files as people see it: what happens to each, or the whole difference."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.output import coloured
from folkmoot.cli.text import one_line

if TYPE_CHECKING:
    from folkmoot.names.generate.plan import Plan

COLOURS = {"+": "green", "-": "red", "@": "cyan"}

DiffOption = Annotated[
    bool,
    typer.Option("--diff", help="Show the changes, but do not write them.", show_default=False),
]


def say_diff(plan: Plan) -> None:
    """The difference that a plan makes."""
    colour = coloured(sys.stdout)
    for line in plan.diff():
        shown = one_line(line).replace("\\x09", "\t")
        fg = COLOURS.get(line[:1]) if colour and not line.startswith(("+++", "---")) else None
        typer.echo(typer.style(shown, fg=fg) if fg else shown)
