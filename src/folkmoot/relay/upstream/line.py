"""Line: one conversation with a server that is opened again whenever it ends."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Protocol

from folkmoot.core.errors import FolkmootError, ServerTimeout, ServerUnreachable

if TYPE_CHECKING:
    from folkmoot.relay.upstream.conversation import Conversation

logger = logging.getLogger("folkmoot.backend")

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 60.0
DRAIN_SECONDS: Final = 900.0
"""How long a link that was replaced is kept for the calls that are open on it."""
STEADY_SECONDS: Final = 5.0
"""A conversation that held this long counts as a good one."""


class Opened(Protocol):
    """Opens conversations."""

    def __call__(self, *, shake: bool = False) -> AbstractAsyncContextManager[Conversation]:
        """One, while entered; `shake` offers a handshake first."""
        ...


def wait_after(failures: int) -> float:
    """Seconds to wait after so many failures in a row: up to twice as long each time, at random.

    The whole of it is random, so that many hubs of a restarted server do not come all at once.
    """
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 16))
    return random.uniform(0.0, longest)  # noqa: S311 - spreads load, keeps no secret


class Line:
    """Keeps one conversation open. `changed` is called when there is one, or none any more.

    Attempts that fail and conversations that break soon, with no call answered, are failures in a
    row. A call that is not answered in time is none; but if the server said nothing at all since it
    was made, it is asked whether it is there, and if it does not answer that, it is not.
    """

    def __init__(self, opened: Opened, changed: Callable[[], None], alive_seconds: float) -> None:
        self._opened = opened
        self._changed = changed
        self._alive_seconds = alive_seconds
        self._shake = False
        self.conversation: Conversation | None = None
        self.failures = 0
        self.losses = 0
        """How often an open conversation broke."""
        self.why = ""
        self.next_attempt: float | None = None
        """By the clock of the loop; None while an attempt is made or none is needed."""

    @property
    def ready(self) -> Conversation | None:
        """The conversation, if it may be used now."""
        conversation = self.conversation
        return conversation if conversation is not None and conversation.usable else None

    async def run(self) -> None:
        """Keep it open until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as attempts:
            while True:
                ended = asyncio.Event()
                # A link that takes its time to close does not keep the next from being opened.
                attempts.create_task(self._attempt(ended))
                await ended.wait()
                wait = wait_after(self.failures) if self.failures else 0.0
                self.next_attempt = loop.time() + wait
                await asyncio.sleep(wait)
                self.next_attempt = None

    async def _attempt(self, ended: asyncio.Event) -> None:
        try:
            await self._once(ended)
        except FolkmootError as error:
            # A server that cannot bear to be asked what it is may bear a handshake.
            self._shake = not self._shake and isinstance(error, ServerUnreachable)
            self._failed(error.message, ended)
        except Exception:
            logger.exception("a link to a server failed")
            self._failed("Something went wrong with the link.", ended)

    async def _once(self, ended: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        async with self._opened(shake=self._shake) as conversation:
            began = loop.time()
            self.conversation = conversation
            try:
                self._changed()
                why = await self._live(conversation)
                if why is None:
                    await self._drain(conversation, ended)
                    return
            finally:
                if self.conversation is conversation:
                    self.conversation = None
            if loop.time() - began >= STEADY_SECONDS:
                self.failures = 0
            self.losses += 1
            self._failed(why.message, ended)

    async def _live(self, conversation: Conversation) -> FolkmootError | None:
        """Wait for the end, and look into every doubt; None if it is to be replaced."""
        while True:
            await conversation.stirred.wait()
            conversation.stirred.clear()
            if conversation.over is None and conversation.doubtful:
                self._changed()
                if not await conversation.alive(self._alive_seconds):
                    conversation.end(ServerTimeout("The server stopped answering."))
                self._changed()
            if conversation.over is not None:
                return conversation.over
            if conversation.replaced:
                return None

    async def _drain(self, conversation: Conversation, ended: asyncio.Event) -> None:
        """Have another be opened at once, and close this one when nobody waits for it."""
        logger.info("a link is replaced: requests that were cancelled on it are never answered")
        self.conversation = None
        self.failures = 0
        self.losses += 1
        ended.set()
        conversation.leave()
        self._changed()
        await conversation.drained(DRAIN_SECONDS)

    def _failed(self, why: str, ended: asyncio.Event) -> None:
        if not ended.is_set():
            ended.set()
            self.failures += 1
            self.why = why
            self._changed()
