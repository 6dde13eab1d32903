"""Proposals over all rooms: those someone may decide on, and deciding on one by id.

They are found by one query over the index of stored rooms; no room is loaded for it. A decision is
made of the proposer's own bytes, so nothing can differ from what was proposed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.capability import Rights, Source, capability
from folkmoot.core.entity import Entity
from folkmoot.core.mcpx import PROTOCOL
from folkmoot.core.message import JSONRPC
from folkmoot.core.policy import Principal
from folkmoot.core.uuids import as_stored
from folkmoot.mcp.wire import CANCELLED
from folkmoot.rooms.access import IN
from folkmoot.rooms.limits import ANSWERS_PAGE, MAX_DECIDABLE, MAX_ROOMS_ASKED
from folkmoot.rooms.machine import Role, RoomSettings
from folkmoot.rooms.machine.proposals import Choice, decidable
from folkmoot.rooms.machine.rights import all_rights, own_rights
from folkmoot.rooms.model import Outcome, ProposalView, RoomId, Visitor
from folkmoot.rooms.options import rights_of_roles
from folkmoot.rooms.queries import chunks, marks

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.rooms.loading import LiveRooms
    from folkmoot.rooms.ports import Policy, RoomPort
    from folkmoot.rooms.rooms import Rooms


DECIDE: Final = "room/decide"

_OPEN: Final = (
    "SELECT p.room_id, p.id, p.seq, p.kind, p.proposer, p.recipients, p.rejected_by, p.at, p.until "
    "FROM room_members m CROSS JOIN room_proposals p "
    "WHERE p.room_id = m.room_id AND m.account_id = ? AND m.state IN ('member', 'invited') "
    "AND p.until > ? AND p.proposer <> ? "
    "AND (EXISTS (SELECT 1 FROM users u WHERE u.id = p.proposer AND u.suspended_at IS NULL) "
    "OR EXISTS (SELECT 1 FROM room_guests g WHERE g.id = p.proposer)) "
    "AND EXISTS (SELECT 1 FROM room_messages s WHERE s.room_id = p.room_id AND s.seq = p.seq) "
    "ORDER BY p.until LIMIT ?"
)
_ROOMS: Final = (
    "SELECT r.id, r.name, r.capabilities, r.grants, m.role, g.capabilities FROM rooms r "
    "JOIN room_members m ON m.room_id = r.id AND m.account_id = ? "
    "LEFT JOIN room_grants g ON g.room_id = r.id AND g.account_id = m.account_id "
    "WHERE m.state IN ('member', 'invited') AND r.id IN ({})"
)
_NAMES: Final = (
    "SELECT id, handle FROM users WHERE id IN ({}) UNION ALL "
    "SELECT id, name FROM room_guests WHERE id IN ({})"
)

_ELSEWHERE: Final = (
    "SELECT m.room_id, m.role, r.name FROM room_members m JOIN rooms r ON r.id = m.room_id "
    "JOIN room_owners o ON o.room_id = r.id JOIN nodes n ON n.boot = o.owner "
    "WHERE m.account_id = ? AND m.state IN ('member', 'invited') AND r.durable = 0 "
    "AND o.owner <> ? AND n.until > ? ORDER BY m.room_id LIMIT ?"
)

_sources = msgspec.json.Decoder(tuple[Source, ...] | None).decode
_grants = msgspec.json.Decoder(dict[str, tuple[Source, ...]]).decode
_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class Decidable(Struct, frozen=True, kw_only=True):
    """An open proposal someone may decide on, without its content."""

    room_id: RoomId
    room: str
    id: str
    seq: int
    kind: str
    proposer: str
    """The name of whoever made it, if they are still here."""
    to: tuple[str, ...]
    at: float
    until: float
    rejections: int
    may: tuple[Choice, ...]


class HeldRights(Struct, frozen=True):
    """One of someone's rooms, and their rights there."""

    name: str
    rights: Rights


class OpenProposals(Struct, frozen=True):
    """The proposals waiting for someone; not `complete` if not all could be looked at."""

    proposals: list[Decidable]
    complete: bool


