"""Rooms over HTTP: one request of `/v1/rooms` for each thing asked."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from folkmoot import __version__
from folkmoot.cli.client import MAX_REASON, PATIENCE, HubClient
from folkmoot.cli.credentials import Keyring, read_keyring
from folkmoot.cli.room.tellers import allowed
from folkmoot.cli.text import one_line
from folkmoot.core.errors import FolkmootError, NotSignedIn, ToolRefused
from folkmoot.core.mcpx import PROTOCOL

UNAUTHORISED: Final = 401
FIRST_REFUSAL: Final = 400
GUEST_UNKNOWN: Final = "The hub no longer accepts this guest. Ask for a new invitation."
ACCOUNT_UNKNOWN: Final = (
    "The hub does not accept the saved token; 'folkmoot account recover HANDLE' gets a new one."
)


class Entrance(NamedTuple):
    """As whom, and with what, someone uses the rooms of a hub."""

    hub: str
    name: str
    token: str
    guest: bool = False

    def __repr__(self) -> str:
        # May end up in a traceback; the token must not.
        return f"Entrance({self.name} on {self.hub})"


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


class RestClient:
    """A part of a hub's REST interface as someone uses it; without a token, as nobody yet."""

    base: ClassVar[str]
    """The path that all of it begins with."""

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance
        self._hub = HubClient(entrance.hub)

    def _all(self, path: str, member: str, **query: str | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: Any = None
        while True:
            answer = self._ask("GET", path, query={**query, "cursor": cursor})
            found += listed(answer.get(member))
            cursor = answer.get("next_cursor")
            if not cursor:
                return found

    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
        wait: int = 0,
    ) -> dict[str, Any]:
        headers = {"accept": "application/json", "user-agent": f"folkmoot/{__version__}"}
        if self._entrance.token:
            headers["authorization"] = f"Bearer {self._entrance.token}"
        if body is not None:
            headers["content-type"] = "application/json"
        given = {name: value for name, value in (query or {}).items() if value is not None}
        where = f"{self.base}{path}" + (f"?{urlencode(given)}" if given else "")
        data = None if body is None else msgspec.json.encode(body)
        status, answer = self._hub.exchange(method, where, data, headers, PATIENCE + wait)
        if status >= FIRST_REFUSAL:
            raise self._refusal(status, answer)
        if answer is not None and not isinstance(answer, dict):
            raise self._hub.not_understood()
        return answer or {}

    def _refusal(self, status: int, answer: Any) -> FolkmootError:
        """The hub's reason, made safe to show; with what is allowed where rights were missing."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            return self._hub.not_understood()
        if status == UNAUTHORISED and self._entrance.token:
            return NotSignedIn(GUEST_UNKNOWN if self._entrance.guest else ACCOUNT_UNKNOWN)
        problems = [one_line(error["message"][:MAX_REASON])]
        if "your_capabilities" in error:
            problems.append(
                f"you may: {one_line(allowed(error['your_capabilities']))[:MAX_REASON]}"
            )
        return ToolRefused(problems[0], problems=problems, refused=error.get("code"))


class RoomsClient(RestClient):
    """The rooms of one hub, as one of those who use it; without a token, as nobody yet."""

    base = "/v1/rooms"

    def page(self, cursor: str | None = None) -> dict[str, Any]:
        """A page of the rooms one can see."""
        return self._ask("GET", "", query={"cursor": cursor})

    def create(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Make a room."""
        return self._ask("POST", "", spec)

    def get(self, room: str) -> dict[str, Any]:
        """One room."""
        return self._ask("GET", place(room))

    def change(self, room: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Set a room otherwise."""
        return self._ask("PATCH", place(room), patch)

    def delete(self, room: str) -> None:
        """Remove a room and its history."""
        self._ask("DELETE", place(room))

    def participants(self, room: str) -> list[dict[str, Any]]:
        """Everyone who is there."""
        return self._all(f"{place(room)}/participants", "participants")

    def proposals(self, room: str, state: str | None = None) -> list[dict[str, Any]]:
        """What was proposed there and is still remembered."""
        return self._all(f"{place(room)}/proposals", "proposals", state=state)

    def approve(self, room: str, proposal: str, *, to: str | None, wait: int) -> dict[str, Any]:
        """Approve a proposal; the answer is what came of it."""
        path = f"{place(room)}/proposals/{quote(proposal, safe='')}/approve"
        return self._ask("POST", path, query={"to": to, "wait": wait}, wait=wait)

    def messages(self, room: str, **query: int | None) -> dict[str, Any]:
        """A page of the history."""
        return self._ask("GET", f"{place(room)}/messages", query=query)

    def post(self, room: str, kind: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Send a message; the answer is the message as everyone got it."""
        envelope = {"protocol": PROTOCOL, "kind": kind, "payload": payload}
        given = {name: value for name, value in more.items() if value}
        return self._ask("POST", f"{place(room)}/messages", {**envelope, **given})

    def invite(self, room: str, **who: Any) -> dict[str, Any]:
        """Invite an account by its `handle`, or a `guest` by the name they shall have."""
        return self._ask("POST", f"{place(room)}/invites", who)

    def come_in(self, room: str, token: str) -> dict[str, Any]:
        """Give an invitation for a guest's credential."""
        return self._ask("POST", f"{place(room)}/guests", {"token": token})


def place(room: str) -> str:
    """The path of a room."""
    return f"/{quote(room, safe='')}"


def listed(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [it for it in value if isinstance(it, dict)] if isinstance(value, list) else []
