"""Rights and proposals: grant, revoke, kick, propose, decide, and what waits for you."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from folkmoot.cli.credentials import AsOption, UrlOption, checked_handle, signed_in
from folkmoot.cli.options import JsonOption, number
from folkmoot.cli.output import moment, one_line, say, say_data
from folkmoot.cli.room import options as given
from folkmoot.cli.room.calls import CALL_SECONDS, tell_answer
from folkmoot.cli.room.messages import look
from folkmoot.cli.room.options import hub_of, post, proposed
from folkmoot.cli.room.sentences import allowed
from folkmoot.cli.show import (
    Column,
    short,
    tell_table,
    word,
)
from folkmoot.core.errors import ToolRefused

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.client.methods import Ask, Decision, Proposal


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ReasonArgument = Annotated[
    str,
    typer.Argument(
        metavar="REASON", help="Why; everyone in the room reads it.", show_default=False
    ),
]


ReasonOption = Annotated[
    str | None,
    typer.Option(
        "--reason", metavar="TEXT", help="Why; everyone in the room reads it.", show_default=False
    ),
]


def grant(
    name: given.RoomArgument,
    who: given.ParticipantArgument,
    patterns: given.PatternsArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Give someone in the room more rights.

    Takes effect with their next message. Nobody can grant rights they do not have. For someone who
    is away, owners use 'change --grant'.
    """
    held = [given.capability(text) for text in patterns]
    answer = hub_of(name, url, handle).grant_in_room(name, who, held)
    if as_json:
        say_data(answer)
    else:
        say(f"{one_line(who)} may now: {one_line(allowed(held))}")
        say(f"Grant {word(answer.get('id'))}", err=True)


def revoke(
    name: given.RoomArgument,
    whom: given.FromWhomArgument,
    patterns: given.FewerPatternsArgument = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Revoke a grant, and everything that was granted from it."""
    is_id = UUID.fullmatch(whom) is not None
    answer = hub_of(name, url, handle).revoke_in_room(
        name,
        grant_id=whom if is_id else None,
        recipient=None if is_id else checked_handle(whom),
        capabilities=[given.capability(text) for text in patterns or ()] or None,
    )
    if as_json:
        say_data(answer)
    else:
        say(f"Revoked from {one_line(whom)}.")


def kick(
    name: given.RoomArgument,
    who: given.ParticipantArgument,
    reason: ReasonOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Remove someone from a room.

    They need a new invitation to come back.
    """
    answer = hub_of(name, url, handle).kick(name, who, reason=reason)
    if as_json:
        say_data(answer)
    else:
        say(f"Removed {one_line(who)} from {name}.")


def proposals(
    name: given.RoomArgument,
    state: given.StateOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List proposals, the latest first."""
    found = proposed(hub_of(name, url, handle), name, state)
    if as_json:
        say_data({"proposals": found})
        return
    columns = (
        Column("Number", "bold"), Column("State"), Column("By"), Column("To"),
        Column("What", wide=True),
    )  # fmt: skip
    tell_table(columns, map(row, found), "No proposals.")


def row(proposal: Proposal) -> tuple[str, ...]:
    """One proposal in a line."""
    seen = look(proposal.message or msgspec.to_builtins(proposal))
    what = f"{seen.what} {'; '.join(seen.text)}".strip()
    return (
        word(proposal.seq),
        word(proposal.state),
        word(proposal.proposer),
        word(" ".join(proposal.to)),
        one_line(what),
    )


def approve(
    name: given.RoomArgument,
    which: given.ProposalArgument,
    to: given.WithWhomOption = None,
    wait: given.WaitOption = CALL_SECONDS,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Approve a proposal, and print the answer.

    Its request is made in your name. The answer also comes into the room, to you and to the
    proposer.
    """
    client = hub_of(name, url, handle)
    proposal = found(client, name, which)
    if to is None and len(proposal.to) != 1:
        raise typer.BadParameter("--to is needed: the proposal does not name a participant")
    outcome = client.approve_proposal(name, proposal.id, to=to, wait=wait)
    if as_json:
        say_data(outcome)
        return
    by, number = word(outcome.to), word(proposal.seq)
    if outcome.result is None and outcome.error is None:
        say(f"Approved #{number}. {by} has not answered yet; 'folkmoot room history' shows the "
            "answer when it comes.", err=True)  # fmt: skip
        return
    say(f"Approved #{number}.", err=True)
    state = "answered" if outcome.error is None else "failed"
    tell_answer({**msgspec.to_builtins(outcome), "state": state}, "")


def reject(
    name: given.RoomArgument,
    which: given.ProposalArgument,
    reason: ReasonArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Reject a proposal, with a reason."""
    client = hub_of(name, url, handle)
    about = proposal_id(client, name, which)
    answer = post(client, name, "mcpx.reject.proposal", {"reason": reason}, correlation_id=[about])
    if as_json:
        say_data(answer)
    else:
        say(f"Rejected, as message {word(answer.get('seq'))}.")


def withdraw(
    name: given.RoomArgument,
    which: given.ProposalArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Withdraw a proposal of yours."""
    client = hub_of(name, url, handle)
    about = proposal_id(client, name, which)
    answer = post(client, name, "mcpx.withdraw.proposal", {}, correlation_id=[about])
    if as_json:
        say_data(answer)
    else:
        say(f"Withdrawn, as message {word(answer.get('seq'))}.")


def proposal_id(client: HubClient, name: str, which: str) -> str:
    """The id of the proposal with a number or an id."""
    return which if UUID.fullmatch(which) else found(client, name, which).id


def found(client: HubClient, name: str, which: str) -> Proposal:
    """The proposal with a number or an id."""
    wanted = which.removeprefix("#")
    for proposal in proposed(client, name):
        if wanted in (str(proposal.seq), proposal.id):
            return proposal
    raise ToolRefused(f"There is no proposal {one_line(which)} in the room.")


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
