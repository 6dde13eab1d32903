"""Notifying a mailbox's owner, and nobody else, that something has arrived or was changed.

Both eras ask for the resource `mmp://mailboxes/inbox`: in the handshake era with
`resources/subscribe`, in the stateless one with `subscriptions/listen`, whose answer is a stream.
The notice of urgent mail has `"folkmoot/urgent": true` in `_meta`. `Resubscriptions` has what
sessions had subscribed to before a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.core.ports import Missed
from folkmoot.gateway.rights import INBOX
from folkmoot.mail import is_notable, is_urgent, subject_of_mailbox
from folkmoot.operations.call import run_until
from folkmoot.taskgroups import group

if TYPE_CHECKING:
    from folkmoot.accounts import Accounts
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Bus, Event, Subscription
    from folkmoot.mcp.server.service import McpAnswer
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.sessions import McpSession

logger = logging.getLogger("folkmoot.mcp")

__all__ = ["INBOX", "URGENT", "MailWatch", "Notice", "Notices"]

URGENT: Final[dict[str, Any]] = {"folkmoot/urgent": True}
"""What the notice of urgent mail has in `_meta`."""


class Notice(NamedTuple):
    """A change of a mailbox that its owner is notified of."""

    urgent: bool = False
    """Whether it is a new message, and urgent."""


Notify: TypeAlias = Callable[[Notice], Awaitable[None]]


class SessionTasks:
    """A task for each of some sessions, until it ends or the session does."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, session_id: str) -> bool:
        task = self._running.get(session_id)
        return task is not None and not task.done()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the tasks; on leaving, end them."""
        async with group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                for task in tuple(self._running.values()):
                    task.cancel()

    def start(self, session_id: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin the task of a session."""
        if self._tasks is None:
            work.close()
            raise e.HubStopping("The hub is stopping.")
        task = self._running[session_id] = self._tasks.create_task(work)

        def done(ended: asyncio.Task[None]) -> None:
            if self._running.get(session_id) is ended:
                del self._running[session_id]

        task.add_done_callback(done)
        return task

    def cancel(self, session_id: str) -> None:
        """End the task of a session, if there is one."""
        if (task := self._running.pop(session_id, None)) is not None:
            task.cancel()


class Notices(SessionTasks):
    """Carries the bus's events of a mailbox to those who may hear them."""

    def __init__(
        self,
        bus: Bus,
        accounts: Accounts,
        permitted: Callable[[Principal, str], bool] = lambda _principal, _uri: True,
    ) -> None:
        super().__init__()
        self._bus = bus
        self._accounts = accounts
        self._permitted = permitted
        """Whether someone may still hear of their mailbox."""

    async def subscribe(
        self, session: McpSession, user_id: str, credential_id: str, notify: Notify
    ) -> None:
        """Notify a session from now on, until it ends, unsubscribes or becomes someone else's.

        `credential_id` is that of what let the user ask for it.
        """
        self.unsubscribe(session)
        if session.ended:
            return
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = self.start(session.id, self._follow(session, user_id, credential_id, notify, ready))
        task.add_done_callback(lambda _: resolve(ready))
        await ready

    def follows(self, session: McpSession) -> bool:
        """Whether a session is notified."""
        return session.id in self

    def unsubscribe(self, session: McpSession) -> None:
        """Notify a session no more."""
        self.cancel(session.id)

    async def _follow(
        self,
        session: McpSession,
        user_id: str,
        credential_id: str,
        notify: Notify,
        ready: asyncio.Future[None],
    ) -> None:
        """Subscribe and tell; a task that is cancelled before it begins leaves nothing open."""
        try:
            subscription = await self._bus.subscribe(subject_of_mailbox(user_id))
        except e.FolkmootError as error:
            resolve(ready, error)
            return
        resolve(ready)
        try:
            async for event in subscription:
                if session.ended or session.credential_id != credential_id:
                    return
                if not await self._is_valid(credential_id):
                    return
                if (notice := notice_of(event)) is not None:
                    await notify(notice)
        except Exception as error:  # noqa: BLE001 - the stream of a session that has ended
            logger.debug("notices ended", extra={"error": type(error).__name__})
        finally:
            await subscription.close()

    @asynccontextmanager
    async def listening(self, user_id: str, credential_id: str) -> AsyncIterator[MailWatch]:
        """The notices of one mailbox for one stream of the stateless era."""
        subscription = await self._bus.subscribe(subject_of_mailbox(user_id))
        try:
            yield MailWatch(subscription, lambda: self._is_valid(credential_id))
        finally:
            await subscription.close()

    async def _is_valid(self, credential_id: str) -> bool:
        principal = await self._accounts.principal(credential_id)
        return principal is not None and self._permitted(principal, INBOX)


