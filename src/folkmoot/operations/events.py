"""The events of `GET /v1/events`: what each tells, and which right one needs to be told.

An event says that something is not as it was and where to read it; never what somebody wrote. It is
told to those who could read the same with the operation that it `needs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from folkmoot.core import errors as e
from folkmoot.mcp.wire import EVENT_ID_HEADER
from folkmoot.operations.call import EventStream
from folkmoot.operations.declare import Topic, get
from folkmoot.operations.row import Absent, Who

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

Room = Annotated[str, Meta(description="The name of the room.")]
Thread = Annotated[str, Meta(description="The id of the thread.")]
Message = Annotated[str, Meta(description="The id of the message.")]


class MailReceived(Struct, frozen=True):
    """A new message arrived."""

    message_id: Message
    thread_id: Thread
    urgent: Annotated[bool, Meta(description="Whether its sender marked it as urgent.")]
    muted: Annotated[bool, Meta(description="Whether the thread is muted.")]


class MailSent(Struct, frozen=True):
    """A message that was sent."""

    message_id: Message
    thread_id: Thread


class MailChanged(Struct, frozen=True):
    """Messages were read, deleted or otherwise changed."""

    change: Annotated[
        Literal["read", "state", "removed"],
        Meta(description="Read; archived, starred, muted or none of it; or removed."),
    ]
    thread_id: Annotated[
        str | None, Meta(description="The id of the thread; null if it may be several.")
    ]


class ContactsChanged(Struct, frozen=True):
    """You changed a contact or a block."""

    handle: Annotated[str, Meta(description="Whom it is about.")]
    change: Literal["added", "removed", "blocked", "unblocked"]


class AccountChanged(Struct, frozen=True):
    """What is new about your account."""

    handle: Annotated[str, Meta(description="Your handle now.")]
    change: Literal["profile", "handle", "restored"]


class TokensChanged(Struct, frozen=True):
    """A token of yours."""

    id: Annotated[str, Meta(description="The id of the token, which is not the token itself.")]
    change: Literal["created", "ended"]


class ConnectionsChanged(Struct, frozen=True):
    """Your sign-in at a server behind the hub."""

    namespace: Annotated[str, Meta(description="The server.")]
    change: Annotated[
        Literal["consented", "lapsed", "removed"],
        Meta(description="A sign-in has `lapsed` when the server takes it no more: sign in again."),
    ]


class AskChanged(Struct, frozen=True):
    """What a program asked you, or you asked somebody."""

    id: Annotated[str, Meta(description="The id of the ask.")]
    change: Annotated[
        Literal["made", "ended", "done", "stopped"],
        Meta(
            description="Made; approved, rejected, edited or withdrawn; done by the hub; or no "
            "longer good for other calls."
        ),
    ]


class RoomMembership(Struct, frozen=True):
    """What you are to a room."""

    room: Room
    state: Annotated[
        Literal["member", "invited", "banned"] | None,
        Meta(description="What you are now; null for nothing."),
    ]


class RoomChanged(Struct, frozen=True):
    """A room that is set otherwise, or gone."""

    room: Room
    change: Literal["settings", "removed"]


class RoomMessage(Struct, frozen=True):
    """Where a room's messages end."""

    room: Room
    seq: Annotated[int, Meta(description="The `seq` of the newest message.")]
    talk: Annotated[
        bool, Meta(description="Whether someone said or proposed something, so that it is unread.")
    ]


class RoomUnread(Struct, frozen=True):
    """A room in which you have more unread mentions, or less that is unread."""

    room: Room
    change: Literal["mention", "read"]


class RoomPresence(Struct, frozen=True):
    """Someone joined or left a room."""

    room: Room
    participant: str
    change: Literal["join", "leave"]


class RoomProposal(Struct, frozen=True):
    """A proposal in a room."""

    room: Room
    proposal: Annotated[str, Meta(description="The id of the proposal.")]
    change: Annotated[
        Literal["made", "decided"],
        Meta(description="Made; or fulfilled, rejected, withdrawn or expired."),
    ]


