"""A message of a tape in a line, or in two where the paper is narrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from folkmoot.cli.tape.paper import Paper, cut
from folkmoot.cli.tape.words import label, lapse
from folkmoot.cli.text import escape_json, one_line
from folkmoot.core.envelope import MessageDirection
from folkmoot.proxy.tape.timeline import Moment

LONGEST: Final = 400
"""Characters of what a message says that are shown where nothing else limits them."""
INDENT: Final = "     "

DONE: Final = {
    "modify": "changed",
    "block": "blocked",
    "mock": "answered",
    "delay": "delayed",
    "hold": "held",
}
"""What an interceptor did, by its verdict."""


def rows(moment: Moment, paper: Paper, *, full: bool) -> Iterator[str]:
    """A message as it is shown: its line, and all of it below where that is wanted."""
    head, rest = list(_head(moment, paper)), list(_marks(moment))
    if not full:
        rest += _said(moment)
    if not paper.narrow:
        head += [part for each in rest for part in (("  ", ""), each)]
    yield paper.fitted(head)
    if paper.narrow and rest:
        below = [part for each in rest for part in ((" ", ""), each)]
        yield paper.fitted([(INDENT[1:], ""), *below])
    if full:
        yield from _whole(moment.line.message)
        if moment.line.at_server is not msgspec.UNSET:
            yield f"{INDENT}{paper.styled('as the server saw it:', 'magenta')}"
            yield from _whole(moment.line.at_server)


def _head(moment: Moment, paper: Paper) -> Iterator[tuple[str, str]]:
    narrow = paper.narrow
    gap = " " if narrow else "  "
    at = f"{moment.at:.2f}" if narrow else f"{moment.at:>9.3f}"
    before = f"{moment.seq:>4}{gap}{at}{gap}"
    yield before, "dim"
    arrow, colour = _arrow(moment, paper)
    yield f"{arrow}{gap}", colour
    took = f"{gap}{lapse(moment.answer.seconds)}" if moment.answer is not None else ""
    to = ""
    if moment.answer is not None and moment.answer.request != moment.seq - 1:
        to = f" (to {moment.answer.request})"
    what = label(moment.method, moment.name) or f"answer to {_id(moment)}"
    if paper.width is not None:
        # How long it took is to be seen, however long the name is.
        room = paper.width // 2
        if narrow:
            room = paper.width - len(before) - len(arrow) - len(gap) - len(took) - len(to)
        what = cut(what, max(room, 8), paper.glyphs.cut)
    yield what, "bold red" if moment.failed else "bold" if moment.shape != "response" else ""
    yield took, "yellow"
    yield to, "dim"


def _arrow(moment: Moment, paper: Paper) -> tuple[str, str]:
    direction = moment.line.direction
    if direction is MessageDirection.CLIENT_TO_SERVER:
        return paper.glyphs.to_server, "cyan"
    if direction is MessageDirection.SERVER_TO_CLIENT:
        return paper.glyphs.to_client, "green"
    return paper.glyphs.neither, "red"


def _id(moment: Moment) -> str:
    return one_line(msgspec.json.encode(moment.members.get("id")).decode())


def _marks(moment: Moment) -> Iterator[tuple[str, str]]:
    """What an interceptor did, and what was redacted."""
    line = moment.line
    if line.verdict is not None:
        by = f" by {one_line(line.by)}" if line.by else ""
        yield f"[{DONE.get(line.verdict, one_line(line.verdict))}{by}]", "magenta"
    if moment.redacted:
        yield f"[{moment.redacted} redacted]", "magenta"


def _said(moment: Moment) -> Iterator[tuple[str, str]]:
    summary = one_line(" ".join(moment.summary[:LONGEST].split()))
    if "error" in moment.members:
        yield f"error {summary}", "red"
    elif moment.tool_failed:
        yield f"tool error: {summary}", "red"
    elif moment.line.error is not None:
        yield one_line(str(moment.line.error.get("message", "")))[:LONGEST], "red"
    elif summary:
        yield summary, ""


def _whole(raw: msgspec.Raw) -> Iterator[str]:
    text = msgspec.json.format(bytes(raw), indent=2).decode("utf-8", "replace")
    for line in escape_json(text).split("\n"):
        yield f"{INDENT}{line}"
