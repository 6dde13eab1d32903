"""`folkmoot names lint`: a server's names held against the conventions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.headers import HeaderOption, sent_headers
from folkmoot.cli.names.options import (
    DiffOption,
    ExplainOption,
    FixOption,
    FormatOption,
    IgnoreOption,
    ListOption,
    NamespaceOption,
    SelectOption,
    StandaloneOption,
    StrictOption,
    TimeoutOption,
    VersionOption,
    check_rules,
    check_sources_only,
)
from folkmoot.cli.output import complain, say
from folkmoot.cli.text import one_line
from folkmoot.core.errors import FolkmootError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from folkmoot.names.lint.model import LintFinding, Project
    from folkmoot.names.lint.runner import LintOptions

COMMAND: Final = "folkmoot.names.command"
SCHEMES: Final = ("http://", "https://")


class BeforeCommand(TyperCommand):
    """Takes everything behind `--` for the command that starts a server."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the server's command aside."""
        if "--" in args:
            at = args.index("--")
            if at + 1 == len(args):
                ctx.fail("The command that starts the server is missing after --")
            ctx.meta[COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, _: Any) -> list[str]:
        """What stands behind the command's name in its usage."""
        return ["[OPTIONS]", "[PATH... | URL | -- COMMAND...]"]


CLASSES: Final[dict[str, type[TyperCommand]]] = {"lint": BeforeCommand}
"""Commands that are read in a way of their own."""

TargetsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH", show_default=False,
        help="Files and folders of a project, or the address of a running server; or a "
             "server's command after --.  [default: the project around the current folder]",
    ),
]  # fmt: skip


def lint(
    ctx: typer.Context,
    targets: TargetsArgument = None,
    *,
    namespace: NamespaceOption = None,
    standalone: StandaloneOption = False,
    project_version: VersionOption = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    strict: StrictOption = False,
    fix: FixOption = False,
    diff: DiffOption = False,
    form: FormatOption = "text",
    header: HeaderOption = None,
    timeout: TimeoutOption = 30,
    list_rules: ListOption = False,
    explain: ExplainOption = None,
) -> None:
    """Check the names of an MCP server's tools, resources and prompts.

    Reads Python sources without importing them, or asks a running server. The exit code is 0
    without errors, 1 with errors, and 7 if the server cannot be reached. Settings are in
    [tool.folkmoot.names] of pyproject.toml.
    """
    from folkmoot.cli.names import explaining, reporting
    from folkmoot.names.lint.runner import LintOptions, LintRun

    if list_rules:
        explaining.list_rules()
        return
    if explain is not None:
        check_rules("--explain", (explain,))
        explaining.explain(explain)
        return
    wishes = LintOptions(
        namespace=namespace,
        version=project_version,
        standalone=standalone,
        select=check_rules("--select", select),
        ignore=check_rules("--ignore", ignore),
    )
    command: tuple[str, ...] = ctx.meta.get(COMMAND, ())
    server = asked_server(targets or [], command)
    if server is not None:
        check_sources_only(fix=fix, diff=diff)
        project, findings = ask(server, wishes, sent_headers(header), timeout)
    else:
        if header:
            raise typer.BadParameter("--header needs the URL of a server")
        if fix and diff:
            raise typer.BadParameter("give either --fix or --diff")
        linting = LintRun([Path(each) for each in targets or []], wishes)
        if diff:
            for line in linting.fixes().diff():
                say(one_line(line))
        elif fix:
            mend(linting)
        project, findings = linting.project, linting.findings
    if not diff:
        reporting.report(project, findings, form, each_missing="missing-namespace" in wishes.select)
    raise typer.Exit(verdict(findings, strict=strict))


def asked_server(targets: Sequence[str], command: tuple[str, ...]) -> str | tuple[str, ...] | None:
    """The one server that is to be asked; None for sources."""
    urls = [each for each in targets if each.startswith(SCHEMES)]
    missing = [each for each in targets if each not in urls and not Path(each).exists()]
    if missing:
        raise typer.BadParameter(f"{one_line(missing[0])}: there is no such file or folder")
    if command and targets:
        raise typer.BadParameter("give either paths, or a URL, or a command after --")
    if urls and len(targets) > 1:
        raise typer.BadParameter("give one URL, and no paths with it")
    return command or (urls[0] if urls else None)


def ask(
    server: str | tuple[str, ...], wishes: LintOptions, headers: dict[str, str], seconds: int
) -> tuple[Project, list[LintFinding]]:
    """What a running server lists, and what is found about it."""
    import asyncio

    from folkmoot.names.lint.project import Config
    from folkmoot.names.lint.runner import judge
    from folkmoot.names.lint.sources import read_lists
    from folkmoot.relay.upstream.inventory import take_inventory

    try:
        inventory = asyncio.run(take_inventory(server, headers=headers, seconds=seconds))
    except FolkmootError as error:
        complain(f"The server cannot be asked. {error.message}")
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    complain(*inventory.faults, kind="warning")
    config = wishes.over(Config())
    project = read_lists(
        {
            "tool": inventory.tools,
            "resource": inventory.resources,
            "template": inventory.templates,
            "prompt": inventory.prompts,
        },
        inventory.server,
        namespace=config.namespace,
        version=config.version,
    )
    return project, judge(project, config)


def mend(linting: Any) -> None:
    """Write what can be mended, and say so."""
    plan = linting.fixes()
    plan.apply()
    for change in plan.changes:
        say(f"Fixed {one_line(plan.shown(change.path))}.", err=True)
    if plan.changes:
        linting.again()


def verdict(findings: Sequence[LintFinding], *, strict: bool) -> ExitCode:
    """How the command ends."""
    severe = {"error", "warning"} if strict else {"error"}
    return ExitCode.FAILED if any(each.severity in severe for each in findings) else ExitCode.OK
