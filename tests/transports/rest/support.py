"""What tests of the REST interface share: a hub, and people who ask it without any library."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from folkmoot.app import Hub
from folkmoot.core.ports import Clock
from tests.harness import Answer, ask
from tests.mcp_harness import settings, until
from tests.nodes import running

ROOMS = "/v1/rooms"
JSON = "application/json"


@asynccontextmanager
async def house(folder: Path, clock: Clock | None = None, **values: object) -> AsyncIterator[House]:
    """A running hub, and the people who come to it."""
    async with running(settings(folder, **values), clock) as hub:
        yield House(hub)


def path_of(template: str) -> str:
    """A path where everything that it names is called `planning`."""
    return re.sub(r"\{[a-z_]+\}", "planning", template)


class House:
    """A running hub."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.port = int(hub.base_url.rpartition(":")[2])
        self.stranger = Asker(self.port)

    async def person(self, handle: str, **arguments: Any) -> Asker:
        """Someone who has an account."""
        made = await self.hub.accounts.register(handle, **arguments)
        return Asker(self.port, made.token, handle)

    async def busy_with(self, requests: int) -> None:
        """Wait until the hub is busy with so many."""
        await until(lambda: self.hub.metrics.in_flight == requests)

    async def people(self, *handles: str) -> list[Asker]:
        """Several people who have accounts."""
        return [await self.person(handle) for handle in handles]


class Asker:
    """Someone who asks; each request is on a connection of its own."""

    def __init__(self, port: int, token: str = "", handle: str = "") -> None:
        self.port = port
        self.token = token
        self.handle = handle

    async def ask(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; content that is not bytes goes as JSON."""
        named: dict[str, str] = {}
        body = content if isinstance(content, bytes) else b""
        if content is not None:
            named["content-type"] = JSON
            if not isinstance(content, bytes):
                body = json.dumps(content).encode()
        if self.token:
            named["authorization"] = f"Bearer {self.token}"
        named |= headers or {}
        kept = {name: value for name, value in named.items() if value}
        return await ask(self.port, path, method=method, headers=kept, body=body)

    async def did(self, method: str, path: str, content: object = None) -> Any:
        """What came of something; a refusal fails the test."""
        answer = await self.ask(method, path, content)
        assert answer.status < 300, answer
        return answer.json() if answer.body else None

    async def get(self, path: str, **headers: str) -> Any:
        """What is there; anything but 200 fails the test."""
        return done(await self.ask("GET", path, headers=headers), 200)

    async def create(self, name: str, **members: Any) -> Any:
        """A room of theirs."""
        return done(await self.ask("POST", ROOMS, {"name": name, **members}), 201)

    async def say(self, room: str, text: str, **members: Any) -> Any:
        """A chat message in a room."""
        return done(await self.post(room, chat(text, **members)), 201)

    async def post(self, room: str, envelope: object) -> Answer:
        """Whatever message in a room."""
        return await self.ask("POST", f"{ROOMS}/{quote(room)}/messages", envelope)

    async def read(self, room: str, query: str = "") -> Any:
        """A page of what was said."""
        return await self.get(f"{ROOMS}/{room}/messages{query}")


def chat(text: str, **members: Any) -> dict[str, Any]:
    """A chat message."""
    return {
        "protocol": "mcpx/v1",
        "kind": "chat.message",
        "payload": {"text": text, "format": "plain"},
        **members,
    }


def done(answer: Answer, status: int) -> Any:
    """The content of an answer with this status."""
    assert answer.status == status, answer
    assert answer.headers["cache-control"] == "no-store"
    return answer.json() if answer.body else None


def refused(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """The members of a refusal, which has the one shape that all have."""
    assert answer.status == status, answer
    assert answer.headers["content-type"] == JSON
    told = answer.json()
    assert list(told) == ["error"]
    assert told["error"]["code"] == code, told
    assert told["error"]["message"]
    error: dict[str, Any] = told["error"]
    return error
