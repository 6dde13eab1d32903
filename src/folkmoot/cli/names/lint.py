"""`folkmoot names lint`: check the names of an MCP server's tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from folkmoot.cli.options import (
    HeaderOption,
    ServerCommand,
    argument,
    choice,
    command_behind,
    flag,
    number,
    option,
    sent_headers,
)
from folkmoot.cli.output import ExitCode, complain, one_line, say
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from collections.abc import Sequence

    from folkmoot.names.lint.model import LintFinding, Project
    from folkmoot.names.lint.runner import LintOptions


def checked_namespace(value: str | None) -> Any:
    """A namespace that is valid."""
    if value is None:
        return None
    from folkmoot.names.canonical import validate_namespace

    try:
        validate_namespace(value)
    except e.InvalidName as error:
        near = f"; {error.nearest} would be one" if error.nearest else ""
        raise typer.BadParameter(
            f"must be 3 to 20 lower-case letters and digits, a letter first{near}"
        ) from None
    return value


def checked_version(value: str | None) -> Any:
    """A version that can be compared."""
    if value is None:
        return None
    from folkmoot.names.deprecation import numbers_of

    if numbers_of(value) is None:
        raise typer.BadParameter(f"must be a version such as 1.4.0, not {value!r}")
    return value


def check_rules(option: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names of rules, of which several may stand between commas."""
    from folkmoot.names.lint.runner import unknown_rule

    names = tuple(name.strip() for each in given or () for name in each.split(",") if name.strip())
    for name in names:
        if problem := unknown_rule(name):
            raise typer.BadParameter(f"{option}: {problem} (--list-rules has them all)")
    return names


def check_sources_only(*, fix: bool, diff: bool) -> None:
    """Refuse to mend what has no sources."""
    if fix or diff:
        raise typer.BadParameter(f"{'--fix' if fix else '--diff'} needs sources, not a server")


NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", metavar="NAME", show_default=False, callback=checked_namespace,
        help="The namespace of all names.  [default: as configured, or as found in the sources]",
    ),
]  # fmt: skip
StandaloneOption = Annotated[
    bool,
    flag(
        "--standalone", "The server is only used on its own: report a missing namespace as a hint."
    ),
]
VersionOption = Annotated[
    str | None,
    typer.Option(
        "--project-version", metavar="VERSION", show_default=False, callback=checked_version,
        help="The release to check deprecations against.  [default: that of pyproject.toml]",
    ),
]  # fmt: skip
SelectOption = Annotated[
    list[str] | None,
    option(
        "--select", "RULE", "Check only this rule; separate several with commas. May be repeated."
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    option(
        "--ignore", "RULE", "Do not check this rule; separate several with commas. May be repeated."
    ),
]
StrictOption = Annotated[bool, flag("--strict", "Exit with 1 for a warning too.")]
FixOption = Annotated[
    bool,
    flag("--fix", "Fix what needs no decision: add the namespace to names, update NAMESPACES.md."),
]
DiffOption = Annotated[bool, flag("--diff", "Show what --fix would change, and exit.")]
FormatOption = Annotated[
    str,
    choice(
        "--format", "FORMAT", ("text", "json", "sarif"),
        "The output format: text, json or sarif.  [default: text]",
    ),
]  # fmt: skip
TimeoutOption = Annotated[
    int, number("--timeout", 1, 600, "Seconds that the server may take to answer.  [default: 30]")
]
ListOption = Annotated[bool, flag("--list-rules", "List all rules, and exit.")]
ExplainOption = Annotated[
    str | None,
    option("--explain", "RULE", "Explain a rule and how to fix what it finds, and exit."),
]


SCHEMES: Final = ("http://", "https://")


class LintCommand(ServerCommand):
    """Needs a command behind `--`, if that is there."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse `--` without a command."""
        if args[-1:] == ["--"] and "--" not in args[:-1]:
            ctx.fail("The command that starts the server is missing after --")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, _: Any) -> list[str]:
        """What stands behind the command's name in its usage."""
        return ["[OPTIONS]", "[PATH... | URL | -- COMMAND...]"]


CLASSES: Final[dict[str, type[TyperCommand]]] = {"lint": LintCommand}
"""Commands that are read in a way of their own."""

TargetsArgument = Annotated[
    list[str] | None,
    argument(
        "PATH",
        "Files and folders of a project, or the address of a running server; or a server's "
        "command after --.  [default: the project around the current folder]",
    ),
]


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
    from folkmoot.cli.names import report
    from folkmoot.names.lint.runner import LintOptions, LintRun

    if list_rules:
        report.list_rules()
        return
    if explain is not None:
        check_rules("--explain", (explain,))
        report.explain(explain)
        return
    wishes = LintOptions(
        namespace=namespace,
        version=project_version,
        standalone=standalone,
        select=check_rules("--select", select),
        ignore=check_rules("--ignore", ignore),
    )
    server = asked_server(targets or [], command_behind(ctx))
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
        report.report(project, findings, form, each_missing="missing-namespace" in wishes.select)
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
    """List the names of a running server, and return them with the findings about them."""
    import asyncio

    from folkmoot.names.lint.project import Config
    from folkmoot.names.lint.runner import judge
    from folkmoot.names.lint.sources import read_lists
    from folkmoot.relay.upstream.inventory import take_inventory

    try:
        inventory = asyncio.run(take_inventory(server, headers=headers, seconds=seconds))
    except e.FolkmootError as error:
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
    """Write the fixes that can be made automatically, and list them."""
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
