"""`folkmoot names` and `folkmoot new`: check and document names, create an MCP server."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import structs
from typer.core import TyperCommand

from folkmoot.cli.commands import group
from folkmoot.cli.names import lint
from folkmoot.cli.names.lint import (
    LintCommand,
    NamespaceOption,
    TimeoutOption,
    VersionOption,
    ask,
    asked_server,
)
from folkmoot.cli.options import (
    HeaderOption,
    argument,
    choice,
    command_behind,
    flag,
    option,
    sent_headers,
)
from folkmoot.cli.output import ExitCode, aligned, coloured, complain, one_line, say
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.names.generate.plan import Plan
    from folkmoot.names.lint.model import Project
    from folkmoot.names.lint.runner import LintOptions


COLOURS = {"+": "green", "-": "red", "@": "cyan"}

DiffOption = Annotated[bool, flag("--diff", "Show the changes, but do not write them.")]


def say_diff(plan: Plan) -> None:
    """The difference that a plan makes."""
    colour = coloured(sys.stdout)
    for line in plan.diff():
        shown = one_line(line).replace("\\x09", "\t")
        fg = COLOURS.get(line[:1]) if colour and not line.startswith(("+++", "---")) else None
        typer.echo(typer.style(shown, fg=fg) if fg else shown)


STDOUT = "-"

TargetArgument = Annotated[
    str | None,
    argument(
        "PATH",
        "The project's folder, or the address of a running server; or a server's command after "
        "--.  [default: the project around the current folder]",
    ),
]
CheckOption = Annotated[
    bool, flag("--check", "Write nothing; exit with 1 if the page is out of date.")
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", show_default=False,
        help="The page to write; - prints it.  [default: NAMESPACES.md of the project]",
    ),
]  # fmt: skip
ForceOption = Annotated[
    bool, flag("--force", "Replace a page that does not mark which part may be rewritten.")
]


class OneTarget(LintCommand):
    """Shows in its usage that there is one project or server."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """What stands behind the command's name in its usage."""
        return ["[OPTIONS]", "[PATH | URL | -- COMMAND...]"]


def doc(
    ctx: typer.Context,
    target: TargetArgument = None,
    *,
    check: CheckOption = False,
    output: OutputOption = None,
    diff: DiffOption = False,
    force: ForceOption = False,
    namespace: NamespaceOption = None,
    project_version: VersionOption = None,
    header: HeaderOption = None,
    timeout: TimeoutOption = 30,
) -> None:
    """Write NAMESPACES.md, a page with all names.

    It lists the namespace, and every tool, resource and prompt in it. Reads Python sources without
    importing them, or asks a running server. Text outside the lines <!-- folkmoot:begin --> and
    <!-- folkmoot:end --> is kept, and a tool keeps the version in which it was first listed. A
    deprecated tool is omitted from the release after its deprecation.
    """
    from folkmoot.names.generate import namespaces_md
    from folkmoot.names.generate.plan import Plan, with_ends_of
    from folkmoot.names.lint.runner import LintOptions

    if check and diff:
        raise typer.BadParameter("give either --check or --diff")
    wishes = LintOptions(namespace=namespace, version=project_version)
    server = asked_server([target] if target else [], command_behind(ctx))
    if server is not None:
        project, helper = from_server(server, wishes, sent_headers(header), timeout)
    elif header:
        raise typer.BadParameter("--header needs the URL of a server")
    else:
        project, helper = from_sources(Path(target or "."), wishes)
    if project.namespace is None:
        raise e.ProjectUnusable("The names do not share a namespace. Give it with --namespace.")
    page = Path(output) if output and output != STDOUT else project.root / project.namespaces_file
    plan = Plan(project.root)
    before = plan.read(page) if output != STDOUT else None
    if check:
        compare(project, page, before)
        return
    make = namespaces_md.replace if force else namespaces_md.render
    text = with_ends_of(before or "", make(project, before, helper=helper))
    if output == STDOUT:
        say(text.rstrip("\n"))
        return
    plan.write(page, text)
    finish(plan, page, diff=diff)


def from_sources(path: Path, wishes: LintOptions) -> tuple[Project, str | None]:
    """What the sources of a project declare, and where its helper module is."""
    from folkmoot.names.generate.plan import find_layout
    from folkmoot.names.lint.runner import configured
    from folkmoot.names.lint.sources import read_sources

    layout = find_layout(path)
    project = read_sources([layout.root], configured([layout.root], wishes))
    if project.unreadable:
        told = [
            f"{it.place.path if it.place else 'A file'}: {it.message}" for it in project.unreadable
        ]
        raise e.ProjectUnusable(told[0], problems=told)
    for note in project.notes:
        place = f"{note.place.path}:{note.place.line}"
        complain(one_line(f"{place}: {note.message}"), kind="warning")
    return project, layout.shown(layout.helper) if layout.helper else None


def from_server(
    server: str | tuple[str, ...], wishes: LintOptions, headers: dict[str, str], seconds: int
) -> tuple[Project, str | None]:
    """What a running server lists, as the names of the project around the current folder."""
    from folkmoot.names.generate.plan import find_layout

    layout = find_layout(Path.cwd())
    config = layout.found.config
    asked = structs.replace(wishes, namespace=wishes.namespace or config.namespace)
    project, _ = ask(server, asked, headers, seconds)
    project.root, project.name = layout.root, layout.found.name or project.name
    project.namespaces_file = config.namespaces_file
    return project, layout.shown(layout.helper) if layout.helper else None


def compare(project: Project, page: Path, text: str | None) -> None:
    """Say what of the page is out of date, and end accordingly."""
    from folkmoot.names.generate import namespaces_md

    if text is None:
        complain(f"{page} does not exist. 'folkmoot names doc' writes it.")
        raise typer.Exit(ExitCode.FAILED)
    found = namespaces_md.differences(project, text)
    if not found:
        say(f"{page} is up to date.")
        return
    say(f"{page} is out of date:")
    for sentence in found:
        say(f"  {one_line(sentence)}")
    raise typer.Exit(ExitCode.FAILED)


def finish(plan: Plan, page: Path, *, diff: bool) -> None:
    """Write the page, or show what would be different."""
    if diff:
        say_diff(plan)
        return
    changed = plan.changes
    plan.apply()
    verb = "is up to date" if not changed else "written" if changed[0].before is None else "changed"
    say(f"{page} {verb}.")


NameArgument = Annotated[str, argument("NAME", "The server's name, such as my-server.")]
PathOption = Annotated[
    Path | None,
    option("--path", "DIR", "The folder to create.  [default: NAME, in the current folder]"),
]
NewNamespaceOption = Annotated[
    str | None,
    option("--namespace", "NS", "The namespace of its names.  [default: derived from NAME]"),
]
SdkOption = Annotated[
    str,
    choice(
        "--sdk", "SDK", ("mcp", "fastmcp"),
        "The SDK: mcp, the official one, or fastmcp.  [default: mcp]",
    ),
]  # fmt: skip

new_app = group({}, "Create a new MCP server.")


@new_app.command()
def server(
    name: NameArgument,
    path: PathOption = None,
    namespace: NewNamespaceOption = None,
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


COMMANDS: dict[str, Callable[..., None]] = {
    "lint": lint.lint,
    "doc": doc,
}
"""Every command of the group by its name."""

CLASSES: dict[str, type[TyperCommand]] = {**lint.CLASSES, "doc": OneTarget}
"""Commands that are read in a way of their own."""

app = group(COMMANDS, "Check and document the names of an MCP server.", classes=CLASSES)
