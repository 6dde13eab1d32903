"""What a message changes in a room: the same when it is accepted and when it is replayed.

Nothing is checked in the table of changes: a message of the history was checked before. `Turn` is
one message on its way in, with what every act on it has in common.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import Source
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.scopes import ALL
from folkmoot.core.strict import learnt
from folkmoot.mcp.wire import CANCELLED, PROGRESS
from folkmoot.rooms.machine.members import Member, Pause
from folkmoot.rooms.machine.model import (
    GATEWAY,
    GUEST,
    NO_FACTS,
    Append,
    Audit,
    ConnectionId,
    Effect,
    Facts,
)
from folkmoot.rooms.machine.proposals import Proposal, ProposalStatus, Step, digest, expiry
from folkmoot.rooms.machine.requests import OpenRequest, progress_token
from folkmoot.rooms.machine.rights import Grant, read_revoke
from folkmoot.rooms.machine.state import State

Accounts: TypeAlias = Collection[str]
Change: TypeAlias = Callable[[State, Append, McpxMessage, str], Accounts]
"""Takes the room, what was appended, the message in it, and its sender's name."""

NOBODY: Final[tuple[str, ...]] = ()


def apply(state: State, kind: Kind, append: Append, message: McpxMessage, sender: str) -> Accounts:
    """Let a message of the history have its effect; the accounts whose rights it changed."""
    change = CHANGES.get((kind.protocol, kind.operation))
    return NOBODY if change is None else change(state, append, message, sender)


def fulfilled_by(state: State, message: McpxMessage) -> list[str]:
    """The proposals that a request correlates."""
    named = message.correlation_id
    return [id_ for id_ in dict.fromkeys(named) if state.proposals.get(id_)] if named else []


def request_of(state: State, append: Append, message: McpxMessage, sender: str) -> OpenRequest:
    """A message as an open request."""
    payload = _payload(message)
    proposals = [state.proposals.get(id_) for id_ in fulfilled_by(state, message)]
    return OpenRequest(
        id=append.id,
        kind=append.kind,
        payload_id=payload["id"],
        requester=append.account or "",
        requester_name=sender,
        target=append.about or "",
        target_name=message.to[0],
        deadline=append.at + state.settings.request_seconds,
        progress_token=progress_token(payload),
        proposer_name=next((p.proposer_name for p in proposals if p is not None), None),
        seq=append.seq,
        latest=append.at + state.settings.progress_seconds,
    )


def _requested(state: State, append: Append, message: McpxMessage, sender: str) -> Accounts:
    if append.about != GATEWAY:
        state.requests.open(request_of(state, append, message, sender))
    for id_ in fulfilled_by(state, message):
        take_step(state, "fulfil", id_, append)
    return NOBODY


def _begun(state: State, append: Append, message: McpxMessage, _sender: str) -> Accounts:
    for id_ in message.correlation_id:
        state.requests.begin(id_, append.about or "")
    return NOBODY


def _answered(state: State, _append: Append, message: McpxMessage, _sender: str) -> Accounts:
    for id_ in message.correlation_id:
        state.requests.close(id_)
    return NOBODY


def _notified(state: State, append: Append, message: McpxMessage, sender: str) -> Accounts:
    if message.kind.method == CANCELLED:
        return _answered(state, append, message, sender)
    if message.kind.method == PROGRESS:
        for id_ in message.correlation_id:
            state.requests.extend(id_, append.at + state.settings.request_seconds)
    return NOBODY


def _proposed(state: State, append: Append, message: McpxMessage, sender: str) -> Accounts:
    payload = _payload(message)
    state.proposals.open(
        Proposal(
            id=append.id,
            seq=append.seq,
            kind=append.kind,
            digest=digest(payload),
            proposer=append.account or "",
            proposer_name=sender,
            to=message.to,
            at=append.at,
            deadline=append.at + expiry(payload, state.settings.proposal_seconds),
        )
    )
    return NOBODY


def take_step(state: State, step: Step, id_: str, append: Append) -> None:
    """Take a step with a proposal, if it is still open."""
    proposal = state.proposals.get(id_)
    if proposal is not None and proposal.state is ProposalStatus.OPEN:
        state.proposals.take(step, proposal, append.account, append.at, state.settings.quorum)


def _closing(step: Step) -> Change:
    def change(state: State, append: Append, message: McpxMessage, _sender: str) -> Accounts:
        for id_ in message.correlation_id:
            take_step(state, step, id_, append)
        return NOBODY

    return change


_ENDINGS: Final[dict[str | None, Step]] = {"expired": "expire", "withdrawn": "kick"}


