"""`folkmoot names` and `folkmoot new`: check and document names, create an MCP server."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import stat
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import structs

from folkmoot.cli.call import server_url
from folkmoot.cli.commands import Output, group, with_json_option
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
from folkmoot.cli.output import ExitCode, aligned, complain, one_line, say
from folkmoot.cli.output import lines as safe_lines
from folkmoot.cli.show import Entry, Terminal, counted, show_entries
from folkmoot.core import errors as e
from folkmoot.staging import file_errors, staged

if TYPE_CHECKING:
    from folkmoot.names.lint import LintFinding
    from folkmoot.names.listing import Config
    from folkmoot.names.project import Project


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
    from folkmoot.names.lint import unknown_rule

    names = tuple(name.strip() for each in given or () for name in each.split(",") if name.strip())
    for name in names:
        if problem := unknown_rule(name):
            raise typer.BadParameter(f"{option}: {problem} (--list-rules has them all)")
    return names


TargetArgument = Annotated[
    str | None,
    argument(
        "FILE",
        "A file with names: NAMESPACES.md, the JSON of a tools/list, or one name on each line; - "
        "is standard input. Or a project's folder.  [default: the project around the current "
        "folder]",
    ),
]
UrlOption = Annotated[
    str | None,
    option(
        "--url", "URL",
        "The address of a running server; or give the command that starts it after --.",
        server_url,
    ),
]  # fmt: skip
NamespaceOption = Annotated[
    str | None,
    option(
        "--namespace", "NAME",
        "The namespace of all names.  [default: as configured, or as the names have it]",
        checked_namespace,
    ),
]  # fmt: skip
VersionOption = Annotated[
    str | None,
    option(
        "--project-version", "VERSION",
        "The release to check deprecations against.  [default: that of pyproject.toml or of the "
        "server]",
        checked_version,
    ),
]  # fmt: skip
TimeoutOption = Annotated[
    int, number("--timeout", 1, 600, "Seconds that the server can take to answer.  [default: 30]")
]
StandaloneOption = Annotated[
    bool,
    flag(
        "--standalone", "The server is only used on its own: report a missing namespace as a hint."
    ),
]
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
ListOption = Annotated[bool, flag("--list-rules", "List all rules, and exit.")]
ExplainOption = Annotated[
    str | None,
    option("--explain", "RULE", "Explain a rule and how to fix what it finds, and exit."),
]


class NamesCommand(ServerCommand):
    """Needs a command behind `--`, if that is there."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse `--` without a command."""
        if args[-1:] == ["--"] and "--" not in args[:-1]:
            ctx.fail("The command that starts the server is missing after --")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, _: Any) -> list[str]:
        """What stands behind the command's name in its usage."""
        return ["[OPTIONS]", "[FILE | --url URL | -- COMMAND...]"]


SERVER: Final = (
    "--url URL or a command after --, or set 'command' in [tool.folkmoot.names] of pyproject.toml"
)


def read_names(
    ctx: typer.Context,
    target: str | None,
    url: str | None,
    header: list[str] | None,
    seconds: int,
    config: Config,
) -> tuple[Project, Config]:
    """The names that are asked for, with what is configured for them.

    `config` has the options of the command line; it is all that counts for a server that they name.
    """
    from folkmoot.names.listing import STDIN, find_config, read_file, read_text

    command = command_behind(ctx)
    if bool(target) + bool(url) + bool(command) > 1:
        raise typer.BadParameter("give a FILE, or --url URL, or a command after --")
    if header and not url:
        raise typer.BadParameter("--header needs --url")
    if url or command:
        return ask(url or command, config, seconds, headers=sent_headers(header)), config
    place = Path(target or ".")
    if target and target != STDIN and not place.exists():
        near = "; give a URL with --url" if "://" in target else ""
        raise typer.BadParameter(f"{one_line(target)}: there is no such file or folder{near}")
    config = with_options(find_config(place), config)
    if target and not place.is_dir():
        return read_file(target, config), config
    if config.command or config.url:
        server = config.url or started(config)
        project = ask(server, config, seconds, cwd=str(config.root))
        project.compared = True
        project.register = read_text(config.root / config.namespaces_file)
        return project, config
    page = config.root / config.namespaces_file
    if not page.is_file():
        raise typer.BadParameter(f"give a FILE, {SERVER}")
    return read_file(os.path.relpath(page), config), config


