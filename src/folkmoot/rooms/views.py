"""Rooms and proposals as those who ask are shown them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from folkmoot.core.capability import Source
from folkmoot.rooms.machine import DEFAULT_RIGHTS, Proposal, Role
from folkmoot.rooms.machine.requests import OpenRequest, Standing
from folkmoot.rooms.machine.wire import moment
from folkmoot.rooms.model import OpenRequestView, ProposalView, RoomPolicy, RoomRecord, RoomView
from folkmoot.rooms.options import RoomOptions
from folkmoot.rooms.ports import RoomStatus


def policy_of(record: RoomRecord, options: RoomOptions) -> RoomPolicy:
    """The effective policy, including the hub's defaults."""
    asked = record.policy
    return msgspec.structs.replace(
        asked,
        proposal_seconds=asked.proposal_seconds or options.proposal_seconds,
        request_seconds=asked.request_seconds or options.request_seconds,
        progress_seconds=asked.progress_seconds or options.progress_seconds,
        keep_messages=options.kept_messages(record),
        keep_days=options.kept_days(record),
    )


def room_view(
    record: RoomRecord,
    status: RoomStatus | None,
    role: Role | None,
    owners: list[str],
    options: RoomOptions,
    epoch: str,
    handles: dict[str, str] | None = None,
    backends: Sequence[str] = (),
    *,
    may_enter: bool = True,
) -> RoomView:
    """A room; with the handles of those who were granted something, for its owners."""
    capabilities = record.capabilities
    if capabilities is None:
        capabilities = DEFAULT_RIGHTS[Role.MEMBER]
    grants: dict[str, list[Source]] | UnsetType = UNSET
    if handles is not None:
        held = record.grants.items()
        grants = {handles[id_]: list(sources) for id_, sources in held if id_ in handles}
    return RoomView(
        name=record.name,
        access=record.access,
        durable=record.durable,
        epoch=epoch,
        role=None if role is None else role.value,
        owners=owners,
        capabilities=list(capabilities),
        policy=policy_of(record, options),
        participants=0 if status is None else status.participants,
        first_seq=record.first_seq if status is None else status.first_seq,
        last_seq=record.last_seq if status is None else status.last_seq,
        created_at=moment(record.created_at),
        oldest_seq=_oldest_seq(record, status),
        grants=grants,
        backends=UNSET if role is None else list(backends),
        may_enter=may_enter,
    )


def _oldest_seq(record: RoomRecord, status: RoomStatus | None) -> int | UnsetType:
    """From where some messages before the first are kept, if any are."""
    if status is None:
        return UNSET if record.oldest_seq is None else record.oldest_seq
    return status.oldest_seq if status.oldest_seq < status.first_seq else UNSET


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
        message=UNSET if message is None else Raw(message),
    )


def request_view(
    request: OpenRequest, standing: Standing, message: bytes | None
) -> OpenRequestView:
    """An open request, as the one who was asked sees it."""
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
