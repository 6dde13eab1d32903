"""Rights and proposals from the command line: grant, revoke, see what was proposed, decide."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from folkmoot.cli.asking import AsOption, UrlOption, checked_handle
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import say
from folkmoot.cli.room import options as given
from folkmoot.cli.room.calls import CALL_SECONDS, tell_answer
from folkmoot.cli.room.entrance import hub_of, post, proposed
from folkmoot.cli.room.look import look
from folkmoot.cli.room.tellers import allowed
from folkmoot.cli.show import Column, tell_table, word
from folkmoot.cli.text import one_line, say_data
from folkmoot.core.errors import ToolRefused

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.client.methods import Proposal

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
