"""RoomPort: a room as the rest of the hub uses it, wherever it lives.

`Rooms` and the transports reach a room only by this port, so a room may run in this process or on
another node. Nothing here waits for the room while it is called synchronously: what such a call
brings about comes to the outlets. Whoever owns a room (`LiveRoom`) can also change and trim it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from folkmoot.core.capability import Rights
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors import FolkmootError
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal
from folkmoot.rooms.machine import Effect, Grant, Proposal, Role
from folkmoot.rooms.machine.requests import OpenRequest, Standing
from folkmoot.rooms.model import Guest, MessagePage, RoomId, Visitor
from folkmoot.rooms.ports import Outlet


class RoomStatus(NamedTuple):
    """How far a room is, as far as is known here."""

    epoch: str
    participants: int
    """How many are here; backends, which always are, do not count."""
    first_seq: int
    oldest_seq: int
    last_seq: int
    """The `seq` of the last message that everyone got."""


class Waiting(NamedTuple):
    """What waits for someone in a room."""

    requests: list[tuple[OpenRequest, Standing]]
    """What they were asked and have not answered."""
    proposals: list[Proposal]
    """What they may decide on."""
    rights: Rights
    """What they hold."""


class RoomPort(Protocol):
    """One room in use. What is listed is shown once all of it is stored."""

    @property
    def room_id(self) -> RoomId:
        """The room's id."""
        ...

    @property
    def name(self) -> str:
        """The room's name."""
        ...

    @property
    def durable(self) -> bool:
        """Whether its messages are stored."""
        ...

    @property
    def status(self) -> RoomStatus:
        """How far the room is."""
        ...

    @property
    def outlets(self) -> Mapping[Outlet, Visitor]:
        """The connections of this process, and who is on each."""
        ...

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
        credential: str | None = None,
    ) -> None:
        """Let someone in on a connection; an error, or the close of the outlet, says why not."""
        ...

    def decode(self, raw: bytes) -> McpxMessage:
        """A message as the room reads it, or an error that says what is wrong with its bytes."""
        ...

    def receive(self, outlet: Outlet, *messages: bytes | McpxMessage) -> None:
        """Messages came on a connection."""
        ...

    def refuse(self, outlet: Outlet, message: bytes | McpxMessage, error: FolkmootError) -> None:
        """Something before the room refused a message."""
        ...

    def left(self, outlet: Outlet) -> None:
        """A connection ended; what it said before still counts."""
        ...

    async def prepare(self, account: str) -> None:
        """Read what must be known of someone before they come in or say something."""
        ...

    async def post(
        self, principal: Principal, role: Role, message: bytes | McpxMessage
    ) -> list[Effect]:
        """A message from someone who need not be connected; a refusal is raised.

        Answers, once it is stored and delivered, what came of it: the message first.
        """
        ...

    async def settled(self) -> None:
        """Wait until all that came before is carried out."""
        ...

    async def wait(self, after: int, seconds: float) -> None:
        """Wait until there is something after a `seq`, for so long at most."""
        ...

    async def read(self, after: int | None, before: int | None, limit: int) -> MessagePage:
        """The first messages after a `seq`, or the last ones before one."""
        ...

    async def message(self, seq: int) -> bytes | None:
        """The message with a `seq`, as long as the history has it."""
        ...

    async def participants(self) -> list[dict[str, Any]]:
        """Everyone who is here, as others are told of them, and whether they offer tools now."""
        ...

    async def rights(self) -> tuple[dict[str, list[Any]], list[Grant]]:
        """What each role holds, and the grants that hold."""
        ...

    async def proposals(self) -> list[Proposal]:
        """The open proposals and the latest closed ones, the latest first."""
        ...

    async def waiting(self, principal: Principal, role: Role) -> Waiting:
        """What waits for someone."""
        ...

    async def request(self, id_: str) -> OpenRequest | None:
        """The open request with this id."""
        ...

    async def endow(self, principal: Principal, guest: Guest) -> None:
        """A guest comes for the first time: let it hold what its inviter promised."""
        ...

    def seat(self) -> None:
        """Let those backends of the room be here that the hub has."""
        ...

    def welcome_back(self, account: str) -> None:
        """Someone who was put out has been invited again."""
        ...

    def rename(self, principal: Principal) -> None:
        """Someone who may be here is called something else now."""
        ...

    def remove(self, account: str, code: CloseCode) -> None:
        """Put someone out who may be here."""
        ...
