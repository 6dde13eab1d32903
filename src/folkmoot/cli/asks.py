"""`folkmoot asks` and `folkmoot decisions`: what waits for you, and what you decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from folkmoot.cli.asking import AsOption, UrlOption, signed_in
from folkmoot.cli.options import JsonOption, number
from folkmoot.cli.output import say
from folkmoot.cli.show import Column, short, tell_table, word
from folkmoot.cli.text import moment, one_line, say_data

if TYPE_CHECKING:
    from folkmoot.client.methods import Ask, Decision

MOST = 100
LastOption = Annotated[int, number("--last", 1, MOST, "How many.  [default: 50]")]

HOW = {
    "proposal": "folkmoot room approve ROOM ID, or room reject ROOM ID REASON",
    "held": "folkmoot proxy held show ID, then release or drop",
    "tool": "folkmoot backends diff, then backends accept",
}
"""How each kind is decided about."""


def asks(
    last: LastOption = 50,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List what waits for your decision.

    Proposals in all your rooms, the riskiest first. With a token to run the hub also messages that
    a rule holds, and tools that changed.
    """
    hub, _ = signed_in(url, handle)
    page = hub.list_asks(limit=last)
    if as_json:
        say_data(page)
        return
    rows = [
        (it.risk, word(it.what), word(it.by), where(it), moment(it.until) if it.until else "-",
         short(id_of(it)))
        for it in page.asks
    ]  # fmt: skip
    columns = (Column("Risk", "bold"), Column("What", wide=True), Column("From"), Column("Where"),
               Column("Until", "dim", named=True), Column("Id"))  # fmt: skip
    tell_table(columns, rows, "Nothing waits for you.")
    if page.count > len(page.asks):
        say(f"{page.count - len(page.asks):,} more; use --last.", err=True)
    for kind in dict.fromkeys(it.kind for it in page.asks):
        say(f"To decide: {HOW[kind]}", err=True)


def where(it: Ask) -> str:
    """Where something waits: a room, a server, or a rule."""
    if it.kind == "proposal":
        return word(it.room)
    if it.kind == "held":
        return word(it.held.rule if it.held else "")
    return word(it.tool.namespace if it.tool else "")


def id_of(it: Ask) -> str:
    """What the commands take that decide about it."""
    if it.proposal is not None:
        return it.proposal.id
    return it.id.partition(":")[2]


def decisions(
    last: LastOption = 50,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List what you decided, and what came of it."""
    hub, _ = signed_in(url, handle)
    page = hub.list_decisions(limit=last)
    if as_json:
        say_data(page)
        return
    rows = [
        (moment(it.at), word(it.decision), word(it.what), word(it.by), word(it.room or it.server),
         came(it))
        for it in page.decisions
    ]  # fmt: skip
    columns = (Column("When", "dim"), Column("Decision", "bold"), Column("What", wide=True),
               Column("For"), Column("Where"), Column("Outcome"))  # fmt: skip
    tell_table(columns, rows, "You have not decided anything yet.")


def came(it: Decision) -> str:
    """What came of a decision, in a word or two."""
    if it.decision == "rejected" and it.outcome == "open":
        return "open: more must reject it"
    return one_line(it.outcome)
