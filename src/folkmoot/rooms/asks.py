"""The open proposals of all rooms of someone that they may decide on and have not rejected.

It is one query over the index of stored rooms, whose cost grows with the rooms someone is in and
with what is open there; no room is loaded for it. Rooms in memory are asked themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core.capability import Rights, Source, capability
from folkmoot.core.errors import PolicyError
from folkmoot.core.policy import Principal
from folkmoot.rooms.access import IN
from folkmoot.rooms.machine import Role, RoomSettings
from folkmoot.rooms.machine.rights import all_rights, own_rights
from folkmoot.rooms.machine.waiting import Step, decidable
from folkmoot.rooms.model import RoomId, Visitor
from folkmoot.rooms.options import rights_of_roles
from folkmoot.rooms.queries import chunks, marks

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.rooms.loading import LiveRooms
    from folkmoot.rooms.ports import Policy, RoomPort

DECIDE: Final = "room/decide"
MOST: Final = 5_000
"""Open proposals that are looked at, those that end soonest first."""

_OPEN: Final = (
    "SELECT p.room_id, p.id, p.seq, p.kind, p.proposer, p.recipients, p.rejected_by, p.at, p.until "
    "FROM room_members m CROSS JOIN room_proposals p "
    "WHERE p.room_id = m.room_id AND m.account_id = ? AND m.state IN ('member', 'invited') "
    "AND p.until > ? AND p.proposer <> ? ORDER BY p.until LIMIT ?"
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

_sources = msgspec.json.Decoder(tuple[Source, ...] | None).decode
_grants = msgspec.json.Decoder(dict[str, tuple[Source, ...]]).decode
_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class Decidable(Struct, frozen=True, kw_only=True):
    """An open proposal that someone may decide on, without what it says."""

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
    may: tuple[Step, ...]


class Place(Struct, frozen=True):
    """One of someone's rooms, and what they hold there."""

    name: str
    rights: Rights


class Found(Struct, frozen=True):
    """What waits for someone; `complete` unless so much is open that some was not looked at."""

    proposals: list[Decidable]
    complete: bool


class Asks:
    """What waits in rooms for those who may decide."""

    def __init__(self, store: Store, clock: Clock, live: LiveRooms, policy: Policy | None) -> None:
        self._store = store
        self._clock = clock
        self._live = live
        self._policy = policy

    async def open_for(self, visitor: Visitor) -> Found:
        """What someone may decide on in all their rooms, those that end soonest first."""
        who, now = visitor.principal, self._clock.now()

        async def query(tx: Tx) -> tuple[list[Any], dict[RoomId, Place], dict[str, str]]:
            rows = await tx.fetch(_OPEN, (who.account_id, now, who.account_id, MOST + 1))
            places = await _places(tx, who.account_id, {row[0] for row in rows})
            return rows, places, await _names(tx, {row[4] for row in rows})

        rows, places, names = await self._store.read(query)
        places = {id_: it for id_, it in places.items() if self._may_decide(who, it.name)}
        found = [
            one
            for row in rows[:MOST]
            if row[0] in places
            and (one := _decidable(row, who.account_id, places[row[0]], names)) is not None
        ]
        found += await self._in_memory(who)
        found.sort(key=lambda one: one.until)
        return Found(found, complete=len(rows) <= MOST)

    async def message(self, one: Decidable) -> bytes | None:
        """A proposal itself, as long as the history has it."""
        live = self._live.get(one.room_id)
        if live is not None:
            return await live.message(one.seq)
        row = await self._store.read(
            lambda tx: tx.fetch_one(
                "SELECT data FROM room_messages WHERE room_id = ? AND seq = ?",
                (one.room_id, one.seq),
            )
        )
        return None if row is None else row[0]

    async def _in_memory(self, who: Principal) -> list[Decidable]:
        """The same of rooms that are in memory alone: those there are, are live."""
        live = {one.room_id: one for one in self._live if not one.durable}
        if not live:
            return []
        roles = await self._store.read(lambda tx: _roles(tx, who.account_id, live))
        return [
            found
            for id_, role in roles.items()
            if self._may_decide(who, live[id_].name)
            for found in await _of_live(live[id_], who, role)
        ]

    def _may_decide(self, who: Principal, room: str) -> bool:
        try:
            if self._policy is not None:
                self._policy.check(who, DECIDE, {"room": room}, attempted=False)
        except PolicyError:
            return False
        return True


def _decidable(row: Any, account: str, place: Place, names: dict[str, str]) -> Decidable | None:
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


async def _places(tx: Tx, account: str, ids: Iterable[RoomId]) -> dict[RoomId, Place]:
    """Those of some rooms that an account may be in, and what it holds there."""
    places: dict[RoomId, Place] = {}
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
            places[id_] = Place(name, all_rights(own, map(capability, held)))
    return places


async def _names(tx: Tx, ids: Iterable[str]) -> dict[str, str]:
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