def _ended(state: State, append: Append, message: McpxMessage, sender: str) -> Accounts:
    step = _ENDINGS.get(message.kind.method, "expire")
    return _closing(step)(state, append, message, sender)


@learnt
class Paused(msgspec.Struct, frozen=True):
    """The payload of a `system.participant.paused`."""

    participant: str
    by: str
    reason: str | None = None
    timeout_seconds: float | None = None


def pause(state: State, append: Append, told: Paused) -> None:
    """Let someone be paused, as the gateway told everyone."""
    seconds = told.timeout_seconds
    until = None if seconds is None else append.at + seconds
    state.pauses.add(Pause(append.about or "", told.participant, told.by, told.reason, until))


def _held(state: State, append: Append, message: McpxMessage, _sender: str) -> Accounts:
    if message.kind.method == "paused":
        pause(state, append, msgspec.convert(_payload(message), Paused))
    else:
        state.pauses.drop(append.about or "")
    return NOBODY


def _kicked(state: State, append: Append, _message: McpxMessage, _sender: str) -> Accounts:
    account = append.about or ""
    state.pauses.drop(account)
    lost = state.grants.end_of(account)
    # A guest never comes back under the same id, so nobody would hold what it was granted.
    return lost | state.grants.forget(account) if account.startswith(GUEST) else lost


@learnt
class Granted(msgspec.Struct, frozen=True):
    """The payload of a `capability.grant-ack`: what was given, and what of it was the granter's."""

    recipient: str
    capabilities: list[Source]
    own: list[bool]
    status: str = "granted"


def _granted(state: State, append: Append, message: McpxMessage, _sender: str) -> Accounts:
    granted = msgspec.convert(_payload(message), Granted)
    return grant(state, append, message.correlation_id[0], granted)


def grant(state: State, ack: Append, id_: str, granted: Granted) -> Accounts:
    """Let a grant hold, as the gateway acknowledged it."""
    recipient = ack.about or ""
    given, own = tuple(granted.capabilities), tuple(granted.own)
    state.grants.add(Grant(id_, ack.account or "", recipient, granted.recipient, given, own))
    return (recipient,)


def _revoked(state: State, append: Append, message: McpxMessage, _sender: str) -> Accounts:
    asked = read_revoke(message.payload)
    try:
        found = state.grants.find(asked, append.about)
    except e.GrantUnknown:
        # It ended before, with the account that gave it.
        return NOBODY
    return state.grants.revoke(found, asked)


def _payload(message: McpxMessage) -> dict[str, Any]:
    return message.payload or {}


CHANGES: Final[dict[tuple[str, str], Change]] = {
    ("mcp", "request"): _requested,
    ("mcp", "response"): _answered,
    ("mcp", "notification"): _notified,
    ("mcp", "proposal"): _proposed,
    ("mcpx", "begin"): _begun,
    ("mcpx", "withdraw"): _closing("withdraw"),
    ("mcpx", "reject"): _closing("reject"),
    ("system", "proposal"): _ended,
    ("system", "participant"): _held,
    ("room", "kick"): _kicked,
    ("capability", "grant-ack"): _granted,
    ("capability", "revoke"): _revoked,
}


class Turn(Struct):
    """One message being processed: its sender, its content, and the time."""

    member: Member
    message: McpxMessage
    kind: Kind
    now: float
    connection: ConnectionId | None
    denied: e.PolicyError | None
    """Why no capability covers it; only acts that know of another right are asked then."""
    scope: str = ALL
    """That of the credential that it came with."""
    facts: Facts = NO_FACTS
    """What was looked up for it."""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload, empty where there is none."""
        return self.message.payload or {}


Act: TypeAlias = Callable[[State, Turn], list[Effect]]


def accept(state: State, turn: Turn, **more: Any) -> Append:
    """Make the message part of the history, with its effect."""
    appended = state.append(turn.member, turn.message, turn.kind, turn.now, **more)
    apply(state, turn.kind, appended, turn.message, turn.member.name)
    return appended


def audit(turn: Turn, action: str, about: str, **detail: Any) -> Audit:
    """The entry of the log that says what the sender did."""
    return Audit(turn.now, action, turn.member.name, turn.member.account, about, detail)


def check_no_deny(turn: Turn) -> None:
    """Refuse what a deny covers, though no capability is needed for it."""
    if turn.member.rights.denies(turn.kind, turn.message.payload, turn.message.to):
        raise turn.denied or e.CapabilityDenied(f"A deny of yours covers {turn.kind}.")
