"""As whom someone uses the rooms of a hub, and what is asked of them page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from folkmoot.cli.asking import hub_at
from folkmoot.cli.credentials import Keyring, read_keyring
from folkmoot.core.errors import NotSignedIn
from folkmoot.core.mcpx import PROTOCOL

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.client.methods import Participant, Proposal


class Entrance(NamedTuple):
    """As whom, and with what, someone uses the rooms of a hub."""

    hub: str
    name: str
    token: str
    guest: bool = False

    def __repr__(self) -> str:
        # May end up in a traceback; the token must not.
        return f"Entrance({self.name} on {self.hub})"

    @property
    def client(self) -> HubClient:
        """The hub, as this one uses it."""
        return hub_at(self.hub, self.token, guest=self.guest)


def entrance(room: str | None, url: str | None, name: str | None) -> Entrance:
    """The account that was meant or, where there is none, the guest of that room."""
    return entrance_from(read_keyring(), room, url, name)


def entrance_from(
    keyring: Keyring, room: str | None, url: str | None, name: str | None
) -> Entrance:
    """The same, from what is kept."""
    try:
        login = keyring.find(url, name)
    except NotSignedIn:
        kept = keyring.find_guest(room, url, name) if room is not None else None
        if kept is None:
            raise
        return Entrance(kept.hub, kept.name, kept.credential, guest=True)
    return Entrance(login.hub, login.handle, login.token)


def hub_of(room: str | None, url: str | None, name: str | None) -> HubClient:
    """The hub, as the one who was meant."""
    return entrance(room, url, name).client


def present(hub: HubClient, room: str) -> list[Participant]:
    """Everyone who is in a room."""
    page = hub.list_participants(room)
    found = page.participants
    while page.next_cursor:
        page = hub.list_participants(room, cursor=page.next_cursor)
        found += page.participants
    return found


def proposed(hub: HubClient, room: str, state: Any = None) -> list[Proposal]:
    """What was proposed in a room and is still remembered."""
    page = hub.list_proposals(room, state=state)
    found = page.proposals
    while page.next_cursor:
        page = hub.list_proposals(room, state=state, cursor=page.next_cursor)
        found += page.proposals
    return found


def post(
    hub: HubClient, room: str, kind: str, payload: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """Send a message; the answer is the message as everyone got it."""
    envelope = {"protocol": PROTOCOL, "kind": kind, "payload": payload}
    given = {name: value for name, value in more.items() if value}
    return hub.post_message(room, {**envelope, **given})


def listed(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [it for it in value if isinstance(it, dict)] if isinstance(value, list) else []
