"""The hub's settings for all rooms, and one room's settings within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core.capability import Source
from folkmoot.core.policy import PrincipalType
from folkmoot.core.strict import DEFAULT_LIMITS, Limits
from folkmoot.ratelimits import Limit
from folkmoot.rooms.machine import DEFAULT_CHAT, DEFAULT_RIGHTS, Rates, Role, RoomSettings
from folkmoot.rooms.machine.wire import moment
from folkmoot.rooms.model import RoomPolicy, RoomRecord, RoomView
from folkmoot.rooms.ports import RoomStatus


class RoomOptions(Struct, frozen=True, kw_only=True):
    """The bounds and defaults of every room of a hub."""

    limits: Limits = DEFAULT_LIMITS
    accept_old_spellings: bool = False
    chat: Mapping[PrincipalType, Limit | None] = DEFAULT_CHAT
    rates: Rates | None = None
    request_seconds: float = 300.0
    progress_seconds: float = 3_600.0
    proposal_seconds: float = 3_600.0
    keep_messages: int = 100_000
    keep_days: int = 0
    memory_messages: int = 10_000
    room_bytes: int = 268_435_456
    """What the history of one stored room may take; 0 for any amount, here and below."""
    memory_room_bytes: int = 4_194_304
    memory_account_bytes: int = 8_388_608
    memory_bytes: int = 268_435_456
    """What histories in memory may take: of one room, of one owner's rooms, and of all."""
    max_rooms_each: int = 100
    tool_presence_seconds: float = 600.0
    return_seconds: float = 30.0

    def kept_messages(self, record: RoomRecord) -> int:
        """How many messages a room keeps; it may ask for fewer than the hub would keep."""
        most = self.keep_messages if record.durable else self.memory_messages
        return min(record.policy.keep_messages or most, most)

    def kept_days(self, record: RoomRecord) -> int:
        """For how many days a room keeps its messages; 0 is for ever."""
        asked = [days for days in (record.policy.keep_days, self.keep_days) if days]
        return min(asked, default=0)


def rights_of_roles(capabilities: tuple[Source, ...] | None) -> dict[Role, tuple[Source, ...]]:
    """Each role's rights in a room with these member capabilities; None for the defaults."""
    rights = dict(DEFAULT_RIGHTS)
    if capabilities is not None:
        rights[Role.MEMBER] = rights[Role.GUEST] = capabilities
    return rights


def settings_of(record: RoomRecord, options: RoomOptions, epoch: str) -> RoomSettings:
    """How a room is set, from its record and what the hub says."""
    policy = record.policy
    return RoomSettings(
        name=record.name,
        epoch=epoch,
        rights=rights_of_roles(record.capabilities),
        owner=record.created_by,
        owners=frozenset(record.owners),
        account_rights=record.grants,
        chat=options.chat,
        rates=options.rates,
        loop_guard=policy.loop_guard,
        request_seconds=policy.request_seconds or options.request_seconds,
        progress_seconds=policy.progress_seconds or options.progress_seconds,
        proposal_seconds=policy.proposal_seconds or options.proposal_seconds,
        quorum=policy.quorum,
        return_seconds=options.return_seconds,
        limits=options.limits,
        accept_old_spellings=options.accept_old_spellings,
    )


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
