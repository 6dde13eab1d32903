"""The nouns of the service: what is stored of a room, who asks, and what they are answered.

A room's `id` is a number, never shown: outside it is known by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from folkmoot.accounts.model import Account
from folkmoot.core.capability import Source
from folkmoot.core.policy import Principal
from folkmoot.decisions import Risk
from folkmoot.rooms.machine import Role

RoomId: TypeAlias = int
Access: TypeAlias = Literal["open", "invite", "private"]
MemberState: TypeAlias = Literal["member", "invited", "banned"]

ProposalState: TypeAlias = Literal["open", "fulfilled", "rejected", "withdrawn", "expired"]

ACCESS: tuple[Access, ...] = get_args(Access)

ROOM_PATTERN: Final = "^[a-z0-9][a-z0-9._-]{0,63}$"

DAY = 86_400.0


def ref(name: str) -> dict[str, Any]:
    """A schema of the OpenAPI document, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(description: str, **more: Any) -> Meta:
    """What the OpenAPI document says of a member of an answer."""
    return Meta(description=description, extra_json_schema=more or None)


def moment(description: str) -> Meta:
    """The same of a time."""
    return described(description, format="date-time")


def place(description: str) -> Meta:
    """The same of a place in the history of a room."""
    return described(description, minimum=0)


Held: TypeAlias = Annotated[Source, Meta(extra_json_schema=ref("Capability"))]
"""A capability that is shown."""
if TYPE_CHECKING:
    StoredJson: TypeAlias = Any
else:
    StoredJson = Raw
"""JSON that is passed on as it was written. Clients get it decoded: for mypy it is anything."""

Envelope: TypeAlias = Annotated[StoredJson, Meta(extra_json_schema=ref("Message"))]
"""A stored message, in the bytes that everyone gets."""
OLDEST_SEQ: Final = (
    "The `seq` of the oldest message that is kept. Present where some messages "
    "before `first_seq` are kept, but not all of them."
)
NEXT_CURSOR: Final = described("The `cursor` of the next page; null when nothing follows.")


