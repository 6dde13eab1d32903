"""Rebuilding a room: from its stored messages, and from a snapshot of what they no longer tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from folkmoot.core.kinds import Kind, parse
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.strict import Limits
from folkmoot.rooms.machine.changes import CHANGES, apply
from folkmoot.rooms.machine.members import Pause
from folkmoot.rooms.machine.model import GATEWAY, Append, Role
from folkmoot.rooms.machine.proposals import Proposal
from folkmoot.rooms.machine.requests import OpenRequest
from folkmoot.rooms.machine.rights import Grant
from folkmoot.rooms.machine.state import State

_ANY_SIZE: Final = Limits(message_bytes=2**40, nesting=2**16)
_PRESENCE: Final = ("system", "presence")

REPLAYED: Final = tuple(sorted(".".join(place) for place in (*CHANGES, _PRESENCE)))
"""The roots of the kinds that a room is rebuilt from; no other message changes what it knows."""


class Here(msgspec.Struct, frozen=True):
    """A participant in a snapshot."""

    account: str
    name: str
    type: str
    role: str


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a room beside its retained messages."""

    seq: int
    first_seq: int
    requests: list[OpenRequest]
    proposals: list[Proposal]
    grants: list[Grant]
    here: list[Here]
    paused: list[Pause] = []


_decode = msgspec.json.Decoder(Snapshot).decode


def take_snapshot(state: State) -> bytes:
    """The room as bytes, to be stored in the transaction that trims its history."""
    here = [
        Here(member.account, member.name, member.principal.type.value, member.role.value)
        for member in state.members
    ]
    return msgspec.json.encode(
        Snapshot(
            state.seq,
            state.first_seq,
            list(state.requests),
            list(state.proposals),
            list(state.grants),
            here,
            list(state.pauses),
        )
    )


def replay(
    state: State,
    messages: Iterable[Append],
    now: float,
    *,
    snapshot: bytes | None = None,
    last_seq: int | None = None,
    first_seq: int | None = None,
    oldest_seq: int | None = None,
) -> None:
    """Bring an empty state to where its history left it."""
    here: dict[str, Here] = {}
    if snapshot is not None:
        here = _restore(state, _decode(snapshot))
    known = state.seq
    for append in messages:
        if append.seq > known:
            state.seq = append.seq
            _again(state, append, here)
    if last_seq is not None:
        state.seq = max(state.seq, last_seq)
    if first_seq is not None:
        state.first_seq = first_seq
    state.oldest_seq = state.first_seq if oldest_seq is None else oldest_seq
    state.ids.begin(state.oldest_seq, state.seq)
    for who in here.values():
        principal = Principal(who.account, who.name, PrincipalType(who.type))
        state.members.add(state.member_for(principal, Role(who.role)))
        state.deadlines.set("ghost", who.account, now + state.settings.return_seconds)
        state.requests.await_return(who.account, now + state.settings.return_seconds)


def _restore(state: State, taken: Snapshot) -> dict[str, Here]:
    state.seq, state.first_seq = taken.seq, taken.first_seq
    for request in taken.requests:
        state.requests.open(request)
    for proposal in taken.proposals:
        state.proposals.open(proposal)
    for grant in taken.grants:
        state.grants.add(grant)
    for pause in taken.paused:
        state.pauses.add(pause)
    return {who.account: who for who in taken.here}


def _again(state: State, append: Append, here: dict[str, Here]) -> None:
    kind: Kind = parse(append.kind)
    place = (kind.protocol, kind.operation)
    if place not in CHANGES and place != _PRESENCE:
        return
    message = decode_mcpx(append.data, _ANY_SIZE)
    if place != _PRESENCE:
        apply(state, kind, append, message, message.sender or GATEWAY)
        return
    here.pop(append.about or "", None)
    if kind.method == "join" and message.payload is not None:
        shown = message.payload["participant"]
        who = Here(append.about or "", shown["id"], shown["type"], shown["role"])
        here[who.account] = who
