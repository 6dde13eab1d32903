"""Rights and proposals: grant, revoke, kick, propose, decide, and what waits for you."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from msgspec import UNSET

from folkmoot.cli.commands import (
    Fields,
    Note,
    Output,
    Table,
    account_command,
    group,
    spelled,
    with_json_option,
)
from folkmoot.cli.credentials import HubOption, checked_handle, hub_at, hub_for, read_keyring
from folkmoot.cli.limits import (
    CALL_SECONDS,
    MAX_ASK_WAIT,
    MAX_ASK_WAIT_ONCE,
    MAX_ASKS,
)
from folkmoot.cli.options import argument, given_arguments, number, option
from folkmoot.cli.output import moment, one_line, pretty
from folkmoot.cli.room import options as opts
from folkmoot.cli.room.calls import show_answer
from folkmoot.cli.room.messages import kind_of, look
from folkmoot.cli.room.options import post, proposed, room_command
from folkmoot.cli.room.sentences import allowed, called
from folkmoot.cli.show import ASCII, UNICODE, Column, at, can_show, cut, word
from folkmoot.core import errors as e
from folkmoot.core.uuids import as_stored, is_uuid

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.operations.asking import AskedCall
    from folkmoot.operations.asks import Ask, DecisionView
    from folkmoot.rooms.model import ProposalView


ReasonArgument = Annotated[str, argument("REASON", "Why; everyone in the room reads it.")]


ReasonOption = Annotated[
    str | None, option("--reason", "TEXT", "Why; everyone in the room reads it.")
]


@room_command
def grant(
    hub: HubClient,
    name: opts.RoomArgument,
    who: opts.ParticipantArgument,
    patterns: opts.PatternsArgument,
) -> Output:
    """Give a member or guest of the room more rights.

    Takes effect with their next message. Nobody can grant rights they do not have.
    """
    held = [opts.capability(text) for text in patterns]
    answer = hub.grant_in_room(name, who, held)
    granted = f"{one_line(who)} can now: {one_line(allowed(held))}"
    return Output(answer, granted, Note(f"Grant {word(answer.get('id'))}"))


@room_command
def revoke(
    hub: HubClient,
    name: opts.RoomArgument,
    whom: opts.FromWhomArgument,
    patterns: opts.FewerPatternsArgument = None,
) -> Output:
    """Revoke a grant, and everything that was granted from it."""
    is_id = is_uuid(whom)
    answer = hub.revoke_in_room(
        name,
        grant_id=whom if is_id else UNSET,
        recipient=UNSET if is_id else checked_handle(whom),
        capabilities=[opts.capability(text) for text in patterns or ()] or UNSET,
    )
    return Output(answer, f"Revoked from {one_line(whom)}.")


@room_command
def kick(
    hub: HubClient,
    name: opts.RoomArgument,
    who: opts.ParticipantArgument,
    reason: ReasonOption = None,
) -> Output:
    """Remove someone from a room.

    They need a new invitation to come back.
    """
    answer = hub.kick(name, who, reason=reason or UNSET)
    return Output(answer, f"Removed {one_line(who)} from {name}.")


@room_command
def proposals(hub: HubClient, name: opts.RoomArgument, state: opts.StateOption = None) -> Output:
    """List proposals, the latest first."""
    found = proposed(hub, name, state)
    columns = (
        Column("Number", "bold"), Column("State"), Column("By"), Column("To"),
        Column("What", wide=True),
    )  # fmt: skip
    return Output({"proposals": found}, Table(columns, map(row, found), "No proposals."))


def row(proposal: ProposalView) -> tuple[str, ...]:
    seen = look(proposal.message or msgspec.to_builtins(proposal))
    what = f"{seen.what} {'; '.join(seen.text)}".strip()
    return (
        word(proposal.seq),
        word(proposal.state),
        word(proposal.proposer),
        word(" ".join(proposal.to)),
        one_line(what),
    )


@room_command
def approve(
    hub: HubClient,
    name: opts.RoomArgument,
    which: opts.ProposalArgument,
    to: opts.WithWhomOption = None,
    wait: opts.WaitOption = CALL_SECONDS,
) -> Output:
    """Approve a proposal, and print the answer.

    Its request is made in your name. The answer also comes into the room, to you and to the
    proposer.
    """
    proposal = found(hub, name, which)
    if to is None and len(proposal.to) != 1:
        raise typer.BadParameter("--to is needed: the proposal does not name a participant")
    outcome = hub.approve_proposal(name, proposal.id, to=to, wait=wait)
    by, number = word(outcome.to), word(proposal.seq)
    if outcome.result is UNSET and outcome.error is UNSET:
        later = "'folkmoot room history' shows the answer when it comes."
        return Output(outcome, Note(f"Approved #{number}. {by} has not answered yet; {later}"))
    state = "answered" if outcome.error is UNSET else "failed"
    answer = {**msgspec.to_builtins(outcome), "state": state}
    return Output(outcome, Note(f"Approved #{number}."), lambda: show_answer(answer, ""))


@room_command
def reject(
    hub: HubClient,
    name: opts.RoomArgument,
    which: opts.ProposalArgument,
    reason: ReasonArgument,
) -> Output:
    """Reject a proposal, with a reason."""
    about = proposal_id(hub, name, which)
    answer = post(hub, name, "mcpx.reject.proposal", {"reason": reason}, correlation_id=[about])
    return Output(answer, f"Rejected, as message {word(answer.get('seq'))}.")


@room_command
def withdraw(hub: HubClient, name: opts.RoomArgument, which: opts.ProposalArgument) -> Output:
    """Withdraw a proposal of yours."""
    about = proposal_id(hub, name, which)
    answer = post(hub, name, "mcpx.withdraw.proposal", {}, correlation_id=[about])
    return Output(answer, f"Withdrawn, as message {word(answer.get('seq'))}.")


def proposal_id(client: HubClient, name: str, which: str) -> str:
    """The id of the proposal with a number or an id."""
    return which if is_uuid(which) and which.islower() else found(client, name, which).id


def found(client: HubClient, name: str, which: str) -> ProposalView:
    """The proposal with a number or an id."""
    wanted = which.removeprefix("#")
    every = proposed(client, name)
    for proposal in every:
        # Proposers choose ids: one that looks like a number must not stand for another proposal.
        known = (str(proposal.seq),) if wanted.isdecimal() else (proposal.id,)
        if wanted in known or as_stored(wanted) in known:
            return proposal
    begun = [] if wanted.isdecimal() else [it for it in every if it.id.startswith(wanted.lower())]
    if len(begun) == 1:
        return begun[0]
    if begun:
        numbers = ", ".join(f"#{it.seq}" for it in begun)
        raise e.ToolRefused(f"{one_line(which)} fits {numbers}. Use the number.")
    raise e.ToolRefused(f"There is no proposal {one_line(which)} in the room.")


LastOption = Annotated[int, number("--last", 1, MAX_ASKS, "How many.  [default: 50]")]

HOW = {
    "proposal": "folkmoot room approve WHERE ID, or room reject WHERE ID REASON",
    "held": "folkmoot proxy held show ID, then release or drop",
    "tool": "folkmoot backends diff, then backends accept",
    "call": "folkmoot asks show ID, then asks approve or asks reject",
}


@account_command
def asks(hub: HubClient, last: LastOption = 50) -> Output:
    """List what waits for your decision.

    Proposals in all your rooms, the riskiest first. With a token to run the hub also messages that
    a rule holds, and tools that changed.
    """
    page = hub.list_asks(limit=last)
    rows = [
        (id_of(it), it.risk, word(it.by), word(" ".join(it.to)), where(it), moment(it.since),
         moment(it.until) if it.until else "-", shortened(what(it)), shortened(why(it)))
        for it in page.asks
    ]  # fmt: skip
    columns = (Column("Id", "bold"), Column("Risk"), Column("From", named=True),
               Column("To", named=True), Column("Where"), Column("Since", "dim", named=True),
               Column("Until", "dim", named=True), Column("What", wide=True),
               Column("Reason", wide=True))  # fmt: skip
    more = page.count - len(page.asks)
    return Output(
        page,
        Table(columns, rows, "Nothing waits for you."),
        Note(f"{more:,} more; use --last.") if more > 0 else None,
        *(Note(f"To decide: {HOW[kind]}") for kind in dict.fromkeys(it.kind for it in page.asks)),
    )


def where(it: Ask) -> str:
    """Where something waits: a room, a server, or a rule."""
    if it.kind == "proposal":
        return word(it.room)
    if it.kind == "held":
        return word(it.held.rule if it.held else "")
    if it.kind == "call":
        return word(it.call.client if it.call else "")
    return word(it.tool.namespace if it.tool else "")


def id_of(it: Ask) -> str:
    """The id that the command takes which decides on it; of a proposal its number in the room."""
    return str(it.proposal.seq) if it.proposal else word(it.id.partition(":")[2])


def what(it: Ask) -> str:
    """What would be done, with its arguments as far as they are known."""
    if it.call:
        return f"{it.what} {spelled(it.call.arguments)}"
    message = (it.proposal and it.proposal.message) or {}
    payload: dict[str, Any] = message.get("payload", {})
    kind = kind_of(message.get("kind"), payload)
    return it.what if kind is None else called(kind, payload)


def why(it: Ask) -> str:
    """The reason that the proposer gave."""
    return (it.proposal and it.proposal.reason) or (it.call and it.call.why) or ""


def shortened(text: str) -> str:
    """A text in one line that leaves room for others; --json shows all of it."""
    return cut(word(text), 200, UNICODE.cut if can_show(UNICODE.cut) else ASCII.cut)


AskArgument = Annotated[str, argument("ID", "The ask, as 'folkmoot asks' lists it.")]
AskToolArgument = Annotated[str, argument("TOOL", "What you want to call.")]
AskedArguments = Annotated[
    str | None, option("--arguments", "JSON", "The arguments of the call, as a JSON object.")
]
OtherArguments = Annotated[str, option("--arguments", "JSON", "All arguments, as a JSON object.")]
AskWhyOption = Annotated[str, option("--why", "TEXT", "Why, for the person who decides.")]
AskWhomOption = Annotated[
    str | None, option("--to", "HANDLE", "Who is to decide.  [default: you]", checked_handle)
]
AskWaitOption = Annotated[
    int, number("--wait", 0, MAX_ASK_WAIT, "Wait up to this many seconds for the decision.")
]
ToldOption = Annotated[str, option("--reason", "TEXT", "What the program is to know about it.")]


@account_command
def ask(
    hub: HubClient,
    tool: AskToolArgument,
    arguments: AskedArguments = None,
    why: AskWhyOption = "",
    to: AskWhomOption = None,
    wait: AskWaitOption = 0,
) -> Output:
    """Ask someone before a script does something.

    The exit code is 0 once it is approved, and 1 if it is not, or not yet.
    """
    made = hub.create_ask(tool, arguments=given_arguments(arguments), why=why, to=to)
    ends = time.monotonic() + wait
    found = hub.get_ask(made.ask_id)
    while found.state == "open" and (left := int(ends - time.monotonic())) > 0:
        found = hub.get_ask(made.ask_id, wait=min(left, MAX_ASK_WAIT_ONCE))
    return shown_ask(found, failed=found.state != "approved")


@account_command
def show_ask(hub: HubClient, ask: AskArgument) -> Output:
    """Show what a program asks, and what became of it."""
    return shown_ask(hub.get_ask(ask))


def shown_ask(found: AskedCall, *, failed: bool = False) -> Output:
    """An ask, and what became of it."""
    shown = Fields(
        ("Id", found.id),
        ("State", found.state),
        ("Tool", found.tool),
        ("Asked by", f"{at(found.by)}, {found.client or 'with a token'}"),
        ("To", at(found.to)),
        ("Why", found.why),
        ("Until", moment(found.expires_at)),
        ("Decided", "" if found.decided_at is None else moment(found.decided_at)),
        ("Reason", found.reason),
        ("Approved instead", found.edited_as),
    )
    return Output(found, shown, pretty(found.arguments), failed=failed)


@account_command
def approve_ask(hub: HubClient, ask: AskArgument, reason: ToldOption = "") -> Output:
    """Approve what a program asks you.

    What your own programs ask you approve in a browser, with your passkey.
    """
    found = hub.decide_ask(ask, "approve", reason=reason)
    return Output(found, f"Approved: {at(found.by)} is told.")


@account_command
def edit_ask(
    hub: HubClient, ask: AskArgument, arguments: OtherArguments, reason: ToldOption = ""
) -> Output:
    """Approve what a program asks you, with other arguments.

    It reads which. What your own programs ask, or a rule of the hub, you edit in a browser, with
    your passkey.
    """
    found = hub.edit_ask(ask, given_arguments(arguments), reason=reason)
    return Output(found, f"Approved with these arguments, as {found.id}: {at(found.by)} is told.")


@account_command
def lasting_asks(hub: HubClient) -> Output:
    """List what you approved for longer, in the browser."""
    found = hub.list_lasting_asks()
    rows = [
        (word(it.id), word(it.tool), at(it.by), ", ".join(map(word, it.same)) or "any",
         moment(it.lasts_until or ""))
        for it in found.asks
    ]  # fmt: skip
    columns = (Column("Id", "bold"), Column("Tool"), Column("For"),
               Column("Same arguments", wide=True), Column("Until"))  # fmt: skip
    note = Note("To end one: folkmoot asks stop ID") if rows else None
    return Output(found, Table(columns, rows, "You have approved nothing for longer."), note)


@account_command
def stop_ask(hub: HubClient, ask: AskArgument) -> Output:
    """End an approval that lasts: the next call is asked about again."""
    found = hub.stop_ask(ask)
    return Output(found, f"Ended: calls of {word(found.tool)} are asked about again.")


@account_command
def reject_ask(hub: HubClient, ask: AskArgument, reason: ToldOption = "") -> Output:
    """Reject what a program asks you; it reads the reason."""
    found = hub.decide_ask(ask, "reject", reason=reason)
    return Output(found, f"Rejected: {at(found.by)} is told.")


ReceiptArgument = Annotated[str, argument("RECEIPT", "The receipt, as 'asks show --json' has it.")]
KeysOption = Annotated[
    str | None,
    option(
        "--keys", "FILE",
        "The hub's public keys, from /.well-known/jwks.json.  [default: asked of the hub]",
    ),
]  # fmt: skip


@with_json_option
def verify(
    receipt: ReceiptArgument,
    tool: AskToolArgument,
    arguments: AskedArguments = None,
    keys: KeysOption = None,
    url: HubOption = None,
) -> Output:
    """Check that a receipt approves this very call.

    With --keys it asks no hub. The exit code is 1 if the receipt is about another call, was not an
    approval, is too old, or is not signed by one of the keys.
    """
    from folkmoot.asks.receipts import check

    try:
        known = Path(keys).read_bytes() if keys else key_set_of(url)
        key_set = msgspec.json.decode(known)
    except (OSError, msgspec.DecodeError) as error:
        raise typer.BadParameter(f"--keys: {getattr(error, 'strerror', None) or error}") from None
    claims = check(receipt, key_set, tool, given_arguments(arguments), time.time())
    by, until = word(claims["decider"]), moment(claims["until"])
    return Output(claims, f"Valid: @{by} approved this call, until {until}.")


def key_set_of(url: str | None) -> bytes:
    """The public keys of a hub."""
    from folkmoot.client.transports import HubRequest

    hub = hub_at(hub_for(read_keyring(), url))
    return bytes(hub.send(HubRequest("GET", "/.well-known/jwks.json", {}), CALL_SECONDS).body)


asks_app = group(
    {
        "create": ask,
        "show": show_ask,
        "approve": approve_ask,
        "edit": edit_ask,
        "reject": reject_ask,
        "lasting": lasting_asks,
        "stop": stop_ask,
        "verify": verify,
    },
    "What waits for your decision. Without a command, list it.",
    asks,
)


@account_command
def decisions(hub: HubClient, last: LastOption = 50) -> Output:
    """List your decisions and their outcomes."""
    page = hub.list_decisions(limit=last)
    rows = [
        (moment(it.at), word(it.decision), word(it.what), word(it.by), word(it.room or it.server),
         came(it))
        for it in page.decisions
    ]  # fmt: skip
    columns = (Column("When", "dim"), Column("Decision", "bold"), Column("What", wide=True),
               Column("For"), Column("Where"), Column("Outcome"))  # fmt: skip
    return Output(page, Table(columns, rows, "You have not decided anything yet."))


def came(it: DecisionView) -> str:
    """What came of a decision, in a word or two."""
    if it.decision == "rejected" and it.outcome == "open":
        return "open: more must reject it"
    return one_line(it.outcome)
