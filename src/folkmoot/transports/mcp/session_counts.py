"""How many sessions of the handshake era all nodes have, since their limits count all of them.

A node says how many it has, of an account, of an address and in all, before it opens one more, and
is told how many the others have. What ends is told at once, or within a second.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import EXCESS, subject
from folkmoot.taskgroups import waited
from folkmoot.transports.limits import (
    COUNT_SECONDS,
    EXCESS_CHECK_SECONDS,
    EXCESS_SECONDS,
    MAX_COUNTS_UNTOLD,
    MAX_COUNTS_WAITING,
    RECOUNT_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.core.ports import Bus, Clock, Event, SessionHomes
    from folkmoot.transports.mcp.sessions import McpSession, Sessions

logger = logging.getLogger("folkmoot.mcp")

ALL: Final = ""


class SessionCounts(Entity):
    """The sessions of other nodes, as far as limits need them."""

    shared: SessionHomes
    bus: Bus
    clock: Clock
    sessions: Sessions
    close: Callable[[McpSession], Awaitable[None]]
    _changed: dict[str, None] = {}
    """The keys whose counts are to be told."""
    _in_excess: dict[str, float] = {}
    """The accounts one session of which is to end here for one elsewhere, since when."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.sessions.changed = self._note
        self.bus.listen(subject(EXCESS, self.shared.process), self._asked)

    def _note(self, key: str, change: int) -> None:
        self._changed[key] = self._changed[ALL] = None
        if change < 0:
            self._news.set()

    async def elsewhere(self, account_id: str, address: str) -> tuple[int, int]:
        """How many sessions other nodes have: of an account or else an address, and in all.

        One of this node is counted that is about to be opened.
        """
        key = self.sessions.key_of(account_id, address)
        try:
            of_key, of_all = await asyncio.gather(
                self.shared.report(key, self.sessions.count(key) + 1),
                self.shared.report(ALL, len(self.sessions) + 1),
            )
        except e.StoreError as error:
            logger.warning("sessions elsewhere were not counted", extra={"error": error.code})
            return 0, 0
        finally:
            # It may not be opened after all.
            self._note(key, 1)
        return of_key, of_all

    async def end_elsewhere(self, account_id: str) -> None:
        """Have another node end a session of an account that it does not use.

        Raises `TooManySessions` if all of them are in use.
        """
        key, waited_for = self.sessions.key_of(account_id, ""), 0.0
        try:
            if await self.shared.end_one(key, account_id):
                while waited_for < EXCESS_SECONDS:
                    await asyncio.sleep(EXCESS_CHECK_SECONDS)
                    waited_for += EXCESS_CHECK_SECONDS
                    others = await self.shared.report(key, self.sessions.count(key) + 1)
                    if not self.sessions.is_over(account_id, others):
                        return
        finally:
            self._note(key, 1)
        raise self.sessions.too_many()

    def _asked(self, event: Event) -> None:
        """Another node needs one session less of an account here."""
        account_id = event.data["account"]
        if len(self._in_excess) < MAX_COUNTS_WAITING:
            self._in_excess[account_id] = event.data["at"]
            self._news.set()

    async def run(self) -> None:
        """Tell what changes, and end what others need ended, as long as the hub runs."""
        recounted = self.clock.monotonic()
        while True:
            await waited(self._news, COUNT_SECONDS)
            self._news.clear()
            try:
                await self._end_excess()
                now = self.clock.monotonic()
                if now - recounted >= RECOUNT_SECONDS:
                    # A crash of the database's server may have emptied the table.
                    recounted = now
                    self._changed.update(dict.fromkeys((ALL, *self.sessions.keys())))
                    await self.shared.forget()
                await self._tell()
            except e.StoreError as error:
                logger.warning("sessions were not counted", extra={"error": error.code})

    async def _end_excess(self) -> None:
        accounts, self._in_excess = self._in_excess, {}
        for account_id, asked_at in accounts.items():
            if self.clock.now() - asked_at > EXCESS_SECONDS:
                # Nobody waits for it any more.
                continue
            session = self.sessions.longest_unused(account_id)
            if session is not None:
                await self.close(session)
            else:
                # The other node may believe that there are more than there are.
                self._note(self.sessions.key_of(account_id, ""), 1)

    async def _tell(self) -> None:
        keys, self._changed = self._changed, {}
        counts = [(key, self.sessions.count(key) if key else len(self.sessions)) for key in keys]
        reports = (self.shared.report(*each) for each in counts)
        told = await asyncio.gather(*reports, return_exceptions=True)
        error: BaseException | None = None
        for key, answer in zip(keys, told, strict=True):
            if isinstance(answer, BaseException):
                error = answer
                if len(self._changed) < MAX_COUNTS_UNTOLD:
                    self._changed[key] = None
        if error is not None:
            raise error
