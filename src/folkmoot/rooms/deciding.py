"""Deciding on a proposal by its id: the request is made of the proposer's own bytes.

Whoever decides needs not repeat what was proposed, so nothing can differ from it; and is told what
came of it, with the answer of the one who was asked where that comes in time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from folkmoot.core import strict
from folkmoot.core.errors import ArgumentInvalid, ProposalClosed, ProposalUnknown
from folkmoot.core.mcpx import PROTOCOL
from folkmoot.core.message import JSONRPC
from folkmoot.mcp.wire import CANCELLED
from folkmoot.rooms.model import Outcome, ProposalView, Visitor

if TYPE_CHECKING:
    from folkmoot.rooms.rooms import Rooms

PAGE: Final = 100
ENDS: Final = ("mcp.response.", f"mcp.notification.{CANCELLED}")
"""How the kinds begin that end a request."""


class Stored(Struct, frozen=True, gc=False):
    """A stored message, as far as it matters here."""

    seq: int
    id: str
    kind: str
    sender: str = msgspec.field(name="from")
    correlation_id: tuple[str, ...] = ()
    payload: Raw = Raw(b"{}")


class Proposed(Struct, frozen=True, gc=False):
    """What a proposal asks for, in its proposer's own bytes: what fulfils it must be equal."""

    method: str
    params: Raw | UnsetType = UNSET


class Answered(Struct, frozen=True, gc=False):
    """What a request was answered with."""

    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_stored = msgspec.json.Decoder(Stored).decode
_proposed = msgspec.json.Decoder(Proposed).decode
_answered = msgspec.json.Decoder(Answered).decode


async def approve(
    rooms: Rooms, visitor: Visitor, room: str, id_: str, *, to: str | None = None
) -> Outcome:
    """Make the request that was proposed, by the right of the one who approves.

    `to` is needed where the proposal leaves open who is to do it.
    """
    view = await find(rooms, visitor, room, id_)
    if view.state != "open":
        raise ProposalClosed(f"The proposal is already {view.state}.", state=view.state)
    if view.message is UNSET:
        raise ArgumentInvalid(
            "The room no longer keeps this proposal in its history, so it cannot be fulfilled.",
            field="proposal",
        )
    asked = _proposed(_stored(view.message).payload)
    payload: dict[str, Any] = {"jsonrpc": JSONRPC, "id": str(uuid4()), "method": asked.method}
    if asked.params is not UNSET:
        payload["params"] = asked.params
    kind = f"mcp.request{view.kind.removeprefix('mcp.proposal')}"
    target = target_of(view, to)
    stored = await _post(rooms, visitor, room, kind, id_, payload, to=[target])
    return Outcome(view.id, "fulfilled", stored.sender, stored.seq, stored.id, to=target)


async def reject(rooms: Rooms, visitor: Visitor, room: str, id_: str, reason: str) -> Outcome:
    """Say no to a proposal; the room's policy says how many must."""
    if not reason.strip():
        raise ArgumentInvalid("A rejection needs a reason.", field="reason")
    await find(rooms, visitor, room, id_)
    payload = {"reason": reason}
    stored = await _post(rooms, visitor, room, "mcpx.reject.proposal", id_, payload)
    view = await find(rooms, visitor, room, id_)
    return Outcome(
        view.id,
        view.state,
        stored.sender,
        stored.seq,
        stored.id,
        reason=reason,
        rejections=view.rejections,
    )


async def answer_to(
    rooms: Rooms, visitor: Visitor, room: str, outcome: Outcome, seconds: float
) -> Outcome:
    """The outcome of an approval with what was answered, if that comes within some seconds."""
    loop = asyncio.get_running_loop()
    until, place = loop.time() + seconds, outcome.seq
    while True:
        remaining = max(0.0, until - loop.time())
        page = await rooms.messages(visitor, room, after=place, limit=PAGE, wait=remaining)
        for message in map(_stored, page.messages):
            if outcome.decision in message.correlation_id and message.kind.startswith(ENDS):
                answer = _answered(message.payload)
                return replace(outcome, result=answer.result, error=answer.error)
            place = message.seq
        if len(page.messages) < PAGE:
            if not remaining:
                return outcome
            # What the history does not hold cannot be waited for.
            place = max(place, page.last_seq)


async def find(rooms: Rooms, visitor: Visitor, room: str, id_: str) -> ProposalView:
    """The proposal with an id."""
    found = await rooms.proposals(visitor, room, id_=id_)
    if not found:
        raise ProposalUnknown("There is no such proposal in the room.")
    return found[0]


def target_of(view: ProposalView, to: str | None) -> str:
    """Who is to do it: whom the proposal names, or else whom the caller does."""
    if to is not None:
        return to
    if len(view.to) == 1:
        return view.to[0]
    whom = f"one of {', '.join(view.to)}" if view.to else "a participant of the room"
    raise ArgumentInvalid(f"Give in to who should do it: {whom}.", field="to")


async def _post(
    rooms: Rooms,
    visitor: Visitor,
    room: str,
    kind: str,
    about: str,
    payload: dict[str, Any],
    **more: Any,
) -> Stored:
    message = {"protocol": PROTOCOL, "kind": kind, "correlation_id": [about], **more}
    raw = strict.encode({**message, "payload": payload})
    return _stored(await rooms.post(visitor, room, raw))
