"""`folkmoot backends diff` and `accept`: tools that changed or were added, and are held back."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from folkmoot.cli.backends_hub import RunningHub
from folkmoot.cli.backends_show import counted
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, settings_from
from folkmoot.cli.output import complain, say
from folkmoot.cli.show import word
from folkmoot.cli.text import moment, say_data
from folkmoot.core.errors import BackendUnavailable, BackendUnknown

if TYPE_CHECKING:
    from folkmoot.operations.operator.servers import ChangedTool, ChangedTools

NOTHING = "No tool is held back."
STYLES = {"+": "green", "-": "red", "@": "cyan"}

WhichArgument = Annotated[
    str | None,
    typer.Argument(metavar="NAME", show_default=False, help="One backend.  [default: all]"),
]
ToolsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME[:TOOL]...", show_default=False,
        help="A backend, to accept all of its tools that are held back; or one tool, as "
             "'diff' shows it.",
    ),
]  # fmt: skip
AllOption = Annotated[
    bool, typer.Option("--all", help="Accept everything that is held back.", show_default=False)
]


def diff(
    name: WhichArgument = None,
    config: ConfigOption = None,
    data: DataOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show tools that changed or were added.

    Their description or schema differs from when they were first seen, or they were added after the
    backend's first listing. They are neither listed nor callable until an operator accepts them.
    Read them as a model would: a description can be written to mislead one.
    """
    loaded = settings_from(config, data=data)
    found = RunningHub(loaded).differences(name or "")
    if as_json:
        tools = [msgspec.to_builtins(tool) for tool in found.tools]
        say_data({"tools": tools, "starting": found.starting})
        return
    if not found.tools:
        tell_nothing(found)
        return
    for number, tool in enumerate(found.tools):
        if number:
            say()
        tell_difference(tool)
    if found.count > len(found.tools):
        left = found.count - len(found.tools)
        say(f"\n{counted(left, 'tool')} more; accept these first, or name a backend.", err=True)
    warn_of_starting(found)


def tell_nothing(found: ChangedTools) -> None:
    """Say that nothing is held back, as far as the servers were reached."""
    warn_of_starting(found)
    if not found.starting:
        say(NOTHING, err=True)


def warn_of_starting(found: ChangedTools) -> None:
    """Name the servers whose tools are not known yet."""
    for name in found.starting:
        told = f"{name} is still starting, so its tools are not known yet. Try again in a moment."
        complain(told, kind="warning")


def tell_difference(tool: ChangedTool) -> None:
    """How one tool differs from what it was."""
    from folkmoot.cli.tape.paper import Paper

    paper = Paper()
    since = f"  {'new' if tool.new else 'changed'}, seen {moment(tool.since)}"
    paper.put(paper.fitted([(word(tool.canonical), "bold"), (since, "")]))
    if tool.findings:
        told = f"Its description has suspicious content: {', '.join(map(word, tool.findings))}."
        for part in folded(told, paper.width):
            paper.put(paper.styled(part, "red"))
    for line in tool.lines:
        sign = line[:1]
        for part in folded(word(line) if line else "", paper.width):
            paper.put(paper.styled(part, STYLES.get(sign, "")))
    paper.flush()


def folded(line: str, width: int | None) -> list[str]:
    """A line of a difference as a terminal has room for it; each piece bears the line's sign."""
    if width is None or len(line) <= width:
        return [line]
    return textwrap.wrap(
        line,
        max(width, 20),
        subsequent_indent=f"{line[:1]}     ",
        drop_whitespace=False,
        break_on_hyphens=False,
    )


def accept(
    tools: ToolsArgument = None,
    config: ConfigOption = None,
    data: DataOption = None,
    *,
    every: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Accept tools that changed or were added.

    From then on they are listed and can be called. Accepts exactly what 'folkmoot backends diff'
    shows now; a later change is held back again.
    """
    if bool(tools) is every:
        raise typer.BadParameter("give the tools or backends to accept, or --all")
    hub = RunningHub(settings_from(config, data=data))
    found = hub.differences()
    wanted = found.tools if every else [each for name in tools or [] for each in meant(name, found)]
    accepted = hub.accept(list(wanted)) if wanted else []
    if as_json:
        say_data({"accepted": accepted})
    elif accepted:
        say(f"Accepted {', '.join(map(word, accepted))}.")
        warn_of_starting(found)
    else:
        tell_nothing(found)


def meant(name: str, found: ChangedTools) -> list[ChangedTool]:
    """The held tools that a name stands for."""
    tools = [
        each
        for each in found.tools
        if name in (each.namespace, each.canonical, f"{each.namespace}:{each.name}")
    ]
    if not tools and name.partition(":")[0] in found.starting:
        raise BackendUnavailable(f"{word(name)} is still starting. Try again in a moment.")
    if not tools:
        raise BackendUnknown(f"{word(name)} is not held back, or is not a backend or tool.")
    return tools
