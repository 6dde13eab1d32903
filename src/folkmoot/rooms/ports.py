"""What a live room needs of others: connections, those who hear the same, and backends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors import FolkmootError
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import Request, Response
from folkmoot.core.policy import Principal
from folkmoot.core.scopes import ALL
from folkmoot.core.transport import UNKNOWN, TransportContext
from folkmoot.rooms.machine.model import MessageCheck
from folkmoot.rooms.model import Visitor
from folkmoot.telemetry.records import AuditTrail

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

    def broadcast(self, messages: Sequence[bytes]) -> None:
        """Tell all of them, in this order."""
        ...


TellProgress: TypeAlias = Callable[[dict[str, Any]], None]
"""Told how far a request has come; never waits."""


class Asked(Struct, frozen=True, kw_only=True):
    """What someone asks a backend in a room, where they may."""

    room: str
    namespace: str
    person: str
    """The account of whoever asks, as the room knows it; a guest's is none of the hub's."""
    scope: str = ALL
    """That of the credential that they asked with."""
    request: Request
    trail: AuditTrail
    """Where the audit line waits until it is known whether the room gets the answer."""


class Backends(Protocol):
    """The servers behind the hub, as rooms use them."""

    def known(self) -> Collection[str]:
        """The namespaces that the hub has, reachable or not."""
        ...

    def may_bring(self, principal: Principal, namespace: str) -> bool:
        """Whether there is such a backend and someone may use any of it at the hub."""
        ...

    async def answer(self, asked: Asked, tell: TellProgress | None) -> Response:
        """What a backend answers someone who holds the room's right.

        Whether they hold the hub's, too, is judged here. Whatever keeps it from answering is
        raised; to cancel this cancels the request.
        """
        ...


class Policy(Protocol):
    """The hub's policy, as rooms ask it; what it refuses is raised as a `PolicyError`."""

    def check(
        self,
        principal: Principal,
        operation: str,
        arguments: dict[str, Any],
        *,
        attempted: bool = True,
    ) -> None:
        """Refuse an operation, such as `room/join`, that someone may not do.

        Only what was `attempted` is in the audit log then.
        """
        ...

    def message_check(self, principal: Principal) -> MessageCheck | None:
        """How to check what someone says in rooms; None where nothing can be denied them."""
        ...

    def check_message(
        self, principal: Principal, room: str, kind: Kind, message: McpxMessage
    ) -> None:
        """Refuse a message in a room that the hub denies, by its effective kind."""
        ...


class Said(Struct, frozen=True):
    """A message to a room on its way in, as interceptors are to see it."""

    message: McpxMessage
    visitor: Visitor
    accept: Callable[[], Awaitable[Any]]
    """Has the room take the message as it came, whatever was done to the one that was shown."""
    blocked: Callable[[FolkmootError], object] = lambda _: None
    """Told the error of a message that is stopped."""
    transport: TransportContext = UNKNOWN
    operation_in: str = ""
    """The room's name, where the message was not admitted before as the operation that it is."""


Enter: TypeAlias = Callable[[Said], Awaitable[Any]]
"""Takes a message through the pipeline to its room; what stops it is raised."""
