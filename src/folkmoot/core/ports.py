"""Protocols the shell implements: the domains know what they need, not who provides it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")

SqlValue: TypeAlias = str | bytes | int | float | None
Row: TypeAlias = tuple[Any, ...]


class Clock(Protocol):
    """The two times: one for people, one for durations."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never run backwards."""
        ...


class Tx(Protocol):
    """One transaction. Statements are written with `?`; an engine may spell them differently."""

    async def execute(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Run one statement and answer how many rows it changed."""
        ...

    async def fetch(self, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
        """Run one statement and answer all its rows."""
        ...

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        """Run one statement and answer its first row, if there is one."""
        ...


Unit: TypeAlias = Callable[[Tx], Awaitable[T]]
"""One user-visible action: everything it does with its `Tx` happens, or none of it.

A unit awaits nothing but its `Tx`: an engine may drive it from a thread without a loop.
"""


class Store(Protocol):
    """Durable state. `write` answers after its own commit; `read` sees only what is committed."""

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit and answer when it is committed; if it raises, it alone is undone."""
        ...

    async def read(self, query: Unit[T]) -> T:
        """Run a query on one consistent view of what is committed."""
        ...


class Subscription(Protocol):
    """The events of one subscriber, in order, through a bounded queue."""

    def __aiter__(self) -> AsyncIterator[tuple[str, Any]]:
        """Subject and event, one after the other, until the subscription is closed."""
        ...

    async def close(self) -> None:
        """Stop receiving; what waits in the queue is dropped."""
        ...


class Bus(Protocol):
    """Wakes and fans out. What it loses costs latency, never data: cursors re-read the store."""

    async def publish(self, subject: str, event: Any) -> None:
        """Carry an event to everyone who subscribed to its subject, after the commit."""
        ...

    async def subscribe(self, pattern: str) -> Subscription:
        """Receive what is published from now on; `*` stands for one token, `>` for the rest."""
        ...
