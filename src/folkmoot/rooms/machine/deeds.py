"""What the messages of the history change: the same when they are accepted and when replayed.

Nothing is checked here: a message that is part of the history was checked before it became so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.core.capability import Source
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.strict import learnt
from folkmoot.mcp.wire import CANCELLED, PROGRESS
from folkmoot.rooms.machine.model import GATEWAY, GUEST, Append
from folkmoot.rooms.machine.pauses import Pause
from folkmoot.rooms.machine.proposals import Proposal, Step, digest, expiry
from folkmoot.rooms.machine.proposals import State as ProposalState
from folkmoot.rooms.machine.requests import OpenRequest, progress_token
from folkmoot.rooms.machine.rights import Grant, read_revoke
from folkmoot.rooms.machine.state import State

Accounts: TypeAlias = Collection[str]
Deed: TypeAlias = Callable[[State, Append, McpxMessage, str], Accounts]
"""Takes the room, what was appended, the message in it, and its sender's name."""

NOBODY: Final[tuple[str, ...]] = ()


def apply(state: State, kind: Kind, append: Append, message: McpxMessage, sender: str) -> Accounts:
    """Let a message of the history have its effect; the accounts whose rights it changed."""
    deed = DEEDS.get((kind.protocol, kind.operation))
    return NOBODY if deed is None else deed(state, append, message, sender)


def fulfilled_by(state: State, message: McpxMessage) -> list[str]:
    """The proposals that a request correlates."""
    named = message.correlation_id
    return [id_ for id_ in dict.fromkeys(named) if state.proposals.get(id_)] if named else []


def request_of(state: State, append: Append, message: McpxMessage, sender: str) -> OpenRequest:
    """A request as one that waits for its answer."""
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
    if proposal is not None and proposal.state is ProposalState.OPEN:
        state.proposals.take(step, proposal, append.account, append.at, state.settings.quorum)


def _closing(step: Step) -> Deed:
    def deed(state: State, append: Append, message: McpxMessage, _sender: str) -> Accounts:
        for id_ in message.correlation_id:
            take_step(state, step, id_, append)
        return NOBODY

    return deed


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
    # A guest never comes back under the same id, so nobody would hold what it was granted.
    return state.grants.forget(account) if account.startswith(GUEST) else NOBODY


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
    return state.grants.revoke(state.grants.find(asked, append.about), asked)


def _payload(message: McpxMessage) -> dict[str, Any]:
    return message.payload or {}


DEEDS: Final[dict[tuple[str, str], Deed]] = {
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
