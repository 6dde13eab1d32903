"""Persons: where each person has a conversation of their own with a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import BackendBusy, BackendUnavailable, FolkmootError
from folkmoot.relay.upstream.line import Opened, wait_after

if TYPE_CHECKING:
    from folkmoot.relay.upstream.conversation import Conversation

logger = logging.getLogger("folkmoot.backend")

MOST: Final = 64
"""Conversations of all persons together; for one more, the one unused for longest is closed."""
IDLE_SECONDS: Final = 600.0
MOST_REMEMBERED: Final = 1024
"""Persons whose failures are remembered."""


class Persons:
    """Opens conversations as they are needed, and closes those that nobody uses."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        opened: Opened,
        needed: Callable[[str], bool],
        alive_seconds: float,
    ) -> None:
        self._tasks = tasks
        self._opened = opened
        self._needed = needed
        self._alive_seconds = alive_seconds
        self._loop = asyncio.get_running_loop()
        self._own: dict[str, _Own] = {}
        """Those used last come last."""
        self._failures: dict[str, tuple[int, float]] = {}
        """By person: how often it failed in a row, and until when it is not tried again."""

    def __len__(self) -> int:
        return len(self._own)

    @property
    def conversations(self) -> list[Conversation]:
        """Those that are open."""
        found = (each.conversation for each in self._own.values())
        return [conversation for conversation in found if conversation is not None]

    async def of(self, person: str) -> Conversation:
        """The conversation of someone; raises a `GatewayError` where there can be none."""
        while True:
            own = self._own.pop(person, None)
            if own is None or own.closing:
                own = self._begin(person)
            self._own[person] = own
            conversation = await own.awaited()
            if not conversation.doubtful and conversation.over is None:
                return conversation
            if not own.closing:
                await own.settled(self._alive_seconds)

    def _begin(self, person: str) -> _Own:
        failures, until = self._failures.get(person, (0, 0.0))
        wait = until - self._loop.time()
        if failures and wait > 0:
            raise BackendUnavailable(
                "It could not be reached just now.", retry_after=round(wait, 1)
            )
        if len(self._own) >= MOST:
            self._close_one()
        own = _Own(self._loop)
        own.task = self._tasks.create_task(self._serve(person, own))
        return own

    def _close_one(self) -> None:
        for person, own in self._own.items():
            if own.closing or (own.idle and not self._needed(person)):
                own.close()
                del self._own[person]
                return
        raise BackendBusy("Too many people use the server at once.")

    async def _serve(self, person: str, own: _Own) -> None:
        try:
            async with self._opened() as conversation:
                self._failures.pop(person, None)
                own.come(conversation)
                await self._live(person, own, conversation)
                # Whoever waits need not wait until the link is closed.
                own.closing = True
                own.settle()
        except FolkmootError as error:
            self._failed(person, own, error)
        except Exception:
            logger.exception("a link to a server failed")
            self._failed(person, own, BackendUnavailable("Something went wrong with the link."))
        finally:
            own.closing = True
            own.fail(BackendUnavailable("The link to the server was closed."))
            if self._own.get(person) is own:
                del self._own[person]

    async def _live(self, person: str, own: _Own, conversation: Conversation) -> None:
        """Until it breaks, or is not used for long."""
        while conversation.over is None:
            idle_at = own.used_at + IDLE_SECONDS
            if self._loop.time() >= idle_at:
                if own.idle and not self._needed(person):
                    return
                own.used_at = self._loop.time()
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout_at(idle_at):
                    await conversation.stirred.wait()
            conversation.stirred.clear()
            if conversation.doubtful and not await conversation.alive(self._alive_seconds):
                return
            own.settle()

    def _failed(self, person: str, own: _Own, error: FolkmootError) -> None:
        failures = self._failures.pop(person, (0, 0.0))[0] + 1
        if len(self._failures) >= MOST_REMEMBERED:
            del self._failures[next(iter(self._failures))]
        self._failures[person] = (failures, self._loop.time() + wait_after(failures))
        own.fail(error)


class _Own:
    """One person's conversation, or the wish for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting = 0
        self.opened: asyncio.Future[Conversation] = loop.create_future()
        self.conversation: Conversation | None = None
        self.task: asyncio.Task[None] | None = None
        self.used_at = loop.time()
        self.closing = False
        self._news = asyncio.Event()

    @property
    def idle(self) -> bool:
        """Whether it is open and nobody uses it, or is about to."""
        conversation = self.conversation
        return conversation is not None and conversation.in_flight == 0 and not self._waiting

    async def awaited(self) -> Conversation:
        """The conversation once it is open; whoever waits for it is counted until they have it."""
        self._waiting += 1
        try:
            return await asyncio.shield(self.opened)
        finally:
            self._waiting -= 1
            self.used_at = self._loop.time()

    def come(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.opened.set_result(conversation)

    def fail(self, error: FolkmootError) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()
        self.settle()

    def settle(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def settled(self, seconds: float) -> None:
        """Wait until a doubt is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    def close(self) -> None:
        self.closing = True
        if self.task is not None:
            self.task.cancel()
