"""How backends look, and `folkmoot backends diff` and `accept`: tools that changed."""

from __future__ import annotations

import hashlib
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from folkmoot.cli.commands import Output, with_json_option
from folkmoot.cli.limits import MAX_FAULTS
from folkmoot.cli.operator import SocketHub, running
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    argument,
    flag,
    option,
    settings_from,
)
from folkmoot.cli.output import (
    ExitCode,
    complain,
    duration,
    moment,
    say,
)
from folkmoot.cli.show import Entry, counted, word
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths
from folkmoot.relay.upstream.model import BackendView
from folkmoot.settings import BackendSpec, Loaded
from folkmoot.settings.fields import masked_arguments, without_query

if TYPE_CHECKING:
    from folkmoot.operations.operator.servers import AcceptedTool, ChangedTool, ChangedTools


def hub_of(loaded: Loaded) -> SocketHub:
    """The hub that runs on the data folder that the settings name."""
    return running(Paths(loaded.settings.data_folder))


def views_of(hub: SocketHub) -> list[BackendView]:
    """The state of every backend; raises `HubNotRunning` when no hub is."""
    return msgspec.convert(hub.list_servers().backends, list[BackendView])


INDENT = "  "
STYLES = {
    "up": "green",
    "starting": "yellow",
    "sign_in": "yellow",
    "down": "red",
    "broken": "bold red",
    "off": "dim",
}
CONFIGURED = "configured"


def target_of(spec: BackendSpec) -> str:
    """Where a server is, without what may be secret in it."""
    if not spec.url:
        return shlex.join(masked_arguments(spec.command))
    return without_query(spec.url)


def configured(spec: BackendSpec) -> BackendView:
    """The view of a backend that is in the settings but not running."""
    transport = "sse" if spec.transport == "sse" else "http"
    return BackendView(
        namespace=spec.namespace,
        name=spec.name,
        transport=transport if spec.url else "stdio",
        target=target_of(spec),
        state=CONFIGURED if spec.enabled else "off",
    )


def entry(view: BackendView, now: float) -> Entry:
    """One backend: its name and state, then its tools, problems and use."""
    since = view.since if view.state != "off" else None
    lasted = f" for {duration(max(0.0, now - since))}" if since else ""
    head = (view.namespace, "bold"), ("  ", ""), (view.state, STYLES.get(view.state, ""))
    return Entry((*head, (lasted, "")), details(view), row(view))


def row(view: BackendView) -> list[str]:
    """One backend in a line, for pipes; every line has the same number of columns."""
    counts = (view.tools, view.resources + view.templates, view.prompts, view.calls, view.errors)
    server = " ".join(filter(None, (view.server, view.version)))
    return [
        view.namespace,
        view.state,
        view.transport,
        *map(str, counts),
        word(server),
        word(view.target),
        word(view.why),
        str(len(view.held)),
        str(sum(map(len, view.findings.values()))),
        word(view.node),
    ]


def details(view: BackendView) -> Iterator[tuple[str, str]]:
    """What else is told of a backend, with the style of each."""
    if view.why:
        again = view.retry_after
        yield word(view.why), "red" if view.state in {"down", "broken"} else ""
        if again is not None:
            yield f"Next try in {duration(again)}.", ""
    if view.server:
        era = f", {view.era}" if view.era else ""
        yield word(" ".join(filter(None, (view.server, view.version)))) + era, ""
    if view.state == "up":
        yield ", ".join(offers(view)), ""
    if view.state == "up" or view.calls:
        yield ", ".join(uses(view)), ""
    yield f"{view.transport}: {word(view.target)}", "dim"
    if view.node:
        yield f"linked by the node {word(view.node)}", "dim"
    if view.held:
        told = f"{counted(len(view.held), 'tool')} held back; see: folkmoot backends diff"
        yield f"{told} {view.namespace}", "yellow"
    if view.advice:
        yield word(view.advice), "yellow"
    for fault in view.faults[:MAX_FAULTS]:
        yield word(fault), "yellow"
    if len(view.faults) > MAX_FAULTS:
        yield f"And {len(view.faults) - MAX_FAULTS} more of these; --json shows all.", "yellow"


def offers(view: BackendView) -> Iterable[str]:
    yield counted(view.tools, "tool")
    yield counted(view.resources, "resource")
    if view.templates:
        yield counted(view.templates, "template")
    yield counted(view.prompts, "prompt")


def uses(view: BackendView) -> Iterable[str]:
    """The lines that tell how a backend is used."""
    yield counted(view.calls, "call")
    yield counted(view.errors, "error")
    if view.in_flight:
        yield f"{view.in_flight} in flight"
    if view.restarts:
        yield counted(view.restarts, "restart")
    if view.median_ms is not None:
        yield f"median {view.median_ms:.3g} ms"


NOTHING = "No tool is held back."
CHANGED = "What is held back has changed since it was shown. Run 'folkmoot backends diff' again."
DIFFERENCE_STYLES = {"+": "green", "-": "red", "@": "cyan"}

WhichArgument = Annotated[
    str | None, argument("NAME[:TOOL]", "One backend, or one of its tools.  [default: all]")
]
ToolsArgument = Annotated[
    list[str] | None,
    argument(
        "NAME[:TOOL]...",
        "A backend, to accept all of its tools that are held back; or one tool, as 'diff' shows "
        "it.",
    ),
]
AllOption = Annotated[bool, flag("--all", "Accept everything that is held back.")]
DigestOption = Annotated[
    str | None,
    option("--digest", "DIGEST", "Accept only what 'diff' showed with this digest."),
]
DIGEST_LENGTH = 32


