"""Telling a mailbox's owner, and nobody else, that something has arrived.

Both eras ask for the resource `mmp://mailboxes/inbox`: in the handshake era with
`resources/subscribe`, in the stateless one with `subscriptions/listen`, whose answer is a stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from folkmoot.core.errors import FolkmootError
from folkmoot.core.ports import Missed
from folkmoot.gateway.operations import INBOX
from folkmoot.mail import subject_of_mailbox
from folkmoot.tools.patience import unless

if TYPE_CHECKING:
    from folkmoot.accounts import Account, Accounts
    from folkmoot.core.ports import Bus, Event, Subscription
    from folkmoot.transports.mcp.sessions import Session

logger = logging.getLogger("folkmoot.mcp")

__all__ = ["INBOX", "Listening", "Notices"]

Notify: TypeAlias = Callable[[], Awaitable[None]]
"""Sends one change notice to a client."""


class Notices:
    """Carries what the bus says of a mailbox to those who may hear it."""

    def __init__(
        self,
        bus: Bus,
        accounts: Accounts,
        permitted: Callable[[Account, str], bool] = lambda _account, _uri: True,
    ) -> None:
        self._bus = bus
        self._accounts = accounts
        self._permitted = permitted
        """Whether someone may still hear of their mailbox."""
        self._tasks: asyncio.TaskGroup | None = None
        self._of_session: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the tasks of the handshake era; on leaving, end them."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                for task in tuple(self._of_session.values()):
                    task.cancel()

    async def subscribe(self, session: Session, user_id: str, holder: str, notify: Notify) -> None:
        """Notify a session from now on, until it ends, unsubscribes or becomes someone else's.

        `holder` is the mark of the token that let the user ask for it.
        """
        if self._tasks is None:
            raise RuntimeError("notices are not running")
        self.unsubscribe(session)
        if session.ended:
            return
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = self._tasks.create_task(self._follow(session, user_id, holder, notify, ready))
        self._of_session[session.id] = task

        def done(ended: asyncio.Task[None]) -> None:
            settle(ready)
            if self._of_session.get(session.id) is ended:
                del self._of_session[session.id]

        task.add_done_callback(done)
        await ready

    def unsubscribe(self, session: Session) -> None:
        """Notify a session no more."""
        if (task := self._of_session.pop(session.id, None)) is not None:
            task.cancel()

    async def _follow(
        self,
        session: Session,
        user_id: str,
        holder: str,
        notify: Notify,
        ready: asyncio.Future[None],
    ) -> None:
        """Subscribe and tell; a task that is cancelled before it begins leaves nothing open."""
        try:
            subscription = await self._bus.subscribe(subject_of_mailbox(user_id))
        except FolkmootError as error:
            settle(ready, error)
            return
        settle(ready)
        try:
            async for event in subscription:
                if session.ended or session.holder != holder or not await self._is_valid(holder):
                    return
                if is_notice(event):
                    await notify()
        except Exception as error:  # noqa: BLE001 - the stream of a session that has ended
            logger.debug("notices ended", extra={"error": type(error).__name__})
        finally:
            await subscription.close()

    @asynccontextmanager
    async def listening(self, user_id: str, holder: str) -> AsyncIterator[Listening]:
        """The notices of one mailbox for one stream of the stateless era."""
        subscription = await self._bus.subscribe(subject_of_mailbox(user_id))
        try:
            yield Listening(subscription, lambda: self._is_valid(holder))
        finally:
            await subscription.close()

    async def _is_valid(self, holder: str) -> bool:
        account = await self._accounts.authenticate_hash(holder)
        return account is not None and self._permitted(account, INBOX)


class Listening:
    """What comes from one mailbox while its token is valid."""

    def __init__(self, subscription: Subscription, valid: Callable[[], Awaitable[bool]]) -> None:
        self._events = aiter(subscription)
        self._valid = valid

    async def next(self, leaving: asyncio.Event) -> bool:
        """Wait for the next notice; False when there will be none any more."""
        while (event := await unless(leaving, self._next())) is not None:
            if not await self._valid():
                return False
            if is_notice(event):
                return True
        return False

    async def _next(self) -> Event | Missed | None:
        return await anext(self._events, None)


def settle(ready: asyncio.Future[None], error: Exception | None = None) -> None:
    """Let whoever waits go on, unless they went away already."""
    if ready.done():
        return
    if error is None:
        ready.set_result(None)
    else:
        ready.set_exception(error)


def is_notice(event: Event | Missed) -> bool:
    """Whether an event is to be told of; muted threads are silent."""
    return isinstance(event, Missed) or not event.data.get("muted")
