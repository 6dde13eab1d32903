"""The nouns: who is in a room and as what, how a room is set, and the effects a room asks for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from folkmoot.core.capability import Source
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.scopes import ALL
from folkmoot.core.strict import DEFAULT_LIMITS, Limits
from folkmoot.ratelimits import MINUTE, Limit
from folkmoot.rooms.limits import RoomBounds
from folkmoot.rooms.machine.chat import Rates

ConnectionId: TypeAlias = Hashable
"""How the shell calls a connection; the room only hands it back."""

GATEWAY: Final = "gateway"
"""The name of the one participant who is always here; as an account it is nobody else's."""

GUEST: Final = "guest:"
"""What the account id of a guest begins with."""

BACKEND: Final = "backend:"
"""What the account id of a backend begins with; that of a person or a guest never does."""


class Role(Enum):
    """Someone's role in a room."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"
    BACKEND = "backend"
    """A server behind the hub: it answers, and does nothing of itself."""


class Known(NamedTuple):
    """Someone who may enter a room, and their role."""

    account: str
    role: Role


class Used(NamedTuple):
    """The message that has an id: its `seq`, its sender's account, whether it can be edited."""

    seq: int
    account: str | None
    is_chat: bool = False


class Facts(Struct, frozen=True):
    """What was looked up in the store for some messages, before the room takes them."""

    ids: Mapping[str, Used | None] = {}
    """By id the message that has it, None where none has."""
    names: Mapping[str, Known | None] = {}
    """By name who may come in and is not here: they too can be put out and granted rights."""


NO_FACTS: Final = Facts()


class LookupNeeded(Exception):
    """A message cannot be judged yet: ask `Room.lookup`, and try again with the facts.

    The room has not changed.
    """


class Lookup(NamedTuple):
    """What a room must be told before it can judge some messages."""

    ids: list[str]
    names: list[str]


MessageCheck: TypeAlias = Callable[[Principal, str, Kind, McpxMessage], None]
"""Raises the refusal of what the hub denies someone to say in the room of this name."""

HubCheck: TypeAlias = Callable[[Principal], MessageCheck | None]
"""The check of what someone says; None where the hub denies them nothing."""

AccountStanding: TypeAlias = Literal["suspended", "restored", "deleted"]

HubDenies: TypeAlias = Callable[[Principal, str], Sequence[Source]]
"""What the hub denies someone to say in the room of this name, by the scope they came with too."""

Admit: TypeAlias = Callable[[str, str | None, int], None]
"""Raises where an account may not store so many bytes more in a room of this owner's."""

CHAT_RIGHTS: Final[tuple[Source, ...]] = ("chat.*", "mcp.notification.notifications/chat/*")

DEFAULT_RIGHTS: Final[Mapping[Role, tuple[Source, ...]]] = MappingProxyType(
    {
        Role.OWNER: ("*",),
        Role.MEMBER: (
            *CHAT_RIGHTS,
            "mcp.proposal.*",
            "mcp.request.tools/list",
            "mcpx.withdraw.proposal",
            "reasoning.*",
            "participant.status",
            "participant.compact-done",
        ),
        Role.GUEST: CHAT_RIGHTS,
        Role.BACKEND: (),
    }
)

DEFAULT_CHAT: Final[Mapping[PrincipalType, Limit | None]] = MappingProxyType(
    {
        PrincipalType.PERSON: Limit(60, MINUTE),
        PrincipalType.AGENT: Limit(60, MINUTE),
        PrincipalType.GUEST: Limit(10, MINUTE),
    }
)