def with_options(config: Config, options: Config) -> Config:
    """What is configured, with the options of the command line over it."""
    return structs.replace(
        config,
        namespace=options.namespace or config.namespace,
        version=options.version or config.version,
        standalone=options.standalone or config.standalone,
        select=options.select or config.select,
        ignore=(*config.ignore, *options.ignore),
    )


def started(config: Config) -> tuple[str, ...]:
    """The configured command; a program with a slash in its name is below the project's folder."""
    program, *arguments = config.command
    return (str(config.root / program) if "/" in program else program, *arguments)


def ask(
    server: str | tuple[str, ...],
    config: Config,
    seconds: int,
    *,
    headers: dict[str, str] | None = None,
    cwd: str = "",
) -> Project:
    """The names that a running server lists."""
    import asyncio

    from folkmoot.names.listing import read_lists
    from folkmoot.relay.upstream.inventory import take_inventory

    try:
        inventory = asyncio.run(take_inventory(server, headers=headers, cwd=cwd, seconds=seconds))
    except e.FolkmootError as error:
        complain(f"The server cannot be asked. {error.message}")
        raise typer.Exit(ExitCode.UNREACHABLE) from None
    complain(*inventory.faults, kind="warning")
    return read_lists(structs.asdict(inventory), inventory.server, config)


@with_json_option
def lint(
    ctx: typer.Context,
    target: TargetArgument = None,
    *,
    url: UrlOption = None,
    namespace: NamespaceOption = None,
    standalone: StandaloneOption = False,
    project_version: VersionOption = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    strict: StrictOption = False,
    header: HeaderOption = None,
    timeout: TimeoutOption = 30,
    list_rules: ListOption = False,
    explain: ExplainOption = None,
) -> Output:
    """Check the names of an MCP server's tools, resources and prompts.

    Asks a running server, or reads names from a file. In a project it starts the server that
    [tool.folkmoot.names] of pyproject.toml names, and compares its names with NAMESPACES.md; if
    none is named, it reads NAMESPACES.md. The exit code is 0 without errors, 1 with errors, and 7
    if the server cannot be reached.
    """
    from folkmoot.names.lint import RULES, judge
    from folkmoot.names.listing import Config

    if list_rules:
        return rules()
    if explain is not None:
        check_rules("--explain", (explain,))
        told = {"name": explain, **RULES[explain]._asdict()}
        return Output(told, lambda: show_rule(explain))
    options = Config(
        namespace=namespace,
        version=project_version,
        standalone=standalone,
        select=check_rules("--select", select),
        ignore=check_rules("--ignore", ignore),
    )
    project, config = read_names(ctx, target, url, header, timeout, options)
    findings = judge(
        project, standalone=config.standalone, select=config.select, ignore=config.ignore
    )
    severe = {"error", "warning"} if strict else {"error"}
    return Output(
        as_data(project, findings),
        lambda: show_findings(project, findings, each_missing=MISSING in options.select),
        failed=any(each.severity in severe for each in findings),
    )


def as_data(project: Project, findings: Sequence[LintFinding]) -> dict[str, Any]:
    """All that was found, for programs."""
    return {
        "project": {
            "name": project.name,
            "namespace": project.namespace,
            "version": project.version,
            "path": project.path,
        },
        "names": [
            {
                "kind": each.kind,
                "name": each.name,
                "deprecated": each.deprecation is not None,
                "line": each.line,
            }
            for each in project.declared
        ],
        "findings": findings,
    }


STYLES: Final = {"error": "bold red", "warning": "yellow", "hint": "cyan"}
MOST_WIDTH: Final = 100
NARROW: Final = 60
MOST_LINES: Final = 1_000
"""Findings that are told to people; programs get all."""
MISSING: Final = "missing-namespace"
FIRST: Final = frozenset(
    {"collision", "safe-collision", "long-name", "long-client-name", "reserved-namespace"}
)
"""Rules about what collides, is cut or is refused, which people are told of first."""
REFUSED: Final = re.compile(r"[^A-Za-z0-9_:-]")
"""What model APIs refuse in a name; a hub spells the colon in another way."""
MOST_NAMED: Final = 3
"""Names without a namespace that the line about them tells."""