class RoomRightsChanged(Struct, frozen=True):
    """A room in which someone may do more or less than before."""

    room: Room


class ToolsChanged(Struct, frozen=True):
    """Lists of tools, resources or prompts changed."""

    lists: Annotated[
        list[str], Meta(description="Which: `tools`, `prompts`, `resources`, `templates`.")
    ]


class HeldChanged(Struct, frozen=True):
    """A message that waits for a decision, or no longer does."""

    id: int
    change: Literal["held", "released", "dropped", "gone"]


class ServerChanged(Struct, frozen=True):
    """A server behind the hub."""

    server: Annotated[str, Meta(description="Its namespace.")]
    state: Annotated[str, Meta(description="Its state now, as `GET /v1/servers` tells it.")]


class PinsChanged(Struct, frozen=True):
    """The pinned tools of a server changed."""

    server: Annotated[str, Meta(description="Its namespace.")]


class PeopleChanged(Struct, frozen=True):
    """An account, its rights or its tokens changed."""

    change: Annotated[
        Literal["account", "rights", "tokens"],
        Meta(
            description="Its profile or state; what it was granted; a token or a browser of it. A "
            "new account has a new token."
        ),
    ]


class AuditChanged(Struct, frozen=True):
    """Where the audit log ends."""

    id: Annotated[int, Meta(description="The id of the newest line.")]


class SettingsChanged(Struct, frozen=True):
    """Nothing more is told."""


class Reload(Struct, frozen=True):
    """Why events may be missing."""

    reason: Annotated[
        Literal["gap", "overflow", "rights"],
        Meta(
            description="The stream could not be resumed, you read too slowly, or your rights "
            "changed."
        ),
    ]


class EventRow(Struct, frozen=True):
    """One event: its name, its occasion, its fields, and who may receive it."""

    name: str
    when: str
    data: type[Struct]
    needs: str = ""
    """The operation with which one could read the same."""
    who: Who = "account"


MAIL_RECEIVED: Final = EventRow("mail.received", "A message arrived.", MailReceived, "msg/inbox")
MAIL_SENT: Final = EventRow("mail.sent", "You sent a message.", MailSent, "msg/threads")
MAIL_CHANGED: Final = EventRow(
    "mail.changed",
    "Messages were read or removed, or a thread archived, starred or muted.",
    MailChanged,
    "msg/threads",
)
CONTACTS_CHANGED: Final = EventRow(
    "contacts.changed",
    "You added or removed a contact, or blocked or unblocked somebody.",
    ContactsChanged,
    "msg/contacts",
)
ACCOUNT_CHANGED: Final = EventRow(
    "account.changed", "Your profile or handle changed.", AccountChanged, "msg/whoami"
)
TOKENS_CHANGED: Final = EventRow(
    "tokens.changed", "A token of yours was created or has ended.", TokensChanged, "folkmoot/tokens"
)
CONNECTIONS_CHANGED: Final = EventRow(
    "connections.changed",
    "You signed in to a server behind the hub, or are signed in to it no more.",
    ConnectionsChanged,
    "folkmoot/connections",
)
ASK_CHANGED: Final = EventRow(
    "ask.changed",
    "A program asked you for a decision, or what you asked was decided.",
    AskChanged,
    "ask/result",
)
ROOM_MEMBERSHIP: Final = EventRow(
    "room.membership",
    "You were invited to a room, joined it, left it or were removed from it.",
    RoomMembership,
    "room/show",
)
ROOM_CHANGED: Final = EventRow(
    "room.changed",
    "A room that you are in was set otherwise or removed.",
    RoomChanged,
    "room/show",
    "guest",
)
ROOM_MESSAGE: Final = EventRow(
    "room.message",
    "There are new messages in a room that you are in.",
    RoomMessage,
    "room/read",
    "guest",
)
ROOM_UNREAD: Final = EventRow(
    "room.unread",
    "You were mentioned in such a room, or have read it, on whichever device.",
    RoomUnread,
    "room/read",
    "guest",
)
ROOM_PRESENCE: Final = EventRow(
    "room.presence", "Someone came into such a room, or left.", RoomPresence, "room/read", "guest"
)
ROOM_PROPOSAL: Final = EventRow(
    "room.proposal",
    "A proposal was made in such a room, or decided.",
    RoomProposal,
    "room/proposals",
    "guest",
)
ROOM_RIGHTS: Final = EventRow(
    "room.rights",
    "Someone in such a room was granted something, or it was revoked.",
    RoomRightsChanged,
    "room/read",
    "guest",
)
TOOLS_CHANGED: Final = EventRow(
    "tools.changed",
    "What the servers behind the hub offer changed.",
    ToolsChanged,
    "folkmoot/find_tool",
)
HELD_CHANGED: Final = EventRow(
    "held.changed", "A message is held, or was decided about.", HeldChanged, "held/list", "operator"
)
SERVER_CHANGED: Final = EventRow(
    "server.changed",
    "A server behind the hub is in another state.",
    ServerChanged,
    "folkmoot/servers",
    "operator",
)
PINS_CHANGED: Final = EventRow(
    "pins.changed",
    "Tools of a server were pinned, or accepted.",
    PinsChanged,
    "folkmoot/pins",
    "operator",
)
PEOPLE_CHANGED: Final = EventRow(
    "people.changed",
    "An account is new, changed or gone, or has other rights or tokens.",
    PeopleChanged,
    "folkmoot/people",
    "operator",
)
AUDIT_CHANGED: Final = EventRow(
    "audit.changed",
    "There are new lines in the audit log.",
    AuditChanged,
    "folkmoot/audit",
    "operator",
)
SETTINGS_CHANGED: Final = EventRow(
    "settings.changed",
    "The settings were read again.",
    SettingsChanged,
    "folkmoot/settings",
    "operator",
)
RELOAD: Final = EventRow(
    "reload", "Events may be missing: read again what you show.", Reload, who="guest"
)

