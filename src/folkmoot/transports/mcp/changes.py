"""Telling clients that their lists have changed: because a backend's did, or their rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from folkmoot.transports.mcp.hearers import LIST_CHANGED, RIGHTS

if TYPE_CHECKING:
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import What
    from folkmoot.gateway.rights import HubRights
    from folkmoot.transports.mcp.hearers import Hearers

QUIET_SECONDS: Final = 0.25
"""Changes that come within this time are told of together."""


class Changes:
    """Gathers what has changed, and has everyone told whom it may concern."""

    def __init__(
        self,
        gateway: Gateway | None,
        rights: HubRights,
        hearers: Hearers,
        also: Callable[[], None] = lambda: None,
    ) -> None:
        self._gateway = gateway
        self._rights = rights
        self._hearers = hearers
        self._also = also
        """Called with every change of what backends offer."""
        self._running = False
        self._timer: asyncio.TimerHandle | None = None
        self._lists: dict[str, None] = {}
        self._accounts: set[str] = set()
        self._everyone = False
        rights.watch(self._rights_changed)
        if gateway is not None:
            gateway.watch(self._lists_changed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell of changes while entered."""
        self._running = True
        try:
            yield
        finally:
            self._running = False
            if self._timer is not None:
                self._timer.cancel()

    def _lists_changed(self, what: frozenset[What]) -> None:
        self._lists |= dict.fromkeys(LIST_CHANGED[each] for each in what)
        self._soon()

    def _rights_changed(self, accounts: frozenset[str] | None) -> None:
        if accounts is None:
            self._everyone = True
        else:
            self._accounts |= accounts
        self._soon()

    def _soon(self) -> None:
        if self._running and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(QUIET_SECONDS, self._tell)

    def _tell(self) -> None:
        self._timer = None
        lists, self._lists = self._lists, {}
        accounts, self._accounts = frozenset(self._accounts), set()
        everyone, self._everyone = self._everyone, False
        if lists:
            self._also()
        for each in lists:
            self._hearers.tell_all(each)
        if everyone or accounts:
            self._hearers.tell_all(RIGHTS, None if everyone else accounts)
