"""The ports of rooms: how a room is reached, and what it needs of others.

`Rooms` and the transports reach a room only by `RoomPort`, so a room may run in this process or on
another node. A call that is not awaited never waits for the room: what it brings about comes to the
outlets. Whoever owns a room (`LiveRoom`) can also change and trim it. A room needs connections,
those who hear the same, backends and the hub's policy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, Source
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import Request, Response
from folkmoot.core.policy import Principal
from folkmoot.core.scopes import ALL
from folkmoot.core.transport import UNKNOWN, TransportContext
from folkmoot.rooms.machine import Effect, Grant, Proposal, Role
from folkmoot.rooms.machine.model import MessageCheck
from folkmoot.rooms.machine.requests import OpenRequest, Standing
from folkmoot.rooms.model import Guest, MessagePage, RoomId, Visitor
from folkmoot.telemetry.logs import AuditTrail


class Outlet(Protocol):
    """One connection as a live room uses it; compared by identity."""

    def __hash__(self) -> int: ...

    @property
    def is_open(self) -> bool:
        """Whether messages still reach the connection."""

    def tell(self, data: bytes) -> None:
        """Send a message after everything it was told or heard before."""

    def close(self, code: CloseCode) -> None:
        """End the connection, after everything it was told before."""

    def hold(self) -> None:
        """Stop reading from the connection; each hold needs one release."""

    def release(self) -> None:
        """Read from the connection again."""

    async def drained(self) -> None:
        """Wait until it has read most of what it was told, or is gone."""


class Crowd(Protocol):
    """The connections that receive a room's messages."""

    def add(self, outlet: Outlet) -> None:
        """Let a connection hear what is said from now on."""

    def remove(self, outlet: Outlet) -> None:
        """Let it hear no more; one that does not hear is no error."""

    def broadcast(self, messages: Sequence[bytes]) -> None:
        """Send messages to all, in order."""


TellProgress: TypeAlias = Callable[[dict[str, Any]], None]
"""Told how far a request has come; never waits."""


class Asked(Struct, frozen=True, kw_only=True):
    """A request to a backend in a room."""

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

    def may_bring(self, principal: Principal, namespace: str) -> bool:
        """Whether the backend exists and the principal may use any of it."""

    async def answer(self, asked: Asked, tell: TellProgress | None) -> Response:
        """A backend's answer to someone with the room's right to ask.

        Whether they hold the hub's, too, is judged here. Whatever keeps it from answering is
        raised; to cancel this cancels the request.
        """


class Policy(Protocol):
    """The hub's policy for rooms; a refusal is a `PolicyError`."""

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

    def message_check(self, principal: Principal) -> MessageCheck | None:
        """How to check what someone says in rooms; None where nothing can be denied them."""

    def denied_in(self, principal: Principal, room: str) -> Sequence[Source]:
        """What the hub denies someone to say in a room, as denies of kinds."""

    def check_message(
        self, principal: Principal, room: str, kind: Kind, message: McpxMessage
    ) -> None:
        """Refuse a message in a room that the hub denies, by its effective kind."""


class Said(Struct, frozen=True):
    """A message to a room on its way in, as interceptors are to see it."""

    message: McpxMessage
    visitor: Visitor
    accept: Callable[[], Awaitable[Any]]
    """Has the room take the message as it came, whatever was done to the one that was shown."""
    blocked: Callable[[e.FolkmootError], object] = lambda _: None
    """Told the error of a message that is stopped."""
    transport: TransportContext = UNKNOWN
    operation_in: str = ""
    """The room's name, where the message was not admitted before as the operation that it is."""


Enter: TypeAlias = Callable[[Said], Awaitable[Any]]
"""Takes a message through the pipeline to its room; what stops it is raised."""


class RoomStatus(NamedTuple):
    """The position of a room, as far as known here."""

    epoch: str
    participants: int
    """How many are here; backends, which always are, do not count."""
    first_seq: int
    oldest_seq: int
    last_seq: int
    """The `seq` of the last message that everyone got."""


