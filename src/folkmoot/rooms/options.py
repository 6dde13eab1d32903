"""What a hub says about all its rooms, and how one room is set within that."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from folkmoot.core.capability import Source
from folkmoot.core.policy import PrincipalType
from folkmoot.core.strict import DEFAULT_LIMITS, Limits
from folkmoot.ratelimits import Limit
from folkmoot.rooms.machine import DEFAULT_CHAT, DEFAULT_RIGHTS, Rates, Role, RoomSettings
from folkmoot.rooms.model import RoomRecord


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
    """What each role holds in a room that gives its members these; None for the defaults."""
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
