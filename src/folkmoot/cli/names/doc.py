"""`folkmoot names doc`: write `NAMESPACES.md` from the sources, or from what a server lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import structs

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.headers import HeaderOption, sent_headers
from folkmoot.cli.names.files import DiffOption, say_diff
from folkmoot.cli.names.lint import COMMAND, BeforeCommand, ask, asked_server
from folkmoot.cli.names.options import (
    NamespaceOption,
    TimeoutOption,
    VersionOption,
)
from folkmoot.cli.output import complain, say
from folkmoot.cli.text import one_line
from folkmoot.core.errors import ProjectUnusable

if TYPE_CHECKING:
    from folkmoot.names.generate.plan import Plan
    from folkmoot.names.lint.model import Project
    from folkmoot.names.lint.runner import LintOptions

STDOUT = "-"

TargetArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH", show_default=False,
        help="The project's folder, or the address of a running server; or a server's "
             "command after --.  [default: the project around the current folder]",
    ),
]  # fmt: skip
CheckOption = Annotated[
    bool,
    typer.Option(
        "--check", help="Write nothing; exit with 1 if the page is out of date.", show_default=False
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", show_default=False,
        help="The page to write; - prints it.  [default: NAMESPACES.md of the project]",
    ),
]  # fmt: skip
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", show_default=False,
        help="Replace a page that does not mark which part may be rewritten.",
    ),
]  # fmt: skip


class OneTarget(BeforeCommand):
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
    server = asked_server([target] if target else [], ctx.meta.get(COMMAND, ()))
    if server is not None:
        project, helper = from_server(server, wishes, sent_headers(header), timeout)
    elif header:
        raise typer.BadParameter("--header needs the URL of a server")
    else:
        project, helper = from_sources(Path(target or "."), wishes)
    if project.namespace is None:
        raise ProjectUnusable("The names do not share a namespace. Give it with --namespace.")
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
    from folkmoot.names.generate.layout import find_layout
    from folkmoot.names.lint.runner import configured
    from folkmoot.names.lint.sources import read_sources

    layout = find_layout(path)
    project = read_sources([layout.root], configured([layout.root], wishes))
    if project.unreadable:
        told = [
            f"{it.place.path if it.place else 'A file'}: {it.message}" for it in project.unreadable
        ]
        raise ProjectUnusable(told[0], problems=told)
    for note in project.notes:
        place = f"{note.place.path}:{note.place.line}"
        complain(one_line(f"{place}: {note.message}"), kind="warning")
    return project, layout.shown(layout.helper) if layout.helper else None


def from_server(
    server: str | tuple[str, ...], wishes: LintOptions, headers: dict[str, str], seconds: int
) -> tuple[Project, str | None]:
    """What a running server lists, as the names of the project around the current folder."""
    from folkmoot.names.generate.layout import find_layout

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