class ProposalFinder(Entity):
    """Finds proposals for those who may decide on them."""

    store: Store
    clock: Clock
    live: LiveRooms
    policy: Policy | None

    async def open_for(self, visitor: Visitor) -> OpenProposals:
        """The proposals someone may decide on in all rooms, soonest to expire first."""
        who, now = visitor.principal, self.clock.now()

        async def query(tx: Tx) -> tuple[list[Any], dict[RoomId, HeldRights], dict[str, str]]:
            rows = await tx.fetch(_OPEN, (who.account_id, now, who.account_id, MAX_DECIDABLE + 1))
            places = await _places(tx, who.account_id, {row[0] for row in rows})
            return rows, places, await names_of(tx, {row[4] for row in rows})

        rows, places, names = await self.store.read(query)
        places = {id_: it for id_, it in places.items() if self._may_decide(who, it.name)}
        found = [
            one
            for row in rows[:MAX_DECIDABLE]
            if row[0] in places
            and (one := _decidable(row, who.account_id, places[row[0]], names)) is not None
        ]
        found += await self._in_memory(who)
        elsewhere = await self._elsewhere(who)
        found += elsewhere.proposals
        found.sort(key=lambda one: one.until)
        complete = elsewhere.complete and len(rows) <= MAX_DECIDABLE
        return OpenProposals(found, complete=complete)

    async def message(self, one: Decidable) -> bytes | None:
        """The message of a proposal, if the history still has it."""
        live = self.live.get(one.room_id)
        # What is committed is listed at once, and a moment later the room has it.
        if live is not None and live.delivered >= one.seq:
            return await live.message(one.seq)
        row = await self.store.read(
            lambda tx: tx.fetch_one(
                "SELECT data FROM room_messages WHERE room_id = ? AND seq = ?",
                (one.room_id, one.seq),
            )
        )
        if row is not None:
            return bytes(row[0])
        room = await self.live.reach(one.room_id)
        return None if room is None else await room.message(one.seq)

    async def _elsewhere(self, who: Principal) -> OpenProposals:
        """The same in memory-only rooms of other nodes, each of which is asked.

        Not complete if there are too many of them, or one does not answer.
        """
        process, now = self.live.process, self.clock.now()
        if not process:
            return OpenProposals([], complete=True)
        rows = await self.store.read(
            lambda tx: tx.fetch(_ELSEWHERE, (who.account_id, process, now, MAX_ROOMS_ASKED + 1))
        )

        async def ask(room_id: RoomId, role: str) -> list[Decidable] | None:
            try:
                room = await self.live.reach(room_id)
                return None if room is None else await _of_live(room, who, Role(role))
            except e.FolkmootError:
                return None

        found = await asyncio.gather(
            *(
                ask(room_id, role)
                for room_id, role, name in rows[:MAX_ROOMS_ASKED]
                if self._may_decide(who, name)
            )
        )
        return OpenProposals(
            [one for some in found if some is not None for one in some],
            complete=len(rows) <= MAX_ROOMS_ASKED and None not in found,
        )

    async def _in_memory(self, who: Principal) -> list[Decidable]:
        """The proposals that someone may decide on in memory-only rooms."""
        live = {one.room_id: one for one in self.live if not one.durable}
        if not live:
            return []
        roles = await self.store.read(lambda tx: _roles(tx, who.account_id, live))
        return [
            found
            for id_, role in roles.items()
            if self._may_decide(who, live[id_].name)
            for found in await _of_live(live[id_], who, role)
        ]

    def _may_decide(self, who: Principal, room: str) -> bool:
        try:
            if self.policy is not None:
                self.policy.check(who, DECIDE, {"room": room}, attempted=False)
        except e.PolicyError:
            return False
        return True


def _decidable(
    row: Any, account: str, place: HeldRights, names: dict[str, str]
) -> Decidable | None:
    room_id, id_, seq, kind, proposer, recipients, rejected_by, at, until = row
    to, rejected = _texts(recipients), _texts(rejected_by)
    may = decidable(place.rights, account, kind, to, rejected)
    if not may or account in rejected:
        return None
    return Decidable(
        room_id=room_id,
        room=place.name,
        id=id_,
        seq=seq,
        kind=kind,
        proposer=names.get(proposer, ""),
        to=to,
        at=at,
        until=until,
        rejections=len(rejected),
        may=may,
    )


async def _places(tx: Tx, account: str, ids: Iterable[RoomId]) -> dict[RoomId, HeldRights]:
    """Those rooms an account may be in, with its rights there."""
    places: dict[RoomId, HeldRights] = {}
    for some in chunks(sorted(ids)):
        for id_, name, capabilities, grants, role, granted in await tx.fetch(
            _ROOMS.format(marks(some)), (account, *some)
        ):
            settings = RoomSettings(
                name=name,
                epoch="",
                rights=rights_of_roles(None if capabilities is None else _sources(capabilities)),
                account_rights=_grants(grants),
            )
            held = () if granted is None else _sources(granted) or ()
            own = own_rights(settings, Role(role), account)
            places[id_] = HeldRights(name, all_rights(own, map(capability, held)))
    return places


async def names_of(tx: Tx, ids: Iterable[str]) -> dict[str, str]:
    """The names of accounts and guests, as far as they are there."""
    names: dict[str, str] = {}
    for some in chunks(sorted(ids)):
        found = await tx.fetch(_NAMES.format(marks(some), marks(some)), (*some, *some))
        names.update({row[0]: row[1] for row in found})
    return names