class RoomSettings(Struct, frozen=True):
    """How a room is set; whoever changes it makes another one and calls `Room.configure`."""

    name: str
    epoch: str
    history: bool = True
    """Whether what was said can be read again: the welcome tells."""
    rights: Mapping[Role, tuple[Source, ...]] = DEFAULT_RIGHTS
    owner: str | None = None
    """The account that the room counts for: one of its owners."""
    owners: frozenset[str] | None = None
    """The accounts of all owners, here or not; None where only roles tell."""
    account_rights: Mapping[str, tuple[Source, ...]] = {}
    """What single accounts hold beside the rights of their role, by account id."""
    chat: Mapping[PrincipalType, Limit | None] = DEFAULT_CHAT
    rates: Rates | None = None
    """How fast a participant may send messages of any kind; chat has its own limit beside it."""
    loop_guard: int = 30
    """How often agents may answer each other without a person; 0 for as often as they like."""
    request_seconds: float = 300.0
    progress_seconds: float = 3600.0
    """How long a request stays open at most, however often its progress is told."""
    proposal_seconds: float = 3600.0
    quorum: int = 1
    """How many different participants must reject a proposal to close it."""
    return_seconds: float = 30.0
    """How long those who were here before a restart count as here without a connection, and how
    long a connection that had begun a request may be away before the request is interrupted."""
    limits: Limits = DEFAULT_LIMITS
    accept_old_spellings: bool = False
    bounds: RoomBounds = RoomBounds()


class Append(Struct, frozen=True, gc=False):
    """Store a message, then deliver its bytes to every attached connection.

    It is also what a room is rebuilt from, so all of it is kept. `account` is the sender's, None
    for the gateway's own; `about` is the account the message concerns: who was asked, was granted
    something, came or went. Of a request that is begun it is the connection that begins it. Neither
    is ever delivered.
    """

    seq: int
    id: str
    at: float
    kind: str
    """The effective kind; the one in the bytes is as the sender wrote it."""
    data: bytes
    account: str | None = None
    about: str | None = None


class Tell(Struct, frozen=True, gc=False):
    """Deliver to one connection alone; never stored."""

    connection: ConnectionId
    data: bytes


class Attach(Struct, frozen=True, gc=False):
    """From here on the connection gets every `Append`.

    It gets the welcome first, then, where `after` is not None, what is stored after it up to and
    with `through`, and only then what is live.
    """

    connection: ConnectionId
    welcome: bytes
    after: int | None
    through: int


class Close(Struct, frozen=True, gc=False):
    """End a connection; the room has forgotten it already."""

    connection: ConnectionId
    code: CloseCode


class Audit(Struct, frozen=True, gc=False):
    """Something the log keeps: who did what, when, to which message or participant."""

    at: float
    action: str
    by: str
    account: str | None
    about: str
    detail: Mapping[str, Any] = {}


class Invite(Struct, frozen=True, gc=False):
    """Someone asked for an invitation: make it, and answer them with `Room.answer_invite`.

    Exactly one of `handle` and `guest` is there. `connection` is None for one who has none. A guest
    is to hold `capabilities` from the start: hand them to `Room.apply_guest_grants` when it comes.
    """

    connection: ConnectionId | None
    id: str
    by: Principal
    handle: str | None
    guest: str | None
    capabilities: tuple[Source, ...] = ()


class Expel(Struct, frozen=True, gc=False):
    """Let this account in no more until it is invited again; its connections are being closed."""

    account: str
    name: str
    by: Principal


class AskBackend(Struct, frozen=True, gc=False):
    """A backend was asked something: have it answer, if whoever asked may use it at the hub too."""

    id: str
    """Of the message that asks."""
    by: str
    """The account of whoever asked."""
    backend: Principal
    kind: str
    """The effective kind of the answer."""
    to: tuple[str, ...]
    """Whom the answer is for."""
    payload: Mapping[str, Any]
    scope: str = ALL
    """That of the credential that it was asked with."""


class Listing(Struct, frozen=True, gc=False):
    """A request for a participant's tools, which the others do not see."""

    id: str
    data: bytes
    connection: ConnectionId | None
    """The connection that answers for the participant, if one does."""
    ask: AskBackend | None
    """What to ask instead, where it is a backend."""


class CancelBackendCall(Struct, frozen=True, gc=False):
    """Nobody waits any more for what a backend was asked with this message."""

    id: str


Effect: TypeAlias = (
    Append | Tell | Attach | Close | Audit | Invite | Expel | AskBackend | CancelBackendCall
)