def rules() -> Output:
    """Every rule in a line: its name, how severe it is, what it says."""
    from folkmoot.names.lint import RULES

    shown = [
        Entry(
            ((name, "bold"), (f"  {rule.severity}", "")),
            ((rule.sentence, ""),),
            (name, rule.severity, rule.sentence),
        )
        for name, rule in RULES.items()
    ]
    told = [
        {"name": name, "severity": it.severity, "says": it.sentence} for name, it in RULES.items()
    ]
    return Output({"rules": told}, lambda: show_entries(shown, ""))


def show_rule(name: str) -> None:
    """One rule with its example and how to fix what it finds."""
    from folkmoot.names.lint import RULES

    rule = RULES[name]
    width = min(shutil.get_terminal_size().columns, MOST_WIDTH)
    # An example is to be read as code, and not broken where there is room below its label.
    indent = " " * (8 if width > NARROW else 2)
    told = [
        *textwrap.wrap(f"{name}: {rule.told.replace('`', '')}", width, break_on_hyphens=False),
        "",
        *textwrap.wrap(rule.sentence, width),
        "",
        *textwrap.wrap(f"Wrong:  {rule.example}", width, subsequent_indent=indent),
        *textwrap.wrap(f"Fix:    {rule.mend}", width, subsequent_indent=indent),
    ]
    say("\n".join(told))


def show_findings(
    project: Project, findings: Sequence[LintFinding], *, each_missing: bool = False
) -> None:
    """Print each finding with its line in the file, and a summary.

    With `each_missing` every name that has no namespace is told.
    """
    terminal = Terminal()
    ordered = sorted(findings, key=lambda each: not comes_first(each))
    if not each_missing:
        ordered = with_missing_summed_up(project, ordered)
    for each in ordered[:MOST_LINES]:
        where = f"{one_line(project.path)}:{each.line}: " if project.path and each.line else ""
        put(terminal, where, each)
    if len(ordered) > MOST_LINES:
        terminal.write(f"And {counted(len(ordered) - MOST_LINES, 'more line')}; --json has all.")
    if ordered and terminal.on_terminal:
        terminal.write("")
    terminal.flush()
    told = summary(project, findings)
    say("\n".join(textwrap.wrap(told, terminal.width)) if terminal.width else told)


def comes_first(each: LintFinding) -> bool:
    """Whether a name collides, is cut or is refused."""
    refused = each.rule == "tool-characters" and REFUSED.search(each.name) is not None
    return refused or each.rule in FIRST


def with_missing_summed_up(project: Project, findings: Sequence[LintFinding]) -> list[LintFinding]:
    """The findings, with several missing namespaces joined into one at the end."""
    from folkmoot.names.nearest import truncated

    missing = [each for each in findings if each.rule == MISSING]
    others = [each for each in findings if each.rule != MISSING]
    if len(missing) < 2:
        return [*others, *missing]
    names = [repr(truncated(each.name)) for each in missing[:MOST_NAMED]]
    more = len(missing) - len(names)
    listed = f"{', '.join(names)} and {more} more" if more else " and ".join(names)
    message = (
        f"{len(missing)} of {counted(len(project.declared), 'name')} have no namespace: {listed}. "
        "Behind a hub they get one; anywhere else they can collide with another server's. "
        f"--select {MISSING} lists them."
    )
    return [*others, structs.replace(missing[0], message=message)]


def put(terminal: Terminal, where: str, each: LintFinding) -> None:
    """One finding: in one line for programs that read lines, wrapped for people."""
    message = one_line(each.message)
    if terminal.width is None:
        terminal.write(f"{where}{each.severity}: {message} [{each.rule}]")
        return
    label = f"{terminal.styled(each.severity, STYLES[each.severity])} {each.rule}"
    if len(where) + len(each.severity) + len(each.rule) < terminal.width:
        terminal.write(f"{terminal.styled(where, 'bold')}{label}")
    else:
        terminal.write(terminal.styled(where.rstrip(), "bold"))
        terminal.write(f"    {label}")
    width = max(20, min(terminal.width, MOST_WIDTH) - 4)
    for line in textwrap.wrap(message, width, break_long_words=False, break_on_hyphens=False):
        terminal.write(f"    {line}")