class RoomPolicy(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a room decides for itself; where a time or an amount is 0, the hub decides."""

    quorum: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="How many different participants must reject a proposal to close it.",
        ),
    ] = 1
    proposal_seconds: Annotated[
        float, Meta(ge=0, le=365 * DAY, description="How long a proposal is open, in seconds.")
    ] = 0.0
    request_seconds: Annotated[
        float, Meta(ge=0, le=DAY, description="How long an answer may take, in seconds.")
    ] = 0.0
    keep_messages: Annotated[
        int, Meta(ge=0, le=1_000_000_000, description="How many messages are kept.")
    ] = 0
    keep_days: Annotated[
        int,
        Meta(ge=0, le=36_500, description="For how many days messages are kept; 0 is forever."),
    ] = 0
    progress_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=DAY,
            description="How long an answer may take while progress is told, in seconds.",
        ),
    ] = 0.0
    loop_guard: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="How often agents may answer each other without a person before they are "
            "held; 0 for as often as they like.",
        ),
    ] = 30


class RoomRecord(Struct, frozen=True):
    """A room's row, without its snapshot, which `queries.snapshot_of` reads.

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
    version: int = 0
    """How often it was changed."""
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
    read_seq: int = 0
    """The last message that it has read."""


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
    """A room as someone who may see it sees it."""

    name: Annotated[str, described("The room's name.", pattern=ROOM_PATTERN)]
    access: Annotated[Access, described("Who may enter.")]
    durable: Annotated[bool, described("Whether its history is kept on the disk.")]
    epoch: Annotated[str, described("Changes when the numbering of messages restarts.")]
    role: Annotated[
        str | None,
        described(
            "Your role in the room; null when you are not in it.",
            enum=["owner", "member", "guest", None],
        ),
    ]
    owners: Annotated[list[str], described("The handles of the owners.")]
    capabilities: Annotated[list[Held], described("The capabilities of members.")]
    policy: Annotated[RoomPolicy, described("The room's own policy, including the hub's defaults.")]
    participants: Annotated[
        int, described("How many are here now, not counting backends.", minimum=0)
    ]
    first_seq: Annotated[int, place("The `seq` from which its history is complete.")]
    last_seq: Annotated[int, place("The `seq` of the last message.")]
    created_at: Annotated[str, moment("When it was made.")]
    oldest_seq: Annotated[int | UnsetType, place(OLDEST_SEQ)] = UNSET
    grants: Annotated[
        dict[str, list[Held]] | UnsetType,
        described("Additional capabilities of single people, by handle; shown to owners only."),
    ] = UNSET
    backends: Annotated[
        list[str] | UnsetType,
        described("The namespaces of the backends that take part; shown to members only."),
    ] = UNSET
    may_enter: Annotated[
        bool, described("Whether you may enter: you are in it, it is open, or you were invited.")
    ] = True
    invited: Annotated[
        bool | UnsetType, described("True where you were invited and have not entered yet.")
    ] = UNSET
    read_seq: Annotated[
        int | UnsetType,
        place("The `seq` up to which you have read; present where you are in the room."),
    ] = UNSET
    unread: Annotated[
        int | UnsetType,
        described(
            "How many messages and proposals of others you have not read: up to 100, counted "
            "among the last 500 messages of any kind. Present where you are in the room.",
            minimum=0,
        ),
    ] = UNSET
    mentions: Annotated[
        int | UnsetType,
        described("How many unread messages mention you: up to 100.", minimum=0),
    ] = UNSET


class ReadRoom(Struct, frozen=True):
    """How far you have read a room, and what is new after that."""

    room: Annotated[str, described("The room.")]
    read_seq: Annotated[int, place("The `seq` up to which you have read.")]
    unread: Annotated[int, described("How many messages of others are unread.", minimum=0)]
    mentions: Annotated[int, described("How many of them mention you.", minimum=0)]


class UnreadRoom(Struct, frozen=True):
    """A room with something new in it."""

    room: Annotated[str, described("The room.")]
    unread: Annotated[int, described("How many messages of others are unread.", minimum=0)]
    mentions: Annotated[int, described("How many of them mention you.", minimum=0)]
    invited: Annotated[bool, described("Whether you were invited and have not entered yet.")]


class UnreadRooms(Struct, frozen=True):
    """The rooms with something new in them, and the sums."""

    rooms: Annotated[
        list[UnreadRoom], described("Invitations first, then mentions; at most 100 rooms.")
    ]
    unread: Annotated[int, described("How many messages are unread in them.", minimum=0)]
    mentions: Annotated[int, described("How many of them mention you.", minimum=0)]
    invitations: Annotated[int, described("To how many of them you are invited.", minimum=0)]


class AwayMember(Struct, frozen=True):
    """A member or a guest of a room who is not there now."""

    id: Annotated[str, described("The handle, or a guest's name.")]
    type: Annotated[str, described("Who it is.", enum=["person", "agent", "guest"])]
    role: Annotated[str, described("As what.", enum=[each.value for each in Role])]


class RoomGrant(Struct, frozen=True):
    """What someone was granted by a message, and still holds."""

    id: Annotated[str, described("The id of the grant's message: what a revocation names.")]
    recipient: Annotated[str, described("Who holds it.")]
    granter: Annotated[str | None, described("Who granted it; null when they are gone.")]
    capabilities: Annotated[list[Held], described("What was granted.")]


class RoomRights(Struct, frozen=True):
    """The rights in a room by role, and the grants."""

    roles: Annotated[dict[str, list[Held]], described("What everyone of a role holds, by role.")]
    grants: Annotated[list[RoomGrant], described("What was granted by messages, the oldest first.")]


class RoomPage(Struct, frozen=True):
    """Some rooms, by name, and the cursor of the next ones if there are more."""

    rooms: Annotated[list[RoomView], described("By name.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class Comings(Struct, frozen=True, gc=False):
    """How often someone came and left."""

    came: Annotated[int, described("How often they came.", minimum=0)]
    left: Annotated[int, described("How often they left.", minimum=0)]


class Fold(Struct, frozen=True):
    """Messages that follow each other and that nobody needs to read, as counts."""

    first: Annotated[int, place("The `seq` of the first of them.")]
    last: Annotated[int, place("The `seq` of the last of them.")]
    protocol: Annotated[int, described("How many are messages of the protocol.", minimum=0)]
    presence: Annotated[dict[str, Comings], described("Who came and left, by name.")]
    others: Annotated[int, described("How many more people came or left.", minimum=0)] = 0


class MessagePage(Struct, frozen=True):
    """Some messages, in their order, and which of them the room has."""

    messages: Annotated[
        list[Envelope],
        described("In order, and without a gap from `first_seq` on but for what is folded."),
    ]
    first_seq: Annotated[int, place("The `seq` from which the room's history is complete.")]
    last_seq: Annotated[int, place("The `seq` of the last message.")]
    oldest_seq: Annotated[int | UnsetType, place(OLDEST_SEQ)] = UNSET
    folded: Annotated[
        list[Fold] | UnsetType, described("What was left out between them, with `fold`.")
    ] = UNSET
    from_seq: Annotated[
        int | UnsetType, place("With `fold`: everything from this `seq` on was looked at.")
    ] = UNSET
    through_seq: Annotated[
        int | UnsetType, place("With `fold`: everything up to this `seq` was looked at.")
    ] = UNSET


class ProposalView(Struct, frozen=True):
    """A proposal and its state."""

    id: Annotated[str, described("The id of its message: what a decision correlates.")]
    seq: Annotated[int, place("Its place in the history of the room.")]
    kind: Annotated[str, described("What is proposed.")]
    proposer: Annotated[str, described("Who proposed it.")]
    to: Annotated[tuple[str, ...], described("Who should do it; empty is anyone.")]
    state: Annotated[ProposalState, described("Its state.")]
    created_at: Annotated[str, moment("When it was made.")]
    expires_at: Annotated[str, moment("Until when it is open.")]
    rejections: Annotated[int, described("How many rejected it.", minimum=0)]
    closed_by: Annotated[str | None, described("Who decided, if anyone did.")] = None
    closed_at: Annotated[str | None, moment("When it was closed.")] = None
    reason: Annotated[
        str | UnsetType,
        described("Why it should be done, if the proposer says so and the history has it."),
    ] = UNSET
    message: Annotated[
        Envelope | UnsetType, described("The proposal itself, as long as the history has it.")
    ] = UNSET
    risk: Annotated[
        Risk | UnsetType, described("What it can do, by what the tool says of itself.")
    ] = UNSET


class _Reason(Struct, gc=False):
    reason: Any = UNSET


class _Reasoned(Struct, gc=False):
    payload: _Reason


_reasoned = msgspec.json.Decoder(_Reasoned).decode


def reason_of(message: bytes | None) -> str | UnsetType:
    """The proposer's reason in the message of a proposal, if it has a text for one."""
    reason = UNSET if message is None else _reasoned(message).payload.reason
    return reason if isinstance(reason, str) else UNSET


class OpenRequestView(Struct, frozen=True):
    """An open request to the one who asks, and how far it has come."""

    id: Annotated[str, described("The id of its message: what an answer correlates.")]
    seq: Annotated[int, place("Its place in the history of the room.")]
    kind: Annotated[str, described("What is asked.")]
    requester: Annotated[str, described("Who asks.")]
    state: Annotated[
        str,
        described(
            "`waiting`: nobody has begun it. `running`: a connection of yours has. `interrupted`: "
            "one had, and did not come back.",
            enum=["waiting", "running", "interrupted"],
        ),
    ]
    expires_at: Annotated[str, moment("Until when it is open.")]
    proposer: Annotated[str | UnsetType, described("Whose proposal it fulfils, if any.")] = UNSET
    message: Annotated[
        Envelope | UnsetType, described("The request itself, as long as the history has it.")
    ] = UNSET


class WaitingPage(Struct, frozen=True):
    """What waits for someone: the oldest first, and whether more follows."""

    requests: Annotated[list[OpenRequestView], described("What you were asked.")]
    proposals: Annotated[list[ProposalView], described("What you may decide on.")]
    more: Annotated[bool, described("Whether more follows.")]


class Outcome(Struct, frozen=True):
    """What came of a decision on a proposal."""

    id: Annotated[str, described("The id of the proposal.")]
    state: Annotated[
        ProposalState, described("Where it stands now; still `open` where more must reject it.")
    ]
    by: Annotated[str, described("Who decided.")]
    seq: Annotated[int, place("The place of the message that decided.")]
    decision: Annotated[str, described("The id of that message: a request, or a rejection.")]
    to: Annotated[str | UnsetType, described("Who was asked to do it.")] = UNSET
    result: Annotated[StoredJson | UnsetType, described("What was answered, once it was.")] = UNSET
    error: Annotated[StoredJson | UnsetType, described("Why it failed, if it did.")] = UNSET
    reason: Annotated[str | UnsetType, described("Why it was rejected.")] = UNSET
    rejections: Annotated[int | UnsetType, described("How many rejected it.", minimum=0)] = UNSET


class Invitation(Struct, frozen=True, omit_defaults=True):
    """What an inviter is answered: a guest's token is told here and nowhere else."""

    room: Annotated[str, described("The room.")]
    handle: Annotated[str | None, described("Who may come in now.")] = None
    guest: Annotated[str | None, described("The guest's name.")] = None
    token: Annotated[
        str | None,
        described("The token with which the guest enters, once. It is shown to nobody else."),
    ] = None
    expires_at: Annotated[str | None, moment("Until when the token is valid.")] = None

    def __repr__(self) -> str:
        return f"<Invitation to {self.room} for {self.handle or self.guest}>"


class OpenInvitation(Struct, frozen=True, kw_only=True, gc=False):
    """Someone whom a room waits for: a guest, or an account that has not come yet."""

    handle: Annotated[str | None, described("The handle, for someone with an account.")] = None
    guest: Annotated[str | None, described("The name, for someone without one.")] = None
    invited_by: Annotated[
        str | None, described("The handle of whoever invited the guest; null if that is not known.")
    ] = None
    expires_at: Annotated[str | None, moment("Until when a guest's invitation can be used.")] = None


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
