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
        metavar="NAME", help="The server's name, such as my-server.", show_default=False
    ),
]
PathOption = Annotated[
    Path | None,
    typer.Option(
        "--path", metavar="DIR",
        help="The folder to create.  [default: NAME, in the current folder]",
        show_default=False,
    ),
]  # fmt: skip
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NS",
        help="The namespace of its names.  [default: derived from NAME]",
        show_default=False,
    ),
]  # fmt: skip
SdkOption = Annotated[
    str,
    choice(
        "--sdk", "SDK", ("mcp", "fastmcp"),
        "The SDK: mcp, the official one, or fastmcp.  [default: mcp]",
    ),
]  # fmt: skip

app = typer.Typer(help="Create a new MCP server.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context) -> None:
    """Create a new MCP server."""
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
    """Create a small, complete MCP server.

    It keeps a task list, with tools, resources and a prompt, over stdio and HTTP. Its names follow
    the conventions, and it has tests. Replace its tools with yours. A folder that is not empty is
    not changed.
    """
    from folkmoot.names.generate.server import SDKS, check_server, plan_server

    wanted = check_server(name, namespace, next(known for known in SDKS if known == sdk))
    folder = path or Path(name)
    plan = plan_server(wanted, folder)
    plan.apply()
    say(f"Created {folder}, an MCP server with the namespace {wanted.namespace}:")
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
