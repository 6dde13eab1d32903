"""What a room answers over HTTP: the few things that are asked for and not told on a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import SSLContext
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from folkmoot.client.http import Http
from folkmoot.client.model import Message, ParticipantPage, WaitingPage, read, stored
from folkmoot.core.errors import AnswerInvalid

T = TypeVar("T")


class Rest:
    """One room of a hub, asked over HTTP with the same token."""

    def __init__(
        self, url: str, room: str, ssl: SSLContext | None, token: Callable[[], str]
    ) -> None:
        place = urlsplit(url)
        scheme = "https" if place.scheme == "wss" else "http"
        self._hub = Http(f"{scheme}://{place.netloc}{place.path.removesuffix('/ws')}", ssl=ssl)
        self._path = f"/v1/rooms/{quote(room, safe='')}"
        self._token = token

    async def waiting(self, after: int = 0) -> WaitingPage:
        """A page of what waits for this program."""
        return await self._get("/waiting", WaitingPage, after=after)

    async def participants(self, cursor: str | None = None) -> ParticipantPage:
        """A page of those who are in the room."""
        return await self._get("/participants", ParticipantPage, cursor=cursor)

    async def proposal(self, id_: str) -> Message:
        """The message of a proposal."""
        told = await self._get(f"/proposals/{quote(id_, safe='')}", dict[str, Any])
        message = told.get("message")
        if message is None:
            raise AnswerInvalid("The room no longer keeps what was proposed.")
        return as_message(message)

    async def _get(self, path: str, answer: type[T], **query: Any) -> T:
        self._hub.token = self._token()
        where = f"{self._path}{path}"
        return await asyncio.to_thread(self._hub.ask, "GET", where, answer, query=query)


def as_message(members: dict[str, Any]) -> Message:
    """A stored message from an answer."""
    data = msgspec.json.encode(members)
    return stored(read(data), data)
