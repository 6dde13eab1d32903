"""`folkmoot new server`: a small complete MCP server that follows the conventions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import choice
from folkmoot.cli.output import aligned, say

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="What the server is called: my-server.", show_default=False
    ),
]
PathOption = Annotated[
    Path | None,
    typer.Option(
        "--path", metavar="DIR", help="The folder to make.  [default: NAME, here]",
        show_default=False,
    ),
]  # fmt: skip
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NS", help="What its names begin with.  [default: made of NAME]",
        show_default=False,
    ),
]  # fmt: skip
SdkOption = Annotated[
    str,
    choice(
        "--sdk", "SDK", ("mcp", "fastmcp"),
        "What it is made with: mcp, the official SDK, or fastmcp.  [default: mcp]",
    ),
]  # fmt: skip

app = typer.Typer(help="Make something new: an MCP server.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context) -> None:
    """Make something new: an MCP server."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def server(
    name: NameArgument,
    path: PathOption = None,
    namespace: NamespaceOption = None,
    sdk: SdkOption = "mcp",
) -> None:
    """Make a small, complete MCP server.

    It keeps a task list, with tools, resources and a prompt, over stdio and HTTP. Its names follow
    the conventions, and it has its own tests. Put your tools where its are. A folder that has
    something in it is left alone.
    """
    from folkmoot.names.generate.server import SDKS, check_server, plan_server

    wanted = check_server(name, namespace, next(known for known in SDKS if known == sdk))
    folder = path or Path(name)
    plan = plan_server(wanted, folder)
    plan.apply()
    say(f"Made {folder}, an MCP server with the namespace {wanted.namespace}:")
    say()
    for line in aligned((f"  {plan.shown(it.path)}",) for it in plan.changes):
        say(line)
    say()
    say("Next:")
    say()
    for line in next_steps(folder, name):
        say(f"  {line}")


def next_steps(folder: Path, name: str) -> list[str]:
    """Commands to go on with."""
    steps = [
        (f"cd {shlex.quote(str(folder))}", ""),
        ("python -m venv .venv && . .venv/bin/activate", ""),
        ("pip install -e '.[dev]'", ""),
        ("pytest", "its own tests"),
        ("folkmoot names lint .", "its names"),
        (name, "over stdio, or with --http"),
    ]
    return aligned((command, f"# {note}" if note else "") for command, note in steps)
