"""SessionManager: the MCP sessions that pass through here, how far each has come, and which go.

Each session costs the same whatever the others do: what is used goes to the end of an order, so
whatever is idle for too long stands at its beginning. Whoever is told that a session ends is told
after it is out of the tables.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import field

from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageDirection, MessageEnvelope
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    same_id,
)
from folkmoot.core.ports import Clock
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId, SessionState
from folkmoot.mcp.wire import INITIALIZE, INITIALIZED, VERSION_KEY

MOST_BETWEEN_LOOKS: Final = 30.0
LOOKS_WHILE_IDLE: Final = 4

Reason: TypeAlias = Literal["closed", "idle", "old", "crowded"]


class SessionLimits(msgspec.Struct, frozen=True):
    """How long sessions live, and how many there may be."""

    idle_seconds: float = 1800.0
    absolute_seconds: float = 86_400.0
    most: int = 10_000


class ProxySession(msgspec.Struct, eq=False):
    """One session: the context of its messages, and its times."""

    key: str
    context: SessionContext
    opened: float
    used: float
    end: Callable[[], None] | None = None
    """Called when the manager ends the session on its own."""
    attended: Callable[[], bool] | None = None
    """Whether someone listens in the session, so that it is not idle though nothing is said."""
    greeting: str | int | None = None
    """The id of the open `initialize` request."""

    def follow(self, envelope: MessageEnvelope[Any]) -> SessionContext:
        """Take the step that a message means for its session; the context from then on."""
        message = envelope.message
        state = self.context.state
        if state is SessionState.ACTIVE or state is SessionState.CLOSED:
            return self.context
        if envelope.context.direction is MessageDirection.CLIENT_TO_SERVER:
            self._heard_client(message)
        elif self.greeting is not None and isinstance(message, Response):
            self._heard_answer(message)
        return self.context

    def _heard_client(self, message: Any) -> None:
        state = self.context.state
        if isinstance(message, Request) and message.method == INITIALIZE:
            self.greeting = message.id
            self._speak(_member(message.params, "protocolVersion"))
            if state is SessionState.UNINITIALIZED:
                self.context = self.context.with_state(SessionState.INITIALIZING)
        elif isinstance(message, Notification) and message.method == INITIALIZED:
            self.activate()
        elif version := _member(_member(getattr(message, "params", None), "_meta"), VERSION_KEY):
            self._speak(version)
            self.activate()

    def _heard_answer(self, message: Response) -> None:
        if same_id(message.id, self.greeting):
            self.greeting = None
            self._speak(_member(message.result, "protocolVersion"))

    def activate(self) -> None:
        """Be active, from wherever the session is."""
        for state in (SessionState.INITIALIZING, SessionState.ACTIVE):
            if self.context.state.may_become(state):
                self.context = self.context.with_state(state)

    def close(self) -> None:
        """Be closed, by way of closing."""
        for state in (SessionState.CLOSING, SessionState.CLOSED):
            if self.context.state.may_become(state):
                self.context = self.context.with_state(state)

    def _speak(self, version: Any) -> None:
        if isinstance(version, str) and version != self.context.protocol_version.value:
            self.context = self.context.with_version(ProtocolVersion(version))


class SessionManager(Entity):
    """Every session, the longest unused first; when there are too many, that one goes."""

    clock: Clock
    limits: SessionLimits = field(default_factory=SessionLimits)
    _by_use: OrderedDict[str, ProxySession] = field(default_factory=OrderedDict)
    _by_age: OrderedDict[str, ProxySession] = field(default_factory=OrderedDict)
    opened: int = 0
    ended: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self._by_use)

    def open(
        self,
        key: str,
        *,
        named: bool = True,
        lasting: bool = False,
        end: Callable[[], None] | None = None,
    ) -> ProxySession:
        """Open a session; with `named`, its key is the id its messages carry.

        One that is `lasting` is never too old, since it is not that of one client alone.
        """
        known = self._by_use.get(key)
        if known is not None:
            return known
        while len(self._by_use) >= self.limits.most:
            self._drop(next(iter(self._by_use.values())), "crowded")
        now = self.clock.monotonic()
        context = SessionContext(SessionId(key)) if named else SessionContext()
        session = ProxySession(key, context, now, now, end)
        self._by_use[key] = session
        if not lasting:
            self._by_age[key] = session
        self.opened += 1
        return session

    def find(self, key: str) -> ProxySession | None:
        """An open session by its key; finding it counts as use."""
        session = self._by_use.get(key)
        if session is not None:
            self.use(session)
        return session

    def use(self, session: ProxySession) -> None:
        """Note that a session was used now."""
        session.used = self.clock.monotonic()
        if session.key in self._by_use:
            self._by_use.move_to_end(session.key)

    def close(self, session: ProxySession) -> None:
        """End a session that its client or server has ended."""
        if self._by_use.get(session.key) is session:
            session.end = None
            self._drop(session, "closed")

    def expire(self) -> int:
        """End what is idle or old; how many sessions that were."""
        now, ended = self.clock.monotonic(), 0
        tables: tuple[tuple[OrderedDict[str, ProxySession], str, float, Reason], ...] = (
            (self._by_use, "used", self.limits.idle_seconds, "idle"),
            (self._by_age, "opened", self.limits.absolute_seconds, "old"),
        )
        for table, since, most, reason in tables:
            while table:
                first = next(iter(table.values()))
                if now - getattr(first, since) < most:
                    break
                if reason == "idle" and first.attended is not None and first.attended():
                    self.use(first)
                    continue
                self._drop(first, reason)
                ended += 1
        return ended

    async def run(self) -> None:
        """End expired sessions, as long as this runs."""
        shortest = min(self.limits.idle_seconds, self.limits.absolute_seconds)
        while True:
            await asyncio.sleep(min(shortest / LOOKS_WHILE_IDLE, MOST_BETWEEN_LOOKS))
            self.expire()

    def _drop(self, session: ProxySession, reason: Reason) -> None:
        del self._by_use[session.key]
        self._by_age.pop(session.key, None)
        self.ended[reason] += 1
        session.close()
        if session.end is not None:
            session.end()


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