async def _roles(tx: Tx, account: str, ids: Iterable[RoomId]) -> dict[RoomId, Role]:
    roles: dict[RoomId, Role] = {}
    for some in chunks(sorted(ids)):
        rows = await tx.fetch(
            "SELECT room_id, role, state FROM room_members WHERE account_id = ? "  # noqa: S608
            f"AND room_id IN ({marks(some)})",
            (account, *some),
        )
        roles.update({row[0]: Role(row[1]) for row in rows if row[2] in IN})
    return roles


async def _of_live(room: RoomPort, who: Principal, role: Role) -> list[Decidable]:
    _, found, rights = await room.waiting(who, role)
    return [
        Decidable(
            room_id=room.room_id,
            room=room.name,
            id=one.id,
            seq=one.seq,
            kind=one.kind,
            proposer=one.proposer_name,
            to=one.to,
            at=one.at,
            until=one.deadline,
            rejections=len(one.rejected_by),
            may=decidable(rights, who.account_id, one.kind, one.to, one.rejected_by),
        )
        for one in found
        if who.account_id not in one.rejected_by
    ]


ENDS: Final = ("mcp.response.", f"mcp.notification.{CANCELLED}")
"""How the kinds begin that end a request."""


class DecisionMessage(Struct, frozen=True, gc=False):
    """The members of a stored message that matter here."""

    seq: int
    id: str
    kind: str
    sender: str = msgspec.field(name="from")
    correlation_id: tuple[str, ...] = ()
    payload: Raw = Raw(b"{}")


class Proposed(Struct, frozen=True, gc=False):
    """The content of a proposal in its proposer's own bytes; a fulfilment must equal it."""

    method: str
    params: Raw | UnsetType = UNSET


class Answered(Struct, frozen=True, gc=False):
    """What a request was answered with."""

    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_stored = msgspec.json.Decoder(DecisionMessage).decode
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
        raise e.ProposalClosed(f"The proposal is already {view.state}.", state=view.state)
    if view.message is UNSET:
        raise e.ArgumentInvalid(
            "The room no longer keeps this proposal in its history, so it cannot be fulfilled.",
            field="proposal",
        )
    asked = _proposed(_stored(view.message).payload)
    payload: dict[str, Any] = {"jsonrpc": JSONRPC, "id": str(uuid4()), "method": asked.method}
    if asked.params is not UNSET:
        payload["params"] = asked.params
    kind = f"mcp.request{view.kind.removeprefix('mcp.proposal')}"
    target = target_of(view, to)
    stored = await _post(rooms, visitor, room, kind, view.id, payload, to=[target])
    return Outcome(view.id, "fulfilled", stored.sender, stored.seq, stored.id, to=target)


async def reject(rooms: Rooms, visitor: Visitor, room: str, id_: str, reason: str) -> Outcome:
    """Say no to a proposal; the room's policy says how many must."""
    if not reason.strip():
        raise e.ArgumentInvalid("A rejection needs a reason.", field="reason")
    id_ = (await find(rooms, visitor, room, id_)).id
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
        page = await rooms.messages(visitor, room, after=place, limit=ANSWERS_PAGE, wait=remaining)
        for message in map(_stored, page.messages):
            if outcome.decision in message.correlation_id and message.kind.startswith(ENDS):
                answer = _answered(message.payload)
                return replace(outcome, result=answer.result, error=answer.error)
            place = message.seq
        if len(page.messages) < ANSWERS_PAGE:
            if not remaining:
                return outcome
            # What the history does not hold cannot be waited for.
            place = max(place, page.last_seq)


async def find(rooms: Rooms, visitor: Visitor, room: str, id_: str) -> ProposalView:
    found = await rooms.proposals(visitor, room, id_=id_)
    if not found and as_stored(id_) != id_:
        found = await rooms.proposals(visitor, room, id_=as_stored(id_))
    if not found:
        raise e.ProposalUnknown("There is no such proposal in the room.")
    return found[0]


def target_of(view: ProposalView, to: str | None) -> str:
    """The participant to act: named by the proposal, or else by the caller."""
    if to is not None:
        return to
    if len(view.to) == 1:
        return view.to[0]
    whom = f"one of {', '.join(view.to)}" if view.to else "a participant of the room"
    raise e.ArgumentInvalid(f"Set `to` to the participant who should act: {whom}.", field="to")


async def _post(
    rooms: Rooms,
    visitor: Visitor,
    room: str,
    kind: str,
    about: str,
    payload: dict[str, Any],
    **more: Any,
) -> DecisionMessage:
    message = {"protocol": PROTOCOL, "kind": kind, "correlation_id": [about], **more}
    raw = strict.encode({**message, "payload": payload})
    return _stored(await rooms.post(visitor, room, raw))
