"""Subscriptions of sessions that were adopted after a restart.

A backend may not be connected yet when its watcher is back already; so what could not be subscribed
to is tried again whenever the lists of backends change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import UNSET

from folkmoot.core.errors import FolkmootError

if TYPE_CHECKING:
    from folkmoot.mcp.server.service import Answer
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.sessions import Session


class Resubscriptions:
    """What sessions had subscribed to and are not subscribed to yet."""

    def __init__(self, subscribe: Callable[[Exchange, str], Awaitable[Answer]]) -> None:
        self._subscribe = subscribe
        self._pending: dict[str, dict[str, Exchange]] = {}
        """By session, then by URI: the request that the session was adopted for."""
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the tasks that subscribe; on leaving, end them."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                for task in tuple(self._running.values()):
                    task.cancel()

    def of(self, session: Session) -> tuple[str, ...]:
        """What a session still waits for."""
        return tuple(self._pending.get(session.id, ()))

    async def begin(self, exchange: Exchange, own: str) -> None:
        """Subscribe the session of a request again: to the hub's own resource before going on."""
        session = exchange.session
        if session is None:
            return
        self._pending[session.id] = dict.fromkeys(exchange.subscribed, exchange)
        if own in exchange.subscribed:
            await self._attempt(session.id, own)
        self._start(session.id)

    def renew(self) -> None:
        """Try again for every session that waits."""
        for session_id in tuple(self._pending):
            self._start(session_id)

    def discard(self, session: Session, uri: str) -> None:
        """A session does not want this any more, or has it."""
        pending = self._pending.get(session.id)
        if pending is not None:
            pending.pop(uri, None)
            if not pending:
                del self._pending[session.id]

    def forget(self, session: Session) -> None:
        """A session has ended."""
        self._pending.pop(session.id, None)
        if (task := self._running.pop(session.id, None)) is not None:
            task.cancel()

    def _start(self, session_id: str) -> None:
        if self._tasks is None or session_id in self._running or session_id not in self._pending:
            return
        task = self._tasks.create_task(self._attempt_all(session_id))
        self._running[session_id] = task
        task.add_done_callback(lambda _: self._running.pop(session_id, None))

    async def _attempt_all(self, session_id: str) -> None:
        for uri in tuple(self._pending.get(session_id, ())):
            await self._attempt(session_id, uri)

    async def _attempt(self, session_id: str, uri: str) -> None:
        exchange = self._pending.get(session_id, {}).get(uri)
        if exchange is None or exchange.session is None:
            return
        try:
            answer = await self._subscribe(exchange, uri)
        except FolkmootError:
            return
        if answer.error is UNSET:
            self.discard(exchange.session, uri)
