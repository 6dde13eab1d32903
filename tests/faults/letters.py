"""People who write to each other as fast as they can, and a ledger of what was acknowledged."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.siege.wire import Line, registered

# How a connection ends whose hub was killed.
GONE = (OSError, asyncio.IncompleteReadError)

# Connections on which each person writes.
WRITERS = 2


class Ledger:
    """Who writes, what they tried to send, and what the hub said it has."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.attempted: set[str] = set()
        # The ids of messages that were acknowledged, and what they say.
        self.acknowledged: dict[str, str] = {}
        self._recipients: dict[str, str] = {}
        self._found: dict[str, str] = {}
        self._numbers = itertools.count()

    async def begin(self, port: int, *handles: str) -> None:
        """Make the accounts, or find what was written before the hub was killed."""
        if self.tokens:
            await self.check_new(port)
        else:
            self.tokens = await registered(port, *handles)

    async def write(self, port: int, answered: Callable[[], Any] = lambda: None) -> None:
        """Have everyone write, answer and read until the hub is gone; each answer is told."""
        async with asyncio.TaskGroup() as tasks:
            for handle in self.tokens:
                for _ in range(WRITERS):
                    tasks.create_task(self._writer(port, handle, answered))
                tasks.create_task(self._reader(port, handle))

    async def _writer(self, port: int, sender: str, answered: Callable[[], Any]) -> None:
        others = [handle for handle in self.tokens if handle != sender]
        with suppress(*GONE):
            async with Line(port, self.tokens[sender]) as mine:
                for to in itertools.cycle(others):
                    sent = await self._send(mine, sender, to, "msg_send", to=to)
                    answered()
                    await self._send(mine, sender, to, "msg_reply", message_id=sent)
                    answered()

    async def _send(
        self, mine: Line, sender: str, recipient: str, tool: str, /, **arguments: Any
    ) -> str:
        body = f"{next(self._numbers)} from {sender}"
        self.attempted.add(body)
        message_id: str = (await mine.call(tool, body=body, **arguments))["message_id"]
        self.acknowledged[message_id] = body
        self._recipients[message_id] = recipient
        return message_id

    async def _reader(self, port: int, handle: str) -> None:
        """Read, but less than arrives, so that what is unread changes all the time."""
        with suppress(*GONE):
            async with Line(port, self.tokens[handle]) as mine:
                while True:
                    await mine.call("msg_inbox", limit=2)
                    await mine.call("msg_digest")

    async def check_new(self, port: int) -> None:
        """Everything acknowledged is found, and nothing twice, among what is new in each inbox."""
        for handle, token in self.tokens.items():
            async with Line(port, token) as mine:
                await self._check_inbox(mine, handle)
        missing = self.acknowledged.keys() - self._found.keys()
        assert not missing, f"{len(missing)} acknowledged messages are gone"

    async def _check_inbox(self, mine: Line, handle: str) -> None:
        async for message in mine.pages("msg_inbox", "messages", peek=True):
            id_, body = message["id"], message["body"]
            if id_ in self._found:
                return
            # Each says something else, so whatever is there again was stored twice.
            self.attempted.remove(body)
            assert self.acknowledged.get(id_, body) == body
            assert self._recipients.get(id_, handle) == handle
            self._found[id_] = body

    async def check(self, port: int) -> None:
        """Both sides have everything that was ever found, exactly once."""
        await self.check_new(port)
        copies: list[tuple[str, str]] = []
        unread = 0
        for token in self.tokens.values():
            async with Line(port, token) as mine:
                found, counted = await threads(mine)
                copies += found
                assert (await mine.call("msg_digest"))["total_unread"] == counted
                unread += counted
        assert sorted(copies) == sorted([*self._found.items()] * 2)
        assert unread


async def threads(mine: Line) -> tuple[list[tuple[str, str]], int]:
    """Every message of someone's conversations, id and body, and how many are unread."""
    found: list[tuple[str, str]] = []
    unread = 0
    async for thread in mine.pages("msg_threads", "threads"):
        unread += thread["unread_count"]
        listed = mine.pages("msg_thread", "messages", thread_id=thread["id"], peek=True)
        found += [(message["id"], message["body"]) async for message in listed]
    return found, unread
