"""How backends look: one line each in a pipe, and a few lines each on a terminal."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from folkmoot.cli.output import aligned, duration, on_terminal, say
from folkmoot.cli.show import word
from folkmoot.relay.upstream.model import BackendView
from folkmoot.settings import BackendSpec
from folkmoot.settings.fields import masked_arguments, without_query

if TYPE_CHECKING:
    from folkmoot.cli.tape.paper import Paper

INDENT = "  "
STYLES = {"up": "green", "starting": "yellow", "down": "red", "broken": "bold red", "off": "dim"}
CONFIGURED = "configured"
MOST_FAULTS = 10
"""How many sentences about what cannot be shown people are told of one backend."""


def target_of(spec: BackendSpec) -> str:
    """Where a server is, without what may be secret in it."""
    if not spec.url:
        return shlex.join(masked_arguments(spec.command))
    return without_query(spec.url)


def configured(spec: BackendSpec) -> BackendView:
    """A backend as the settings alone describe it."""
    transport = "sse" if spec.transport == "sse" else "http"
    return BackendView(
        namespace=spec.namespace,
        name=spec.name,
        transport=transport if spec.url else "stdio",
        target=target_of(spec),
        state=CONFIGURED if spec.enabled else "off",
    )


def tell_views(views: Sequence[BackendView], now: float) -> None:
    """All of them, as the output takes it."""
    if on_terminal():
        from folkmoot.cli.tape.paper import Paper

        paper = Paper()
        for view in views:
            draw(view, now, paper)
        paper.flush()
        return
    for line in aligned([row(view) for view in views]):
        say(line)


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
    ]


def draw(view: BackendView, now: float, paper: Paper) -> None:
    """One backend on a terminal: its name and state, and below it whatever there is to say."""
    head = [(view.namespace, "bold"), ("  ", ""), (view.state, STYLES.get(view.state, ""))]
    if view.since and view.state != "off":
        head.append((f" for {duration(max(0.0, now - view.since))}", ""))
    paper.put(paper.fitted(head))
    for text, style in details(view):
        for line in wrapped(text, paper.width):
            paper.put(f"{INDENT}{paper.styled(line, style)}")


def wrapped(text: str, width: int | None) -> list[str]:
    """The lines of a text inside its indentation."""
    room = max((width or 80) - len(INDENT), 10)
    # Paths and names have hyphens too, and are to be copied.
    return textwrap.wrap(text, room, break_on_hyphens=False)


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
    if view.held:
        told = f"{counted(len(view.held), 'tool')} held back; see: folkmoot backends diff"
        yield f"{told} {view.namespace}", "yellow"
    for fault in view.faults[:MOST_FAULTS]:
        yield word(fault), "yellow"
    if len(view.faults) > MOST_FAULTS:
        yield f"And {len(view.faults) - MOST_FAULTS} more of these; --json shows all.", "yellow"


def offers(view: BackendView) -> Iterable[str]:
    """What it offers."""
    yield counted(view.tools, "tool")
    yield counted(view.resources, "resource")
    if view.templates:
        yield counted(view.templates, "template")
    yield counted(view.prompts, "prompt")


def uses(view: BackendView) -> Iterable[str]:
    """How it is used."""
    yield counted(view.calls, "call")
    yield counted(view.errors, "error")
    if view.in_flight:
        yield f"{view.in_flight} in flight"
    if view.restarts:
        yield counted(view.restarts, "restart")
    if view.median_ms is not None:
        yield f"median {view.median_ms:.3g} ms"


def counted(count: int, noun: str) -> str:
    """A number of things as people say it."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
