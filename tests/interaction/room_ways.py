"""The ways into a room: the same things said and done on a WebSocket, by REST and by tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from tests.interaction.room_client import (
    ROOM,
    Message,
    Posting,
    Seat,
    Square,
    chat,
    fulfilment,
    message,
    proposal,
)
from tests.mcp_harness import Meeting, Person

# The ways on which any message whatever can be sent.
both_ways = pytest.mark.parametrize("way", ["websocket", "rest"])


def mouth(there: Square, seat: Seat, way: str) -> Seat | Posting:
    """How someone who is in the room sends their messages."""
    return seat if way == "websocket" else Posting(there, seat.name)


class Refused(Exception):
    """What someone wanted to do was refused; the text is the sentence they were told."""


class Line(NamedTuple):
    """A message as every way shows it."""

    seq: int
    sender: str
    kind: str
    id: str


def about(kind: str, id_: str, payload: Any = None) -> Message:
    """A message about a proposal."""
    return message(kind, payload, correlation_id=[id_])


def line(told: Message) -> Line:
    return Line(told["seq"], told["from"], told["kind"], told["id"])


class TakingPart:
    """Someone in the room."""

    def __init__(self, name: str, last_seq: int) -> None:
        self.name = name
        self._start = last_seq

    async def follow(self, id_: str) -> list[Line]:
        """All that is told, up to a message."""
        lines: list[Line] = []
        while not any(one.id == id_ for one in lines):
            lines += map(line, await self._read(lines[-1].seq if lines else self._start))
        return lines

    async def _read(self, after: int) -> list[Message]:
        raise NotImplementedError


class ByRest(TakingPart):
    """By REST, with messages that one writes oneself, and a connection that says one is here."""

    def __init__(self, there: Square, seat: Seat) -> None:
        super().__init__(seat.name, seat.welcome["history"]["last_seq"])
        self._there = there
        self._seat = seat

    async def _send(self, sent: Message) -> str:
        answer = await self._there.rest(self.name, "POST", f"/{ROOM}/messages", sent)
        if answer.status != 201:
            raise Refused(answer.json()["error"]["message"])
        return answer.json()["id"]

    async def say(self, text: str) -> str:
        return await self._send(chat(text))

    async def propose(self, tool: str, arguments: dict[str, Any]) -> str:
        return await self._send(proposal(tool, arguments))

    async def fulfil(self, id_: str, to: str) -> None:
        found = await self._there.rest(self.name, "GET", f"/{ROOM}/proposals")
        proposed = next(one for one in found.json()["proposals"] if one["id"] == id_)
        await self._send(fulfilment(proposed["message"], to))

    async def reject(self, id_: str, reason: str) -> None:
        await self._send(about("mcpx.reject.proposal", id_, {"reason": reason}))

    async def withdraw(self, id_: str) -> None:
        await self._send(about("mcpx.withdraw.proposal", id_))

    async def _read(self, after: int) -> list[Message]:
        path = f"/{ROOM}/messages?after={after}&wait=20"
        return (await self._there.rest(self.name, "GET", path)).json()["messages"]


class BySocket(ByRest):
    """On a WebSocket."""

    async def _send(self, sent: Message) -> str:
        await self._seat.send(sent)
        told = await self._seat.outcome(sent["id"])
        if told["kind"] == "system.error":
            raise Refused(told["payload"]["message"])
        return told["id"]

    async def follow(self, id_: str) -> list[Line]:
        while not any(one["id"] == id_ for one in self._seat.heard):
            await self._seat.hear()
        return [line(one) for one in self._seat.heard]


class ByTools(TakingPart):
    """By the tools that an assistant has."""

    def __init__(self, name: str, person: Person, last_seq: int) -> None:
        super().__init__(name, last_seq)
        self._person = person

    async def _call(self, tool: str, **arguments: Any) -> Any:
        told, is_error = await self._person.result(f"room/{tool}", {"room": ROOM, **arguments})
        if is_error:
            raise Refused(told["error"])
        return told

    async def say(self, text: str) -> str:
        return (await self._call("say", text=text))["id"]

    async def propose(self, tool: str, arguments: dict[str, Any]) -> str:
        params = {"name": tool, "arguments": arguments}
        return (await self._call("propose", method="tools/call", params=params))["proposal"]

    async def fulfil(self, id_: str, to: str) -> None:
        await self._call("decide", proposal=id_, decision="fulfil", to=to)

    async def reject(self, id_: str, reason: str) -> None:
        await self._call("decide", proposal=id_, decision="reject", reason=reason)

    async def withdraw(self, id_: str) -> None:
        await self._call("decide", proposal=id_, decision="withdraw")

    async def _read(self, after: int) -> list[Message]:
        return (await self._call("read", after=after, wait=20))["messages"]


every_way = pytest.mark.parametrize("way", ["websocket", "rest", "tools"])


@asynccontextmanager
async def taking_part(there: Square, handle: str, way: str) -> AsyncIterator[Any]:
    """Someone who comes into the room, in one of the ways."""
    if way == "tools":
        meeting = Meeting(there.hub, "stateless")
        person = await meeting.returning(there.tokens[handle])
        try:
            joined = await person.call("room/join", room=ROOM)
            yield ByTools(handle, person, joined["last_seq"] - 1)
        finally:
            await meeting.everyone_leaves()
        return
    async with there.seat(handle) as seat:
        yield BySocket(there, seat) if way == "websocket" else ByRest(there, seat)