class MailWatch:
    """The events of one mailbox, as long as its token is valid."""

    def __init__(self, subscription: Subscription, valid: Callable[[], Awaitable[bool]]) -> None:
        self._events = aiter(subscription)
        self._valid = valid

    async def next(self, leaving: asyncio.Event) -> Notice | None:
        """Wait for the next notice; None when there will be none any more."""
        while (event := await run_until(leaving, self._next())) is not None:
            if not await self._valid():
                return None
            if (notice := notice_of(event)) is not None:
                return notice
        return None

    async def _next(self) -> Event | Missed | None:
        return await anext(self._events, None)


def resolve(ready: asyncio.Future[None], error: Exception | None = None) -> None:
    """Let whoever waits go on, unless they went away already."""
    if ready.done():
        return
    if error is None:
        ready.set_result(None)
    else:
        ready.set_exception(error)


def notice_of(event: Event | Missed) -> Notice | None:
    """The notice of an event, if there is one; of events that were missed nothing is known."""
    if isinstance(event, Missed):
        return Notice()
    return Notice(is_urgent(event.data)) if is_notable(event.data) else None


class Resubscriptions(SessionTasks):
    """What sessions that were adopted after a restart had subscribed to, and are not yet.

    A backend may not be connected yet when its watcher is back already; so what could not be
    subscribed to is tried again whenever the lists of backends change.
    """

    def __init__(self, subscribe: Callable[[Exchange, str], Awaitable[McpAnswer]]) -> None:
        super().__init__()
        self._subscribe = subscribe
        self._pending: dict[str, dict[str, Exchange]] = {}
        """By session, then by URI: the request that the session was adopted for."""
        self._renewed = 0

    def of(self, session: McpSession) -> tuple[str, ...]:
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
        self._renewed += 1
        for session_id in tuple(self._pending):
            self._start(session_id)

    def discard(self, session: McpSession, uri: str) -> None:
        """A session does not want this any more, or has it."""
        pending = self._pending.get(session.id)
        if pending is not None:
            pending.pop(uri, None)
            if not pending:
                del self._pending[session.id]

    def forget(self, session: McpSession) -> None:
        """A session has ended."""
        self._pending.pop(session.id, None)
        self.cancel(session.id)

    def _start(self, session_id: str) -> None:
        if session_id in self._pending and session_id not in self:
            with suppress(e.HubStopping):
                self.start(session_id, self._attempt_all(session_id))

    async def _attempt_all(self, session_id: str) -> None:
        attempted = -1
        # What changes while an attempt is made may be what it needed.
        while attempted != self._renewed:
            attempted = self._renewed
            for uri in tuple(self._pending.get(session_id, ())):
                await self._attempt(session_id, uri)

    async def _attempt(self, session_id: str, uri: str) -> None:
        exchange = self._pending.get(session_id, {}).get(uri)
        if exchange is None or exchange.session is None:
            return
        try:
            answer = await self._subscribe(exchange, uri)
        except e.FolkmootError:
            return
        if answer.error is UNSET:
            self.discard(exchange.session, uri)
