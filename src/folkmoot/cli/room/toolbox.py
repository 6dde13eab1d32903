"""The tools that the participants of a room offer, as someone in it learns of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.core.errors import (
    FolkmootError,
    PolicyError,
    RecipientUnknown,
    RequestFailed,
    ToolRefused,
)
from folkmoot.mcp.wire import TOOLS_LIST

if TYPE_CHECKING:
    from folkmoot.client import Room

LIST: Final = TOOLS_LIST
SECONDS: Final = 5.0
"""How long a participant has to answer."""
MOST_PAGES: Final = 5
MOST_ASKED: Final = 32
OFFERING: Final = frozenset(("agent", "backend"))
"""Types of participants that are asked for their tools unless someone is named."""
CHANGED: Final = "mcp.notification.notifications/tools/list_changed"


class Offer(Struct, frozen=True):
    """A tool of a participant."""

    by: str
    definition: dict[str, Any]


class Listing(Struct):
    """Tools, those who did not answer, and why someone could not be asked."""

    offers: list[Offer]
    silent: list[str]
    refusal: FolkmootError | None = None


class Toolbox:
    """Asks for tools, and remembers the answers while they hold."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._known: dict[str, list[dict[str, Any]]] = {}

    def see(self, envelope: Mapping[str, Any]) -> None:
        """Forget the tools of someone who left, came back, or says that they changed."""
        kind = str(envelope.get("kind", ""))
        if kind == CHANGED:
            self._known.pop(str(envelope.get("from")), None)
        elif kind.startswith("system.presence."):
            payload = envelope.get("payload")
            who = payload.get("participant") if isinstance(payload, dict) else None
            if isinstance(who, dict):
                self._known.pop(str(who.get("id")), None)

    async def tools(self, who: str | None = None) -> Listing:
        """The tools of one participant, or of every agent and backend that may offer some."""
        if who is None:
            names = await self._offering()
        else:
            names = sorted({who} - await self._without_tools({who}))
        listing = Listing([], [])
        for name, answer in zip(names, await self._ask_all(names), strict=True):
            if isinstance(answer, PolicyError | RecipientUnknown):
                listing.refusal = answer
            elif isinstance(answer, FolkmootError):
                listing.silent.append(name)
            else:
                listing.offers += [Offer(name, each) for each in answer]
        return listing

    async def find(self, tool: str, who: str | None) -> tuple[str, Any]:
        """Who offers a tool, and the schema of its arguments if that is known."""
        listing = await self.tools(who)
        found = [it for it in listing.offers if it.definition.get("name") == tool]
        if len(found) == 1:
            return found[0].by, found[0].definition.get("inputSchema")
        if who is not None:
            # It may be there all the same: whoever has it says so.
            return who, None
        raise ToolRefused(which(tool, [it.by for it in found], listing))

    async def _offering(self) -> list[str]:
        here = self._room.participants.values()
        names = {it.id for it in here if it.type in OFFERING and it.id != self._room.me.id}
        return sorted(names - await self._without_tools(names))[:MOST_ASKED]

    async def _without_tools(self, names: set[str]) -> set[str]:
        """Those of some participants that offer no tools, and so would not answer."""
        if names <= self._known.keys():
            return set()
        with suppress(FolkmootError):
            here = await self._room.list_participants()
            return {it.id for it in here if it.offers_tools is False}
        return set()

    async def _ask_all(self, names: Iterable[str]) -> list[list[dict[str, Any]] | FolkmootError]:
        return list(await asyncio.gather(*map(self._ask, names)))

    async def _ask(self, name: str) -> list[dict[str, Any]] | FolkmootError:
        if name in self._known:
            return self._known[name]
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        try:
            for _ in range(MOST_PAGES):
                answer = await self._room.request(name, LIST, params, timeout=SECONDS)
                told = answer if isinstance(answer, dict) else {}
                found += definitions(told.get("tools"))
                if not isinstance(cursor := told.get("nextCursor"), str):
                    break
                params = {"cursor": cursor}
        except (PolicyError, RecipientUnknown, RequestFailed) as error:
            return error
        self._known[name] = found
        return found


def definitions(listed: Any) -> list[dict[str, Any]]:
    """The tools of an answer, as far as they have a name."""
    found = listed if isinstance(listed, list) else []
    return [it for it in found if isinstance(it, dict) and isinstance(it.get("name"), str)]


def which(tool: str, by: list[str], listing: Listing) -> str:
    """Why it is not known whose tool is meant."""
    if by:
        return f"{' and '.join(by)} offer {tool}; say whose with @NAME."
    if listing.refusal is not None:
        return "You may not list tools here; say whose tool it is with @NAME."
    silent = f" ({', '.join(listing.silent)} did not answer)" if listing.silent else ""
    return f"Nobody here offers {tool}{silent}."
