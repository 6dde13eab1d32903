"""People who write to each other as fast as they can, and a ledger of what was acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.harness import Answer, read_answer
from tests.mcp_harness import modern

GONE = (OSError, asyncio.IncompleteReadError)
"""How a connection ends whose hub was killed."""

WRITERS = 2
"""Connections on which each person writes."""


class Line:
    """A connection to `/mcp` that is kept, in the stateless era and without any client library."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._query = f"?token={token}" if token else ""

    async def ask(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """The HTTP answer to one call."""
        message, headers = modern("tools/call", name=tool, arguments=arguments)
        body = json.dumps(message).encode()
        named = {
            "host": "localhost",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(body)),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self._writer.write(f"POST /mcp{self._query} HTTP/1.1\r\n{head}\r\n".encode() + body)
        return await read_answer(self._reader)

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool answers; an error fails the test."""
        answer = await self.ask(tool, arguments)
        assert answer.status == 200, answer
        result = answer.json()["result"]
        assert not result.get("isError"), result
        payload: dict[str, Any] = json.loads(result["content"][0]["text"])
        return payload


@asynccontextmanager
async def line(port: int, token: str = "") -> AsyncIterator[Line]:
    """Open a connection, and close it without waiting for whoever is not there any more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Line(reader, writer, token)
    finally:
        writer.transport.abort()


class Ledger:
    """Who writes, what they tried to send, and what the hub said it has."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.attempted: set[str] = set()
        self.acknowledged: dict[str, str] = {}
        """The ids of messages that were acknowledged, and what they say."""
        self._recipients: dict[str, str] = {}
        self._found: dict[str, str] = {}
        self._numbers = itertools.count()

    async def register(self, port: int, *handles: str) -> None:
        """Make the accounts."""
        async with line(port) as stranger:
            for handle in handles:
                made = await stranger.call("msg_register", handle=handle)
                self.tokens[handle] = made["token"]

    async def write(self, port: int, answered: Callable[[], Awaitable[None]]) -> None:
        """Have everyone write, answer and read until the hub is gone."""
        async with asyncio.TaskGroup() as tasks:
            for handle in self.tokens:
                for _ in range(WRITERS):
                    tasks.create_task(self._writer(port, handle, answered))
                tasks.create_task(self._reader(port, handle))

    async def _writer(
        self, port: int, sender: str, answered: Callable[[], Awaitable[None]]
    ) -> None:
        others = [handle for handle in self.tokens if handle != sender]
        with suppress(*GONE):
            async with line(port, self.tokens[sender]) as mine:
                for to in itertools.cycle(others):
                    sent = await self._send(mine, sender, to, "msg_send", to=to)
                    await answered()
                    await self._send(mine, sender, to, "msg_reply", message_id=sent)
                    await answered()

    async def _send(
        self, mine: Line, sender: str, recipient: str, tool: str, /, **arguments: Any
    ) -> str:
        body = f"{next(self._numbers)} from {sender}"
        self.attempted.add(body)
        sent = await mine.call(tool, body=body, **arguments)
        message_id: str = sent["message_id"]
        self.acknowledged[message_id] = body
        self._recipients[message_id] = recipient
        return message_id

    async def _reader(self, port: int, handle: str) -> None:
        """Read, but less than arrives, so that what is unread changes all the time."""
        with suppress(*GONE):
            async with line(port, self.tokens[handle]) as mine:
                while True:
                    await mine.call("msg_inbox", limit=2)
                    await mine.call("msg_digest")

    async def check_new(self, port: int) -> None:
        """Everything acknowledged is found, and nothing twice, among what is new in each inbox."""
        for handle, token in self.tokens.items():
            async with line(port, token) as mine:
                await self._check_inbox(mine, handle)
        missing = self.acknowledged.keys() - self._found.keys()
        assert not missing, f"{len(missing)} acknowledged messages are gone"

    async def _check_inbox(self, mine: Line, handle: str) -> None:
        async for message in pages(mine, "msg_inbox", "messages", peek=True):
            id_, body = message["id"], message["body"]
            if id_ in self._found:
                return
            assert body in self.attempted, body
            # Each says something else, so whatever is there again was stored twice.
            self.attempted.remove(body)
            assert self.acknowledged.get(id_, body) == body
            assert self._recipients.get(id_, handle) == handle
            self._found[id_] = body

    async def check_all(self, port: int) -> None:
        """Both sides have everything that was ever found, exactly once."""
        copies: list[tuple[str, str]] = []
        unread = 0
        for token in self.tokens.values():
            async with line(port, token) as mine:
                counted = 0
                async for thread in pages(mine, "msg_threads", "threads"):
                    counted += thread["unread_count"]
                    thread_id = thread["id"]
                    listed = pages(mine, "msg_thread", "messages", thread_id=thread_id, peek=True)
                    copies += [(message["id"], message["body"]) async for message in listed]
                digest = await mine.call("msg_digest")
                assert digest["total_unread"] == counted
                unread += counted
        assert sorted(copies) == sorted([*self._found.items()] * 2)
        assert unread


async def pages(mine: Line, tool: str, listed: str, **arguments: Any) -> AsyncIterator[Any]:
    """Everything a tool lists, page by page."""
    cursor: str | None = None
    while True:
        page = await mine.call(tool, limit=100, **arguments, cursor=cursor)
        for each in page[listed]:
            yield each
        cursor = page["next_cursor"]
        if cursor is None:
            return