EVENTS: Final = (
    MAIL_RECEIVED,
    MAIL_SENT,
    MAIL_CHANGED,
    CONTACTS_CHANGED,
    ACCOUNT_CHANGED,
    TOKENS_CHANGED,
    CONNECTIONS_CHANGED,
    ASK_CHANGED,
    ROOM_MEMBERSHIP,
    ROOM_CHANGED,
    ROOM_MESSAGE,
    ROOM_UNREAD,
    ROOM_PRESENCE,
    ROOM_PROPOSAL,
    ROOM_RIGHTS,
    TOOLS_CHANGED,
    HELD_CHANGED,
    SERVER_CHANGED,
    PINS_CHANGED,
    PEOPLE_CHANGED,
    AUDIT_CHANGED,
    SETTINGS_CHANGED,
    RELOAD,
)


class FollowedEvent(Struct, frozen=True):
    """One event of the stream; `event` is its name."""

    event: str
    data: dict[str, Any]


@Topic(who="guest").reads(
    "folkmoot/events",
    get(
        "/v1/events",
        "followEvents",
        "Follow events",
        answer="Events, until the client leaves, its token ends or the hub stops.",
        headers={EVENT_ID_HEADER: "last_event_id"},
    ),
    events=FollowedEvent,
    scope="",
    errors=(e.ConnectionsExceeded, e.HubFull),
    tool=Absent("MCP has notifications for it."),
    commands=("watch",),
)
async def follow_events(
    call: Call,
    *,
    last_event_id: Annotated[
        str, "Go on after the event with this id; `EventSource` sends it itself."
    ]
    | None = None,
) -> EventStream:
    """Follow what changes, as Server-Sent Events: your mail, contacts and tokens, the rooms you are
    in, tools. An event says what is not as it was and where to read it, never what somebody wrote.
    Each is told only to those who may read the same.
    """
    if call.services.events is None:
        raise e.HubStopping("Events are not told here.")
    return await call.services.events.follow(call.caller, last_event_id or "")
