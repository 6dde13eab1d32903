"""The nouns of the service: what is stored of a room, who asks, and what they are answered.

A room's `id` is a number, never shown: outside it is known by its name.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from folkmoot.accounts.model import Account
from folkmoot.core.capability import Source
from folkmoot.core.policy import Principal
from folkmoot.rooms.machine import Role

RoomId: TypeAlias = int
Access: TypeAlias = Literal["open", "invite", "private"]
MemberState: TypeAlias = Literal["member", "invited", "banned"]

ACCESS: tuple[Access, ...] = get_args(Access)

MOST_BACKENDS = 16
"""Servers of the hub that may take part in one room."""
DAY = 86_400.0


class RoomPolicy(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a room decides for itself; where a time or an amount is 0, the hub decides."""

    quorum: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """How many different participants must reject a proposal to close it."""
    proposal_seconds: Annotated[float, Meta(ge=0, le=365 * DAY)] = 0.0
    request_seconds: Annotated[float, Meta(ge=0, le=DAY)] = 0.0
    keep_messages: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
    keep_days: Annotated[int, Meta(ge=0, le=36_500)] = 0
    progress_seconds: Annotated[float, Meta(ge=0, le=DAY)] = 0.0
    """How long a request may stay open while its progress is told."""
    loop_guard: Annotated[int, Meta(ge=0, le=10_000)] = 30
    """How often agents may answer each other without a person; 0 for as often as they like."""


class RoomRecord(Struct, frozen=True):
    """A room as it is stored, without its snapshot: `queries.snapshot_of` reads that.

    `capabilities` are what everyone holds here, None for the defaults of their roles; `grants` are
    what single accounts hold beside them, by account id.
    """

    id: RoomId
    name: str
    epoch: str
    access: Access
    durable: bool
    capabilities: tuple[Source, ...] | None
    grants: dict[str, tuple[Source, ...]]
    policy: RoomPolicy
    first_seq: int
    created_by: str | None
    created_at: int
    updated_at: int
    oldest_seq: int | None = None
    """From where some messages before `first_seq` are kept, if any are."""
    last_seq: int = 0
    """Of the messages that are stored; what a room in memory alone has said is not among them."""
    owners: tuple[str, ...] = ()
    """The accounts of all owners; `created_by`, which the room counts for, is one of them."""


class Membership(Struct, frozen=True, gc=False):
    """What an account is to a room."""

    room_id: RoomId
    account_id: str
    role: Role
    state: MemberState


class Visitor(Struct, frozen=True, gc=False):
    """Who asks, whatever the transport. A guest has no account and one room."""

    principal: Principal
    account: Account | None
    room_id: RoomId | None = None
    credential_id: str = ""
    """Of the credential it came with; empty where none was shown."""

    def __repr__(self) -> str:
        return f"<Visitor {self.principal.name}>"


class RoomView(Struct, frozen=True):
    """A room as someone who may know of it sees it."""

    name: str
    access: Access
    durable: bool
    epoch: str
    role: str | None
    """What the asker is here; None for one who is not in it."""
    owners: list[str]
    capabilities: list[Source]
    policy: RoomPolicy
    participants: int
    """How many are here now, not counting backends."""
    first_seq: int
    last_seq: int
    created_at: str
    oldest_seq: int | UnsetType = UNSET
    """From where some messages before `first_seq` are kept, if any are."""
    grants: dict[str, list[Source]] | UnsetType = UNSET
    """By handle; told to owners alone."""
    backends: list[str] | UnsetType = UNSET
    """The servers behind the hub that take part, by namespace; told to those who are in it."""


class RoomPage(Struct, frozen=True):
    """Some rooms, by name, and the cursor of the next ones if there are more."""

    rooms: list[RoomView]
    next_cursor: str | None = None


class MessagePage(Struct, frozen=True):
    """Some messages, in their order, and which of them the room has."""

    messages: list[Raw]
    first_seq: int
    last_seq: int
    oldest_seq: int | UnsetType = UNSET
    """From where some messages before `first_seq` are kept, if any are."""


class ProposalView(Struct, frozen=True):
    """A proposal and what has come of it so far."""

    id: str
    seq: int
    kind: str
    proposer: str
    to: tuple[str, ...]
    state: str
    created_at: str
    expires_at: str
    rejections: int
    closed_by: str | None = None
    closed_at: str | None = None
    message: Raw | UnsetType = UNSET
    """The envelope, as long as the history has it."""


class RequestView(Struct, frozen=True):
    """An open request to the one who asks, and how far it has come."""

    id: str
    seq: int
    kind: str
    requester: str
    state: str
    """`waiting`; `running` where a connection of theirs began it; `interrupted` where that one did
    not come back."""
    expires_at: str
    proposer: str | UnsetType = UNSET
    """Whose proposal it fulfils."""
    message: Raw | UnsetType = UNSET
    """The envelope, as long as the history has it."""


class WaitingPage(Struct, frozen=True):
    """What waits for someone: the oldest first, and whether more follows."""

    requests: list[RequestView]
    proposals: list[ProposalView]
    more: bool


class Outcome(Struct, frozen=True):
    """What came of a decision on a proposal."""

    id: str
    state: str
    """`fulfilled`, `rejected`, or still `open` where more must reject it."""
    by: str
    seq: int
    """Of the message that decided."""
    decision: str
    """The id of that message: a request, or a rejection."""
    to: str | UnsetType = UNSET
    """Who was asked to do it."""
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    """What was answered; neither is there while the answer is awaited."""
    reason: str | UnsetType = UNSET
    rejections: int | UnsetType = UNSET


class Invitation(Struct, frozen=True, omit_defaults=True):
    """What an inviter is answered: a guest's token is told here and nowhere else."""

    room: str
    handle: str | None = None
    guest: str | None = None
    token: str | None = None
    expires_at: str | None = None

    def __repr__(self) -> str:
        return f"<Invitation to {self.room} for {self.handle or self.guest}>"


class Guest(Struct, frozen=True, gc=False):
    """Someone without an account who was asked into one room; `id` stands for an account id."""

    id: str
    room_id: RoomId
    name: str
    invited_by: str = ""
    capabilities: tuple[Source, ...] = ()
    """What it shall hold from the start, beside what all guests hold."""
    invite_id: str = ""
    """The message that invited it; what it is granted has this name."""