class WaitingItems(NamedTuple):
    """The open requests and proposals that wait for someone in a room."""

    requests: list[tuple[OpenRequest, Standing]]
    """What they were asked and have not answered."""
    proposals: list[Proposal]
    """What they may decide on."""
    rights: Rights
    """What they hold."""


class VisitsPort(Protocol):
    """Those who are in a room through tools, without a connection."""

    async def begin(self, visitor: Visitor, role: Role) -> None:
        """Begin or extend someone's visit."""

    def touch(self, account: str) -> object:
        """Note someone's activity."""

    async def end(self, account: str) -> None:
        """Let someone be gone."""


class RoomPort(Protocol):
    """One room in use. What is listed is shown once all of it is stored."""

    @property
    def room_id(self) -> RoomId: ...

    @property
    def name(self) -> str: ...

    @property
    def durable(self) -> bool:
        """Whether its messages are stored."""

    @property
    def status(self) -> RoomStatus: ...

    async def refresh(self) -> RoomStatus:
        """How far the room is now, wherever it is."""

    @property
    def outlets(self) -> Mapping[Outlet, Visitor]:
        """The connections of this process and their visitors."""

    @property
    def visits(self) -> VisitsPort:
        """Those who are here without a connection."""

    def join(
        self,
        outlet: Outlet,
        visitor: Visitor,
        role: Role,
        *,
        conn: str | None = None,
        after: int | None = None,
        epoch: str | None = None,
        serve: bool = False,
        linger: bool = False,
        credential: str | None = None,
    ) -> None:
        """Let someone in on a connection; an error, or the close of the outlet, says why not."""

    def decode(self, raw: bytes) -> McpxMessage:
        """Decode a message, or raise an error that names the fault in its bytes."""

    def receive(self, outlet: Outlet, *messages: bytes | McpxMessage) -> None:
        """Messages came on a connection."""

    def refuse(self, outlet: Outlet, message: bytes | McpxMessage, error: e.FolkmootError) -> None:
        """Something before the room refused a message."""

    def left(self, outlet: Outlet) -> None:
        """A connection ended; what it said before still counts."""

    async def prepare(self, account: str) -> None:
        """Read what must be known of someone before they come in or say something."""

    async def post(
        self, principal: Principal, role: Role, message: bytes | McpxMessage
    ) -> list[Effect]:
        """A message from someone who need not be connected; a refusal is raised.

        Answers, once it is stored and delivered, what came of it: the message first.
        """

    async def list_tools(
        self, principal: Principal, role: Role, to: str, cursor: str | None, seconds: float
    ) -> dict[str, Any] | None:
        """The answer of a participant that is asked for its tools; None where none came.

        Nobody else sees it, and nothing of it is stored.
        """

    async def flushed(self) -> None:
        """Wait until all that came before is carried out."""

    async def wait(self, after: int, seconds: float) -> None:
        """Wait until there is something after a `seq`, for so long at most."""

    async def read(
        self, after: int | None, before: int | None, limit: int, *, fold: bool = False
    ) -> MessagePage:
        """The first messages after a `seq`, or the last ones before one."""

    async def message(self, seq: int) -> bytes | None:
        """The message with this `seq`, if the history still has it."""

    async def participants(self) -> list[dict[str, Any]]:
        """All participants as others see them.

        Whether they offer tools is unknown (None) of those who are on a visit.
        """

    async def rights(self) -> tuple[dict[str, list[Any]], list[Grant]]:
        """Each role's rights, and the valid grants."""

    async def proposals(self) -> list[Proposal]:
        """The open proposals and the latest closed ones, the latest first."""

    async def waiting(self, principal: Principal, role: Role) -> WaitingItems:
        """The open requests and proposals that wait for someone."""

    async def request(self, id_: str) -> OpenRequest | None:
        """The open request with this id."""

    async def apply_guest_grants(self, principal: Principal, guest: Guest) -> None:
        """A guest comes for the first time: let it hold what its inviter promised."""

    def set_backends(self) -> None:
        """Make the room's backends participants, as far as the hub has them."""

    def unban(self, account: str) -> None:
        """Someone who was put out has been invited again."""

    def rename(self, principal: Principal) -> None:
        """Someone's name changed."""

    def remove(self, account: str, code: CloseCode) -> None:
        """Put someone out."""
