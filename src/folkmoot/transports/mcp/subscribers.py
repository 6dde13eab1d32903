"""Those who are told of changes: sessions with a stream open, and streams that listen.

A change that was not told yet is told once, however often it happened meanwhile; so what waits for
one of them is bounded by what they asked for.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from folkmoot.core.entity import Entity
from folkmoot.mcp import wire
from folkmoot.operations.call import run_until
from folkmoot.taskgroups import BackgroundTasks, background_tasks
from folkmoot.transports.mcp.notices import INBOX, URGENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.accounts import Accounts
    from folkmoot.core.capability import Rights
    from folkmoot.core.policy import Principal
    from folkmoot.gateway.rights import HubRights
    from folkmoot.transports.mcp.sessions import McpSession

logger = logging.getLogger("folkmoot.mcp")

_encode = msgspec.json.Encoder().encode

LIST_CHANGED: Final = {
    "tools": wire.TOOLS_CHANGED,
    "prompts": wire.PROMPTS_CHANGED,
    "resources": wire.RESOURCES_CHANGED,
    "templates": wire.RESOURCES_CHANGED,
}
"""How each list is said to have changed."""
LISTS: Final = tuple(dict.fromkeys(LIST_CHANGED.values()))
TASK: Final = "task:"
"""How the mark of a task begins; its id follows."""
TaskNotice: TypeAlias = "Callable[[str, str], Awaitable[dict[str, Any] | None]]"
"""What is said of a task of an account; None for nothing."""
RIGHTS: Final = "rights"
"""The mark that someone's rights may have changed, and so all of their lists."""
GRANTED: Final = "grants"
"""The mark that they did change, though perhaps back: a list read in between is out of date."""


class Subscriber(ABC):
    """Someone who is told: of lists by the method of the notice, of a resource by its URI."""

    def __init__(self) -> None:
        self.held: Rights | None = None
        """The rights that the lists they know were made for."""
        self._pending: dict[str, None] = {}

    @property
    @abstractmethod
    def account_id(self) -> str:
        """The account of the subscriber; empty for a stranger."""

    @property
    @abstractmethod
    def credential_id(self) -> str: ...

    @abstractmethod
    def wants(self, what: str) -> bool:
        """Whether they want to hear of this at all."""

    def mark(self, what: str) -> None:
        """Have them told of a change."""
        self._pending[what] = None

    def drain(self) -> list[str]:
        """What is to be told now."""
        taken = list(self._pending)
        self._pending.clear()
        return taken


class StreamSubscriber(Subscriber):
    """A stream of the stateless era, and what it asked for."""

    def __init__(self, account_id: str, credential_id: str, wanted: frozenset[str]) -> None:
        super().__init__()
        self._account_id = account_id
        self._credential_id = credential_id
        self.wanted = wanted
        self.urgent = False
        """Whether urgent mail has come that was not told yet."""
        self.ended = False
        self._news = asyncio.Event()

    def mark(self, what: str) -> None:
        """Have the stream told of a change."""
        super().mark(what)
        self._news.set()

    async def wait(self, leaving: asyncio.Event) -> list[str]:
        """Wait for what is to be told; nothing when there will be nothing any more."""
        if not self._pending:
            await run_until(leaving, self._news.wait())
        self._news.clear()
        return self.drain()

    @property
    def account_id(self) -> str:
        """The account that opened the stream."""
        return self._account_id

    @property
    def credential_id(self) -> str:
        """The credential that opened the stream."""
        return self._credential_id

    def wants(self, what: str) -> bool:
        """Whether the stream asked for this notification."""
        return what in self.wanted or (what in {RIGHTS, GRANTED} and bool(self.wanted))

    def end(self) -> None:
        """Tell nothing more."""
        self.ended = True
        self._news.set()


class SessionSubscriber(Subscriber):
    """A session of the handshake era."""

    def __init__(self, session: McpSession) -> None:
        super().__init__()
        self.session = session
        self.telling = False
        self.urgent = False
        """Whether urgent mail has come that was not told yet."""

    @property
    def account_id(self) -> str:
        """The account of the session, which may change while it is open."""
        return self.session.owner

    @property
    def credential_id(self) -> str:
        return self.session.credential_id

    def wants(self, what: str) -> bool:
        """Only once it has a stream, or had one that it may resume."""
        return bool(what) and self.session.may_listen_again


