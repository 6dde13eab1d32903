"""Requests of a visitor who has no connection: sent to participants, and their answers awaited.

Tools are listed and called this way: everyone in a room may offer some, and answers for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.entity import Entity
from folkmoot.core.kindcheck import effective
from folkmoot.core.kinds import parse
from folkmoot.core.mcpx import PROTOCOL
from folkmoot.core.message import JSONRPC
from folkmoot.mcp.wire import CANCELLED, PROGRESS
from folkmoot.rooms.limits import ANSWERS_PAGE, MAX_ASKED, MAX_TOOL_PAGES, MAX_WAIT_SECONDS

if TYPE_CHECKING:
    from folkmoot.rooms.model import Visitor
    from folkmoot.rooms.rooms import Rooms

PROGRESS_KIND: Final = f"mcp.notification.{PROGRESS}"


class SentRequest(Struct, frozen=True):
    """A request that was sent."""

    id: str
    seq: int
    to: str


class Stored(Struct, frozen=True, gc=False):
    """The members of a stored message that matter here."""

    seq: int
    id: str
    kind: str
    correlation_id: tuple[str, ...] = ()
    payload: dict[str, Any] = {}


class Offer(Struct, frozen=True):
    """A tool of a participant."""

    by: str
    definition: dict[str, Any]

    @property
    def name(self) -> str:
        """What the tool is called."""
        return str(self.definition["name"])


class Offers(Struct):
    """The tools of a room, and the participants whose tools could not be listed."""

    tools: list[Offer]
    unanswered: list[str]
    not_asked: int = 0
    """How many were not asked because there are too many."""

    def by(self, tool: str) -> list[str]:
        """The participants that offer a tool."""
        return [offer.by for offer in self.tools if offer.name == tool]


_stored = msgspec.json.Decoder(Stored).decode


class Requester(Entity):
    """Makes requests in one room, in the name and by the rights of one visitor."""

    rooms: Rooms
    visitor: Visitor
    room: str

    async def send(
        self, to: str, method: str, params: dict[str, Any], *, progress: bool = False
    ) -> SentRequest:
        """Send a request, which may ask for its progress; a refusal is raised."""
        id_ = str(uuid4())
        if progress:
            params = {**params, "_meta": {"progressToken": id_}}
        payload = {"jsonrpc": JSONRPC, "id": id_, "method": method, "params": params}
        kind = str(effective(parse(f"mcp.request.{method}"), payload))
        stored = await self._post(kind, payload, to=[to])
        return SentRequest(stored.id, stored.seq, to)

    async def answers(
        self,
        sent: Sequence[SentRequest],
        seconds: float,
        tell: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, dict[str, Any]]:
        """The payloads of the answers that come in time, by the ids of their requests.

        `tell` is called with the params of what is said of their progress.
        """
        found: dict[str, dict[str, Any]] = {}
        if not sent:
            return found
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        waiting = {request.id for request in sent}
        place = min(request.seq for request in sent)
        remaining = seconds
        while waiting and remaining >= 0:
            page = await self.rooms.messages(
                self.visitor,
                self.room,
                after=place,
                limit=ANSWERS_PAGE,
                wait=min(remaining, MAX_WAIT_SECONDS),
            )
            remaining = until - loop.time()
            for message in map(_stored, page.messages):
                place = message.seq
                if message.kind.startswith("mcp.response."):
                    for id_ in waiting.intersection(message.correlation_id):
                        found[id_] = message.payload
                        waiting.discard(id_)
                elif (
                    tell is not None
                    and message.kind == PROGRESS_KIND
                    and waiting.intersection(message.correlation_id)
                ):
                    tell(message.payload["params"])
            if not page.messages:
                # What came meanwhile may be gone from the history already.
                place = max(place, page.last_seq)
        return found

    async def cancel(self, sent: Iterable[SentRequest]) -> None:
        """Stop waiting for these requests, and cancel them at the other side."""
        method = CANCELLED
        payload = {"jsonrpc": JSONRPC, "method": method, "params": {}}
        for request in sent:
            # It may have been answered in this moment.
            with suppress(e.FolkmootError):
                await self._post(f"mcp.notification.{method}", payload, about=request.id)

    async def respond(self, request_id: str, answer: dict[str, Any]) -> Stored:
        """Answer a request that was sent to the visitor, with a `result` or an `error`."""
        open_ = await self.rooms.open_request(self.visitor, self.room, request_id)
        if open_ is None or open_.target != self.visitor.principal.account_id:
            raise e.RequestNotOpen("No open request to you has this id.")
        payload = {"jsonrpc": JSONRPC, "id": open_.payload_id, **answer}
        kind, to = str(open_.answer_kind), list(open_.answer_to)
        return await self._post(kind, payload, to=to, about=request_id)

    async def tools(self, to: str | None, seconds: float) -> Offers:
        """The tools of one participant, or of everyone who serves.

        Each is asked on the connection that serves, so the room's history has nothing of it, and
        someone who is here without one cannot answer.
        """
        names = await self._offering(to)
        offers = Offers([], [], max(len(names) - MAX_ASKED, 0))
        until = asyncio.get_running_loop().time() + seconds
        asked = names[:MAX_ASKED]
        listed = (self._tools_of(name, until) for name in asked)
        found = await asyncio.gather(*listed, return_exceptions=True)
        refusals: list[BaseException] = []
        for name, tools in zip(asked, found, strict=True):
            if isinstance(tools, list):
                offers.tools += tools
                continue
            offers.unanswered.append(name)
            if isinstance(tools, e.PolicyError | e.RecipientUnknown):
                refusals.append(tools)
            elif tools is not None:
                raise tools
        if refusals and len(refusals) == len(asked):
            raise refusals[0]
        return offers

    async def _tools_of(self, name: str, until: float) -> list[Offer] | None:
        """All tools of a participant; None where it does not answer."""
        offers: list[Offer] = []
        cursor: str | None = None
        for _ in range(MAX_TOOL_PAGES):
            seconds = max(until - asyncio.get_running_loop().time(), 0.0)
            answer = await self.rooms.list_tools(self.visitor, self.room, name, cursor, seconds)
            result = None if answer is None else answer.get("result")
            if not isinstance(result, dict):
                return offers or None
            offers += [Offer(name, it) for it in definitions(result)]
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                break
        return offers

    async def offering(self, tool: str, seconds: float) -> str:
        """The one participant that offers a tool; none, or several, is an error."""
        offers = await self.tools(None, seconds)
        match offers.by(tool):
            case [one]:
                return one
            case []:
                raise e.ArgumentInvalid(f"Nobody in the room offers {tool}.", field="tool")
            case several:
                named = ", ".join(several)
                raise e.ArgumentInvalid(
                    f"Several participants offer {tool}; set `to` to one of: {named}.", field="to"
                )

    async def _offering(self, to: str | None) -> list[str]:
        here = await self.rooms.participants(self.visitor, self.room)
        if to is not None:
            without = any(it["id"] == to and it["offers_tools"] is False for it in here)
            return [] if without else [to]
        me = self.visitor.principal.name
        return [it["id"] for it in here if it["offers_tools"] and it["id"] != me]

    async def _post(
        self, kind: str, payload: dict[str, Any], *, to: Sequence[str] = (), about: str = ""
    ) -> Stored:
        members: dict[str, Any] = {"protocol": PROTOCOL, "kind": kind, "payload": payload}
        if to:
            members["to"] = to
        if about:
            members["correlation_id"] = [about]
        raw = await self.rooms.post(self.visitor, self.room, strict.encode(members))
        return _stored(raw)


def definitions(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of an answer to `tools/list`, as far as they have a name."""
    listed = result.get("tools")
    found = listed if isinstance(listed, list) else []
    return [it for it in found if isinstance(it, dict) and isinstance(it.get("name"), str)]
