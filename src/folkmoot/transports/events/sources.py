"""Which events of the bus become which events of a stream.

Each function takes an event of the bus, and what it is about where that is no part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from folkmoot.core.events import (
    ACCOUNTS,
    ASKS,
    AUDIT,
    BACKENDS,
    CONSENTS,
    CONTACTS,
    GRANTS,
    HELD,
    PINS,
    SENT,
    SERVERS,
    SETTINGS,
    TOKENS,
    about,
)
from folkmoot.mail.sending import MAILBOX
from folkmoot.operations import events as rows

if TYPE_CHECKING:
    from folkmoot.core.ports import Event

Told: TypeAlias = tuple[rows.EventRow, Struct]
Source: TypeAlias = "Callable[[Event], Iterator[Told]]"

LISTS: Final = ["tools", "prompts", "resources", "templates"]


def mail(event: Event) -> Iterator[Told]:
    """The event of a new or a changed message."""
    data = event.data
    if "seq" in data:
        received = rows.MailReceived(data["id"], data["thread_id"], data["urgent"], data["muted"])
        yield rows.MAIL_RECEIVED, received
    else:
        yield rows.MAIL_CHANGED, rows.MailChanged(data["change"], data["thread_id"])


def sent(event: Event) -> Iterator[Told]:
    """A message of one's own."""
    yield rows.MAIL_SENT, rows.MailSent(event.data["id"], event.data["thread_id"])


def contacts(event: Event) -> Iterator[Told]:
    """The event of a changed contact or block."""
    told = rows.ContactsChanged(event.data["handle"], event.data["change"])
    yield rows.CONTACTS_CHANGED, told


def tokens(event: Event) -> Iterator[Told]:
    """A token more or less."""
    yield rows.TOKENS_CHANGED, rows.TokensChanged(event.data["id"], event.data["change"])


def connections(event: Event) -> Iterator[Told]:
    """A sign-in at a server behind the hub."""
    told = rows.ConnectionsChanged(event.data["namespace"], event.data["change"])
    yield rows.CONNECTIONS_CHANGED, told


def lists(event: Event) -> Iterator[Told]:
    """Lists of a server changed; with the settings all of them may have."""
    changed = LISTS if event.data is None else event.data["lists"]
    yield rows.TOOLS_CHANGED, rows.ToolsChanged(changed)


def room_messages(room: str, event: Event) -> Iterator[Told]:
    """Messages became part of a room."""
    data = event.data
    yield rows.ROOM_MESSAGE, rows.RoomMessage(room, data["seq"], data["talk"])
    for each in data["presence"]:
        yield rows.ROOM_PRESENCE, rows.RoomPresence(room, each["participant"], each["change"])
    for each in data["proposals"]:
        yield rows.ROOM_PROPOSAL, rows.RoomProposal(room, each["proposal"], each["change"])
    if data["rights"]:
        yield rows.ROOM_RIGHTS, rows.RoomRightsChanged(room)


def unread(event: Event) -> Iterator[Told]:
    """A mention, or a room that was read."""
    yield rows.ROOM_UNREAD, rows.RoomUnread(event.data["room"], event.data["change"])


def held(event: Event) -> Iterator[Told]:
    """A message waits for a decision, or not any more."""
    yield rows.HELD_CHANGED, rows.HeldChanged(event.data["view"]["id"], event.data["change"])


def servers(event: Event) -> Iterator[Told]:
    """A server is in another state."""
    yield rows.SERVER_CHANGED, rows.ServerChanged(about(event), event.data["state"])


def pins(event: Event) -> Iterator[Told]:
    """Something of a server was pinned."""
    yield rows.PINS_CHANGED, rows.PinsChanged(about(event))


def people(what: Literal["account", "rights", "tokens"]) -> Source:
    """Something of an account changed."""
    return lambda _: iter([(rows.PEOPLE_CHANGED, rows.PeopleChanged(what))])


def asks(event: Event) -> Iterator[Told]:
    """An ask of a program's was made, or has ended."""
    yield rows.ASK_CHANGED, rows.AskChanged(event.data["id"], event.data["change"])


def audit(event: Event) -> Iterator[Told]:
    yield rows.AUDIT_CHANGED, rows.AuditChanged(event.data["id"])


def settings(_: Event) -> Iterator[Told]:
    """The settings were read again."""
    yield rows.SETTINGS_CHANGED, rows.SettingsChanged()


OWN: Final[dict[str, Source]] = {
    f"{MAILBOX}*": mail,
    SENT: sent,
    CONTACTS: contacts,
    TOKENS: tokens,
    CONSENTS: connections,
    ASKS: asks,
}
"""What an account hears of itself: of each pattern, the subject that ends with its id."""
PUBLIC: Final[dict[str, Source]] = {BACKENDS: lists, SETTINGS: lists}
"""What every account hears."""
OPERATORS: Final[dict[str, Source]] = {
    HELD: held,
    SERVERS: servers,
    PINS: pins,
    ACCOUNTS: people("account"),
    GRANTS: people("rights"),
    TOKENS: people("tokens"),
    AUDIT: audit,
    SETTINGS: settings,
}