class Subscribers(Entity):
    """All of them; whoever is told is first asked for by their token."""

    accounts: Accounts
    rights: HubRights
    permitted: Callable[[Principal, str], bool]
    """Whether someone may still hear of a resource, or of a task."""
    task_notice: TaskNotice
    _sessions: dict[str, SessionSubscriber] = {}
    _streams: set[StreamSubscriber] = set()
    _tasks: BackgroundTasks | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the tasks that tell sessions; on leaving, end them."""
        async with background_tasks() as self._tasks:
            yield

    def meet(self, session: McpSession, principal: Principal) -> None:
        """Tell a session from now on, while it has a stream to hear it on."""
        known = self._sessions[session.id] = SessionSubscriber(session)
        known.held = self.rights.of_principal(principal)

    def of(self, session: McpSession) -> SessionSubscriber | None:
        return self._sessions.get(session.id)

    def part(self, session: McpSession) -> SessionSubscriber | None:
        """Tell a session that has ended nothing more."""
        return self._sessions.pop(session.id, None)

    def join(self, stream: StreamSubscriber, principal: Principal) -> None:
        """Tell a stream from now on."""
        stream.held = self.rights.of_principal(principal)
        self._streams.add(stream)

    def leave(self, stream: StreamSubscriber) -> None:
        """Tell a stream nothing more."""
        self._streams.discard(stream)

    def notify(self, subscriber: Subscriber, what: str) -> None:
        """Notify a subscriber of a change, without waiting."""
        if isinstance(subscriber, SessionSubscriber):
            if not subscriber.wants(what) or self._tasks is None:
                return
            subscriber.mark(what)
            self.go_on(subscriber)
        else:
            subscriber.mark(what)

    def go_on(self, subscriber: SessionSubscriber) -> None:
        """Send a listening session its pending notifications."""
        if self._tasks is not None and subscriber.session.listens and not subscriber.telling:
            subscriber.telling = True
            self._tasks.run(self._deliver(subscriber))

    def notify_all(self, what: str, accounts: frozenset[str] | None = None) -> None:
        """Have everyone who has an account, or only these, told that something has changed."""
        for subscriber in (*self._sessions.values(), *self._streams):
            concerned = accounts is None or subscriber.account_id in accounts
            if subscriber.account_id and concerned and subscriber.wants(what):
                self.notify(subscriber, what)

    async def due(self, subscriber: Subscriber, what: str) -> list[str] | None:
        """What to say of something that was marked; None when their token is good no more."""
        principal = await self.accounts.principal(subscriber.credential_id)
        if principal is None or principal.account_id != subscriber.account_id:
            return None
        if what in {RIGHTS, GRANTED}:
            before, subscriber.held = subscriber.held, self.rights.of_principal(principal)
            same = before is subscriber.held or (before and [*before] == [*subscriber.held])
            if same and what == RIGHTS:
                return []
            return [each for each in LISTS if subscriber.wants(each)]
        return [what] if what in LISTS or self.permitted(principal, what) else []

    async def message(
        self, subscriber: Subscriber, what: str, meta: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """A change as it is written; None where there is nothing to say of it any more."""
        if not what.startswith(TASK):
            return notice_of(what, meta)
        stateless = isinstance(subscriber, StreamSubscriber)
        params = await self.task_notice(subscriber.account_id, what.removeprefix(TASK))
        if params is None:
            return None
        if meta:
            params = {**params, "_meta": {**params.get("_meta", {}), **meta}}
        method = wire.TASK_CHANGED if stateless else wire.TASK_STATUS
        return {"jsonrpc": "2.0", "method": method, "params": params}

    def sessions_of(self, account_id: str) -> list[SessionSubscriber]:
        return [each for each in self._sessions.values() if each.account_id == account_id]

    async def _deliver(self, subscriber: SessionSubscriber) -> None:
        try:
            while subscriber.session.listens and (what := subscriber.drain()):
                for each in what:
                    due = await self.due(subscriber, each)
                    if due is None or subscriber.session.ended:
                        return
                    for notice in due:
                        meta = URGENT if notice == INBOX and subscriber.urgent else None
                        subscriber.urgent = subscriber.urgent and meta is None
                        message = await self.message(subscriber, notice, meta)
                        stream = subscriber.session.stream
                        if message is not None and stream is not None:
                            stream.put(_encode(message))
                            await stream.flushed(0)
        except Exception as error:  # noqa: BLE001 - the stream of a session that has ended
            logger.debug("a session was not notified", extra={"error": type(error).__name__})
        finally:
            subscriber.telling = False


def notice_of(what: str, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    """A change as it is written: of a list by its method, of a resource by its URI."""
    params: dict[str, Any] = {} if what in LISTS else {"uri": what}
    if meta:
        params["_meta"] = meta
    message = {"jsonrpc": "2.0", "method": what if what in LISTS else wire.UPDATED}
    return {**message, "params": params} if params else message
