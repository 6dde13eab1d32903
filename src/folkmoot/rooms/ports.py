"""What a live room needs of a transport: connections, and those who hear the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.ports import Store, Unit
from folkmoot.core.transport import TransportContext
from folkmoot.rooms.model import Visitor

T = TypeVar("T")


class Outlet(Protocol):
    """One connection, as a live room uses it; one is never mistaken for another."""

    def __hash__(self) -> int: ...

    @property
    def is_open(self) -> bool:
        """Whether what it is told still goes somewhere."""
        ...

    def tell(self, data: bytes) -> None:
        """Send a message after everything it was told or heard before."""
        ...

    def close(self, code: CloseCode) -> None:
        """End the connection, after everything it was told before."""
        ...

    def hold(self) -> None:
        """Take nothing more from it for now; who holds it releases it as often."""
        ...

    def release(self) -> None:
        """Go on taking what it sends."""
        ...

    async def drained(self) -> None:
        """Wait until it has read most of what it was told, or is gone."""
        ...


class Crowd(Protocol):
    """The connections that hear what is said in one room."""

    def add(self, outlet: Outlet) -> None:
        """Let a connection hear what is said from now on."""
        ...

    def remove(self, outlet: Outlet) -> None:
        """Let it hear no more; one that does not hear is no error."""
        ...

    def broadcast(self, data: bytes) -> None:
        """Tell all of them."""
        ...


class PeekingStore(Store, Protocol):
    """A store that can also answer one index read at once, in the loop."""

    def peek(self, query: Unit[T]) -> T:
        """Run a query on what is committed, without waiting."""
        ...


Intercept: TypeAlias = Callable[[McpxMessage, Visitor, TransportContext], Awaitable[None]]
"""Shows a message to the interceptors; one that stops it raises its error. None may change it."""
