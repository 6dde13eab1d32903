"""Notifying a mailbox's owner, and nobody else, that something has arrived or was changed.

Both eras ask for the resource `mmp://mailboxes/inbox`: in the handshake era with
`resources/subscribe`, in the stateless one with `subscriptions/listen`, whose answer is a stream.
The notice of urgent mail has `"folkmoot/urgent": true` in `_meta`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from folkmoot.core.errors import FolkmootError
from folkmoot.core.ports import Missed
from folkmoot.gateway.operations import INBOX
from folkmoot.mail import is_notable, is_urgent, subject_of_mailbox
from folkmoot.tools.patience import unless

if TYPE_CHECKING:
    from folkmoot.accounts import Account, Accounts
    from folkmoot.core.ports import Bus, Event, Subscription
    from folkmoot.transports.mcp.sessions import Session

logger = logging.getLogger("folkmoot.mcp")

__all__ = ["INBOX", "URGENT", "Listening", "Notice", "Notices"]

URGENT: Final[dict[str, Any]] = {"folkmoot/urgent": True}
"""What the notice of urgent mail has in `_meta`."""


class Notice(NamedTuple):
    """A change of a mailbox that its owner is notified of."""

    urgent: bool = False
    """Whether it is a new message, and urgent."""


Notify: TypeAlias = Callable[[Notice], Awaitable[None]]
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

    def follows(self, session: Session) -> bool:
        """Whether a session is notified."""
        return session.id in self._of_session

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
                if (notice := notice_of(event)) is not None:
                    await notify(notice)
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

    async def next(self, leaving: asyncio.Event) -> Notice | None:
        """Wait for the next notice; None when there will be none any more."""
        while (event := await unless(leaving, self._next())) is not None:
            if not await self._valid():
                return None
            if (notice := notice_of(event)) is not None:
                return notice
        return None

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


def notice_of(event: Event | Missed) -> Notice | None:
    """The notice of an event, if there is one; of events that were missed nothing is known."""
    if isinstance(event, Missed):
        return Notice()
    return Notice(is_urgent(event.data)) if is_notable(event.data) else None
