"""Lists of a room's open requests, proposals and participants, for one visitor."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from folkmoot.rooms import queries_guests, queries_members
from folkmoot.rooms.access import IN
from folkmoot.rooms.directory import Directory
from folkmoot.rooms.limits import MAX_MEMBERS_LISTED, PAGE_BYTES
from folkmoot.rooms.machine import Proposal
from folkmoot.rooms.machine.requests import OpenRequest, Standing
from folkmoot.rooms.machine.wire import moment
from folkmoot.rooms.model import (
    AwayMember,
    OpenRequestView,
    ProposalView,
    RoomGrant,
    RoomId,
    RoomRights,
    Visitor,
    WaitingPage,
    reason_of,
)


class Listing(Directory):
    """The lists of one room."""

    async def participants(self, visitor: Visitor, name: str) -> list[dict[str, Any]]:
        """The participants, and whether they offer tools; unknown (None) for visitors."""
        record, _ = await self.find_in(visitor, name)
        return await (await self._live.open(record)).participants()

    async def away(self, visitor: Visitor, name: str, present: Container[str]) -> list[AwayMember]:
        """The members and guests of a room who are not among those present."""
        record, _ = await self.find_in(visitor, name)
        members = await self._store.read(
            lambda tx: queries_members.members_of(tx, record.id, MAX_MEMBERS_LISTED)
        )
        return [AwayMember(*member) for member in members if member[0] not in present]

    async def rights(self, visitor: Visitor, name: str) -> RoomRights:
        """What each role holds in a room, and the grants by messages that still hold."""
        record, _ = await self.find_in(visitor, name)
        roles, granted = await (await self._live.open(record)).rights()
        granters = [one.granter for one in granted]
        names = await self._store.read(lambda tx: queries_members.handles_of(tx, granters))
        return RoomRights(
            roles,
            [
                RoomGrant(
                    one.id, one.recipient_name, names.get(one.granter), list(one.capabilities)
                )
                for one in granted
            ],
        )

    async def rooms_of(self, visitor: Visitor) -> dict[RoomId, str]:
        """The rooms someone is in or invited to, with their names.

        A guest that was put out, or whose room is gone, has none.
        """
        id_ = visitor.principal.account_id
        if visitor.account is None:
            return await self._store.read(lambda tx: queries_guests.room_of(tx, id_))
        found = await self._store.read(lambda tx: queries_members.memberships_of(tx, id_))
        return {member.room_id: name for name, member in found if member.state in IN}

    async def proposals(
        self,
        visitor: Visitor,
        name: str,
        *,
        id_: str | None = None,
        state: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[ProposalView]:
        """The proposals of a room, the latest first; with `before`, those with a smaller `seq`.

        They end early, though never with the first, when they come to more than a page of bytes.
        """
        record, _ = await self.find_in(visitor, name)
        room = await self._live.open(record)
        found = [
            one
            for one in await room.proposals()
            if state in (None, one.state.value)
            and id_ in (None, one.id)
            and (before is None or one.seq < before)
        ][:limit]
        accounts = [one.closed_by for one in found if one.closed_by]
        names = await self._store.read(lambda tx: queries_members.handles_of(tx, accounts))
        views: list[ProposalView] = []
        size = 0
        for one in found:
            message = await room.message(one.seq)
            views.append(proposal_view(one, names, message))
            size += len(message or b"")
            if size > PAGE_BYTES and len(views) > 1:
                break
        return views

    async def waiting(
        self, visitor: Visitor, name: str, *, after: int = 0, limit: int = 100
    ) -> WaitingPage:
        """Open requests to someone, and open proposals they may decide on.

        The oldest first, after a `seq`; the page ends early when it comes to many bytes.
        """
        record, role = await self.find_in(visitor, name)
        room = await self._live.open(record)
        asked, decidable, _ = await room.waiting(visitor.principal, role)
        found: list[tuple[OpenRequest, Standing] | Proposal] = [
            *(one for one in asked if one[0].seq > after),
            *(one for one in decidable if one.seq > after),
        ]
        found.sort(key=_place)
        page = WaitingPage([], [], more=len(found) > limit)
        size = 0
        for one in found[:limit]:
            message = await room.message(_place(one))
            size += len(message or b"")
            if size > PAGE_BYTES and (page.requests or page.proposals):
                return msgspec.structs.replace(page, more=True)
            if isinstance(one, Proposal):
                page.proposals.append(proposal_view(one, {}, message))
            else:
                page.requests.append(request_view(*one, message))
        return page


def _place(one: tuple[OpenRequest, Standing] | Proposal) -> int:
    """The `seq` of a proposal or of an open request."""
    return one.seq if isinstance(one, Proposal) else one[0].seq


def proposal_view(proposal: Proposal, names: dict[str, str], message: bytes | None) -> ProposalView:
    """A proposal; accounts are told by the names they have here."""
    closed_at = proposal.closed_at
    return ProposalView(
        id=proposal.id,
        seq=proposal.seq,
        kind=proposal.kind,
        proposer=proposal.proposer_name,
        to=proposal.to,
        state=proposal.state.value,
        created_at=moment(proposal.at),
        expires_at=moment(proposal.deadline),
        rejections=len(proposal.rejected_by),
        closed_by=names.get(proposal.closed_by or ""),
        closed_at=None if closed_at is None else moment(closed_at),
        reason=reason_of(message),
        message=UNSET if message is None else Raw(message),
    )


def request_view(
    request: OpenRequest, standing: Standing, message: bytes | None
) -> OpenRequestView:
    """An open request for the participant who was asked."""
    return OpenRequestView(
        id=request.id,
        seq=request.seq,
        kind=request.kind,
        requester=request.requester_name,
        state=standing,
        expires_at=moment(request.deadline),
        proposer=request.proposer_name or UNSET,
        message=UNSET if message is None else Raw(message),
    )
