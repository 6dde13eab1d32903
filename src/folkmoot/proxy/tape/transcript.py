"""A tape as a Markdown page, for a bug report: each call with its answer, in blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from folkmoot.proxy.tape.lines import Header, Line, Side
from folkmoot.proxy.tape.timeline import Moment, grouped, moments
from folkmoot.telemetry.redaction import visible

LONGEST: Final = 8_000
"""Characters of one message that are shown; a report is to be read by people."""

_TICKS = re.compile("`+")


def as_markdown(lines: Iterable[Line]) -> Iterator[str]:
    """The page, piece by piece."""
    source = iter(lines)
    header = next((line for line in source if isinstance(line, Header)), None)
    if header is not None:
        yield _about(header)
    for group in grouped(moments(source)):
        yield "".join(map(_told, group))


def _about(header: Header) -> str:
    redacted = "Secrets were replaced." if header.redaction else "Nothing was redacted."
    rows = {
        "Recorded": code(header.started),
        "By": code(header.program),
        "Client": _side(header.client),
        "Server": _side(header.server),
        "Tape": code(header.tape),
        "Redaction": redacted,
        "Note": code(header.note) if header.note else "",
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)
    return f"# A recorded conversation\n\n| | |\n|---|---|\n{table}\n"


def _side(side: Side) -> str:
    return f"{code(side.transport)} {code(side.target)}" if side.target else code(side.transport)


def _told(moment: Moment) -> str:
    arrow = "client → server" if moment.from_client else "server → client"
    if moment.shape == "response":
        head = f"**Answer** {moment.seq}, {arrow}"
        if moment.answer:
            took = f"{moment.answer.seconds * 1000:.1f} ms"
            head = f"**Answer** {moment.seq} to {moment.answer.request}, after {took}"
        if moment.failed:
            head += ": **tool error**" if moment.tool_failed else ": **error**"
    else:
        name = f" {code(moment.name)}" if moment.name else ""
        head = f"## {moment.seq}. {code(moment.method)}{name}\n\n"
        head += f"{arrow}, at {moment.at:.3f} s"
    line = moment.line
    if line.verdict:
        head += f"; {line.verdict} by {code(line.by)}"
    if moment.redacted:
        head += f"; {moment.redacted} redacted"
    told = f"\n{head}\n\n{block(line.message)}"
    if line.at_server is not msgspec.UNSET:
        told += f"\nAs the server saw it:\n\n{block(line.at_server)}"
    return told


def block(raw: msgspec.Raw) -> str:
    """JSON as a block of code that nothing in it can end."""
    text = msgspec.json.format(bytes(raw), indent=2).decode("utf-8", "replace")
    note = ""
    if len(text) > LONGEST:
        note = f"\n({len(text) - LONGEST:,} more characters are not shown.)\n"
        text = text[:LONGEST]
    fence = _fence(text, 3)
    return f"{fence}json\n{text}\n{fence}\n{note}"


def code(text: str) -> str:
    """A word as code within a line, also within a table."""
    if not text:
        return ""
    shown = visible(text).replace("|", "\\|")
    fence = _fence(shown, 1)
    gap = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{gap}{shown}{gap}{fence}"


def _fence(text: str, least: int) -> str:
    longest = max(map(len, _TICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)
