"""Taking: the inventory of a server, taken when it is reached and whenever its lists change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from folkmoot.mcp.wire import CHANGES, members_of
from folkmoot.relay.upstream.findings import Looking
from folkmoot.relay.upstream.inventory import drain_all, kept
from folkmoot.relay.upstream.line import wait_after
from folkmoot.relay.upstream.waiting import Late, Unanswered

if TYPE_CHECKING:
    from folkmoot.core.message import Notification
    from folkmoot.gateway.model import Inventory
    from folkmoot.relay.upstream.conversation import Conversation

logger = logging.getLogger("folkmoot.backend")

QUIET_SECONDS: Final = 0.2
"""Lists are read once no change was told of for so long."""
AT_MOST_EVERY: Final = 2.0
REST: Final = 4.0
"""Lists are not read again for so many times as long as it took to read them and take them over."""
AGAIN_SECONDS: Final = 30.0
MOST_SELDOM: Final = 1800.0
"""After how long a list is asked for again that could not be had, first and at most."""
LISTEN_SECONDS: Final = 3.0
"""How long a server may take to agree to tell of changes; then its lists are read all the same."""


class Taking:
    """Reads the lists of one server, which `reach` has a conversation with when there is one.

    `deliver` gets them when the server was reached anew, and afterwards when they are not the same.
    """

    def __init__(
        self,
        reach: Callable[[], Awaitable[Conversation]],
        deliver: Callable[[Inventory], Awaitable[None]],
        page_seconds: float,
    ) -> None:
        self._reach = reach
        self._deliver = deliver
        self._page_seconds = page_seconds
        self._loop = asyncio.get_running_loop()
        self._stale = asyncio.Event()
        self._first_change = self._last_change = 0.0
        self._taken_at = float("-inf")
        self._rest = AT_MOST_EVERY
        self._anew = False
        self._again = AGAIN_SECONDS
        self._looking = Looking()
        self.last: Inventory | None = None

    def reached(self) -> None:
        """Read the lists at once."""
        self._anew = True
        self._stale.set()

    def changed(self, _: Notification | None = None) -> None:
        """The server says that a list changed: read them soon."""
        now = self._loop.time()
        if not self._stale.is_set():
            self._first_change = now
        self._last_change = now
        self._stale.set()

    async def listen(self) -> None:
        """Hear of changed lists, over as many conversations as there will be."""
        while True:
            conversation = await self._reach()
            wants, failures, anew = list_changes(conversation.capabilities), 0, True
            while not conversation.ended.is_set():
                # Before the lists are read, so that no change falls in between.
                ended = await self._hear(conversation, wants) if wants else conversation.ended
                if anew:
                    self.reached()
                    anew = False
                elif ended is not None:
                    self.changed()
                if ended is not None:
                    await ended.wait()
                if not conversation.ended.is_set():
                    failures += 1
                    await asyncio.sleep(wait_after(failures))

    async def _hear(
        self, conversation: Conversation, wants: dict[str, Any]
    ) -> asyncio.Event | None:
        try:
            return (await conversation.listen(wants, self.changed, LISTEN_SECONDS)).ended
        except (Unanswered, Late):
            return None

    async def run(self) -> None:
        """Take inventories until cancelled."""
        while True:
            await self._stale.wait()
            await self._quiet()
            self._stale.clear()
            anew, self._anew = self._anew, False
            try:
                await self._take(await self._reach(), anew=anew)
            except Unanswered as error:
                # The next conversation begins with reading them.
                logger.debug("lists were not read", extra={"error": error.why.message})
            except Exception:
                logger.exception("the lists of a backend could not be taken over")

    async def _take(self, conversation: Conversation, *, anew: bool) -> None:
        began = self._loop.time()
        drained = await drain_all(conversation, seconds=self._page_seconds, looking=self._looking)
        before, self.last = self.last, kept(drained, self.last)
        if drained.missing:
            self._loop.call_later(self._again, self._stale.set)
            self._again = min(MOST_SELDOM, 2 * self._again)
        else:
            self._again = AGAIN_SECONDS
        try:
            if anew or self.last != before:
                await self._deliver(self.last)
        finally:
            self._taken_at = self._loop.time()
            self._rest = max(AT_MOST_EVERY, REST * (self._taken_at - began))

    async def _quiet(self) -> None:
        while not self._anew:
            settled = min(self._last_change + QUIET_SECONDS, self._first_change + AT_MOST_EVERY)
            wait = max(settled, self._taken_at + self._rest) - self._loop.time()
            if wait <= 0:
                return
            # In short steps, since the server may be reached anew meanwhile.
            await asyncio.sleep(min(wait, QUIET_SECONDS))


def list_changes(capabilities: dict[str, Any]) -> dict[str, Any]:
    """The lists whose changes a server offers to tell of, as a listen names them."""
    return {
        name: True
        for capability, name in CHANGES.values()
        if members_of(capabilities.get(capability)).get("listChanged") is True
    }
