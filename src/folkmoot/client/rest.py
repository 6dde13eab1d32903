"""What a room answers over HTTP: the few things that are asked for and not told on a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLContext
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from folkmoot.client.model import Message, ParticipantPage, WaitingPage, read, stored
from folkmoot.client.refusals import refusal
from folkmoot.core.errors import AnswerInvalid, HubUnreachable

SECONDS: Final = 30.0
"""How long an answer may take."""
MAX_ANSWER: Final = 32 * 1024 * 1024
FIRST_REFUSAL: Final = 400


class Rest:
    """One room of a hub, asked over HTTP with the same token."""

    def __init__(
        self, url: str, room: str, ssl: SSLContext | None, token: Callable[[], str]
    ) -> None:
        self._place = urlsplit(url)
        self._path = f"{self._place.path.removesuffix('/ws')}/v1/rooms/{quote(room, safe='')}"
        self._ssl = ssl
        self._token = token

    async def waiting(self, after: int = 0) -> WaitingPage:
        """A page of what waits for this program."""
        try:
            return msgspec.convert(await self._get("/waiting", after=after), WaitingPage)
        except msgspec.ValidationError:
            raise AnswerInvalid("The hub's list of what waits cannot be understood.") from None

    async def participants(self, cursor: str | None = None) -> ParticipantPage:
        """A page of those who are in the room."""
        query = {} if cursor is None else {"cursor": cursor}
        try:
            return msgspec.convert(await self._get("/participants", **query), ParticipantPage)
        except msgspec.ValidationError:
            raise AnswerInvalid("The hub's list of participants cannot be understood.") from None

    async def proposal(self, id_: str) -> Message:
        """The message of a proposal."""
        told = await self._get(f"/proposals/{quote(id_, safe='')}")
        message = told.get("message")
        if message is None:
            raise AnswerInvalid("The room no longer keeps what was proposed.")
        return as_message(message)

    async def _get(self, path: str, **query: Any) -> dict[str, Any]:
        where = f"{self._path}{path}" + (f"?{urlencode(query)}" if query else "")
        status, body = await asyncio.to_thread(self._ask, where)
        try:
            answer = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise AnswerInvalid(f"The hub's answer ({status}) cannot be understood.") from None
        if status >= FIRST_REFUSAL:
            error = answer.get("error")
            told = error if isinstance(error, dict) else {}
            raise refusal({**told, "error": told.get("code")})
        return answer

    def _ask(self, where: str) -> tuple[int, bytes]:
        host, port = self._place.hostname or "", self._place.port
        connection: HTTPConnection
        if self._place.scheme == "wss":
            connection = HTTPSConnection(host, port, timeout=SECONDS, context=self._ssl)
        else:
            connection = HTTPConnection(host, port, timeout=SECONDS)
        headers = {"authorization": f"Bearer {self._token()}", "accept": "application/json"}
        try:
            connection.request("GET", where, headers=headers)
            response = connection.getresponse()
            return response.status, response.read(MAX_ANSWER)
        except (OSError, HTTPException) as error:
            words = getattr(error, "strerror", None) or "it does not answer"
            raise HubUnreachable(f"{host}: the hub cannot be reached ({words}).") from None
        finally:
            connection.close()


def as_message(members: dict[str, Any]) -> Message:
    """A stored message from an answer."""
    data = msgspec.json.encode(members)
    return stored(read(data), data)