def summary(project: Project, findings: Sequence[LintFinding]) -> str:
    """The sum of it all, in a sentence."""
    names = counted(len(project.declared), "name")
    where = "the server" if project.path is None else one_line(project.path)
    counts: Counter[str] = Counter(each.severity for each in findings)
    found = [counted(counts[each], each) for each in STYLES if counts[each]]
    if not found:
        return f"No problems: {names} of {where}." if project.declared else f"No names in {where}."
    told = f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else found[0]
    return f"Found {told} in {names} of {where}."


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
DiffOption = Annotated[bool, flag("--diff", "Show the changes, but do not write them.")]
ForceOption = Annotated[
    bool, flag("--force", "Replace a page that does not mark which part may be rewritten.")
]
STDOUT: Final = "-"
COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


def doc(
    ctx: typer.Context,
    target: TargetArgument = None,
    *,
    url: UrlOption = None,
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

    It lists the namespace, and every tool, resource and prompt in it. Asks a running server, or
    reads names from a file; in a project it starts the server that [tool.folkmoot.names] of
    pyproject.toml names. Text outside the lines <!-- folkmoot:begin --> and <!-- folkmoot:end -->
    is kept, and a tool keeps the version in which it was first listed. A deprecated tool is omitted
    from the release after its deprecation.
    """
    from folkmoot.names import namespaces_md
    from folkmoot.names.listing import Config, find_config, read_text

    if check and diff:
        raise typer.BadParameter("give either --check or --diff")
    options = Config(namespace=namespace, version=project_version)
    if url or command_behind(ctx):
        options = with_options(find_config(Path()), options)
    project, config = read_names(ctx, target, url, header, timeout, options)
    if project.namespace is None:
        raise e.ProjectUnusable("The names do not share a namespace. Give it with --namespace.")
    page = Path(output) if output and output != STDOUT else config.root / config.namespaces_file
    if project.path == os.path.relpath(page):
        raise typer.BadParameter(f"{page.name} is the page itself: give {SERVER}")
    before = read_text(page) if output != STDOUT else None
    if check:
        compare(project, page, before)
        return
    text = namespaces_md.render(project, before, force=force)
    if output == STDOUT:
        say(text.rstrip("\n"))
    elif diff:
        show_diff(page, before, text)
    elif text == before:
        say(f"{page} is up to date.")
    else:
        write_page(page, before, text)
        say(f"{page} {'written' if before is None else 'changed'}.")


def compare(project: Project, page: Path, text: str | None) -> None:
    """Say what of the page is out of date, and end accordingly."""
    from folkmoot.names import namespaces_md

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


def show_diff(page: Path, before: str | None, after: str) -> None:
    """The difference that the new text makes."""
    terminal = Terminal()
    old = "/dev/null" if before is None else f"a/{page.name}"
    lines = (before or "").splitlines(), after.splitlines()
    for line in difflib.unified_diff(*lines, old, f"b/{page.name}", lineterm=""):
        style = "" if line.startswith(("+++", "---")) else COLOURS.get(line[:1], "")
        terminal.write(terminal.styled(safe_lines(line)[0], style))
    terminal.flush()


def write_page(page: Path, before: str | None, text: str) -> None:
    """Write a whole new page; one that was there keeps its permissions, and a link stays a link."""
    real = Path(os.path.realpath(page))
    with file_errors(page, e.ProjectUnusable):
        if before is None:
            real.parent.mkdir(parents=True, exist_ok=True)
            real.write_text(text, encoding="utf-8", newline="")
            return
        with staged(real, text.encode(), stat.S_IMODE(real.stat().st_mode)) as part:
            part.replace(real)


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
    from folkmoot.names.new_server import SDKS, check_server, server_files, write_files

    wanted = check_server(name, namespace, next(known for known in SDKS if known == sdk))
    folder, files = path or Path(name), server_files(wanted)
    write_files(folder, files)
    steps = [
        (f"cd {shlex.quote(str(folder))}", ""),
        ("python -m venv .venv && . .venv/bin/activate", ""),
        ("pip install -e '.[dev]'", ""),
        ("pytest", "# its own tests"),
        ("folkmoot names lint", "# its names"),
        (name, "# over stdio, or with --http"),
    ]
    say(f"Created {folder}, an MCP server with the namespace {wanted.namespace}:\n")
    say("\n".join(f"  {each}" for each in sorted(files)))
    say("\nNext:\n")
    say("\n".join(f"  {line}" for line in aligned(steps)))


app = group(
    {"lint": lint, "doc": doc},
    "Check and document the names of an MCP server.",
    classes={"lint": NamesCommand, "doc": NamesCommand},
)