@with_json_option
def diff(
    name: WhichArgument = None,
    config: ConfigOption = None,
    data: DataOption = None,
) -> Output:
    """Show tools that changed or were added.

    Their description or schema differs from when they were first seen, or they were added after the
    backend's first listing. They are neither listed nor callable until an operator accepts them.
    Read them as a model would: a description can be written to mislead one.
    """
    loaded = settings_from(config, data=data)
    namespace, _, tool = (name or "").partition(":")
    found = hub_of(loaded).list_pins(namespace=namespace)
    tools = meant(name or "", found) if tool else found.tools
    told = {"tools": tools, "digest": digest_of(tools), "starting": found.starting}
    return Output(told, lambda: show_changed(found, tools, name or ""))


def show_changed(found: ChangedTools, tools: Sequence[ChangedTool], name: str) -> None:
    """Print how tools differ, and how to accept them."""
    if not tools:
        show_nothing(found)
        return
    show_differences(tools)
    if ":" not in name and found.count > len(tools):
        left = found.count - len(tools)
        say(f"\n{counted(left, 'tool')} more; accept these first, or name a backend.", err=True)
    warn_of_starting(found)
    which = shlex.quote(name) if name else "--all"
    what = "this" if len(tools) == 1 else "these"
    say(f"\nTo accept {what}: folkmoot backends accept {which} --digest {digest_of(tools)}")


def digest_of(tools: Sequence[ChangedTool]) -> str:
    """One word for tools as they are now: it is another when one of them changes."""
    facts = sorted((each.namespace, each.name, each.changed_hash) for each in tools)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:DIGEST_LENGTH]


def show_differences(tools: Sequence[ChangedTool]) -> None:
    """Print how tools differ from their accepted versions."""
    for number, tool in enumerate(tools):
        if number:
            say()
        show_difference(tool)


def show_nothing(found: ChangedTools) -> None:
    """Say that nothing is held back, as far as the servers were reached."""
    warn_of_starting(found)
    if not found.starting:
        say(NOTHING, err=True)


def warn_of_starting(found: ChangedTools) -> None:
    """Name the servers whose tools are not known yet."""
    for name in found.starting:
        told = f"{name} is still starting, so its tools are not known yet. Try again in a moment."
        complain(told, kind="warning")


def show_difference(tool: ChangedTool) -> None:
    """Print how a changed tool differs from its accepted version."""
    from folkmoot.cli.show import Terminal

    terminal = Terminal()
    since = f"  {'new' if tool.new else 'changed'}, seen {moment(tool.since)}"
    terminal.write(terminal.truncated([(word(tool.canonical), "bold"), (since, "")]))
    if tool.findings:
        told = f"Its description has suspicious content: {', '.join(map(word, tool.findings))}."
        for part in folded(told, terminal.width):
            terminal.write(terminal.styled(part, "red"))
    for line in tool.lines:
        sign = line[:1]
        for part in folded(word(line) if line else "", terminal.width):
            terminal.write(terminal.styled(part, DIFFERENCE_STYLES.get(sign, "")))
    terminal.flush()


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


@with_json_option
def accept(
    tools: ToolsArgument = None,
    config: ConfigOption = None,
    data: DataOption = None,
    *,
    digest: DigestOption = None,
    every: AllOption = False,
) -> Output:
    """Accept tools that changed or were added.

    From then on they are listed and can be called. With --digest, accepts exactly what 'folkmoot
    backends diff' showed, and nothing if that has changed since. Without it, shows the tools and
    asks.
    """
    if bool(tools) is every:
        raise typer.BadParameter("give the tools or backends to accept, or --all")
    hub = hub_of(settings_from(config, data=data))
    names = tools or [""]
    # As 'diff' asks for one backend, so that what others changed makes no difference.
    pages = [hub.list_pins(namespace=name.partition(":")[0]) for name in names]
    found = pages[0]
    wanted: list[ChangedTool] = []
    for name, page in zip(names, pages, strict=True):
        some = meant(name, page) if name else page.tools
        wanted += [each for each in some if each not in wanted]
    if wanted:
        check_seen(wanted, digest)
    accepted = hub.accept_tools(list(map(as_seen, wanted))).accepted if wanted else []
    changed = [each.canonical for each in wanted if each.canonical not in accepted]
    if changed:
        complain(f"{', '.join(map(word, changed))}: {CHANGED}")
        raise typer.Exit(ExitCode.FAILED)
    if not accepted:
        return Output({"accepted": []}, lambda: show_nothing(found))
    told = f"Accepted {', '.join(map(word, accepted))}."
    return Output({"accepted": accepted}, told, lambda: warn_of_starting(found))


def as_seen(tool: ChangedTool) -> AcceptedTool:
    """A tool, to be accepted as long as it is still as it was when shown."""
    from folkmoot.operations.operator.servers import AcceptedTool

    return AcceptedTool(namespace=tool.namespace, name=tool.name, changed_hash=tool.changed_hash)


def check_seen(tools: Sequence[ChangedTool], digest: str | None) -> None:
    """Go on only with tools that the operator has seen as they are now."""
    if digest is not None:
        if digest != digest_of(tools):
            complain(f"The digest is another. {CHANGED}")
            raise typer.Exit(ExitCode.FAILED)
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter("give the --digest that 'folkmoot backends diff' shows")
    show_differences(tools)
    typer.confirm("\nAccept what is shown?", abort=True, err=True)


def meant(name: str, found: ChangedTools) -> list[ChangedTool]:
    """The held tools that a name stands for."""
    tools = [
        each
        for each in found.tools
        if name in (each.namespace, each.canonical, f"{each.namespace}:{each.name}")
    ]
    if not tools and name.partition(":")[0] in found.starting:
        raise e.BackendUnavailable(f"{word(name)} is still starting. Try again in a moment.")
    if not tools:
        raise e.BackendUnknown(f"{word(name)} is not held back, or is not a backend or tool.")
    return tools
