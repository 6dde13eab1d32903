"""What is asked of a room on another node, and answered: each call with its types, as bytes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, Source
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.policy import Principal
from folkmoot.rooms.machine import Append, Effect, Grant, Invite, Proposal, Role
from folkmoot.rooms.machine.requests import OpenRequest, Standing
from folkmoot.rooms.model import Fold, Guest, MessagePage, Visitor
from folkmoot.rooms.ports import RoomPort, RoomStatus, WaitingItems
from folkmoot.rooms.spec import RoomPatch

logger = logging.getLogger("folkmoot.rooms")


class JoinBody(Struct, frozen=True, gc=False):
    """Who comes on a connection of another node, and how."""

    visitor: Visitor
    role: Role
    conn: str | None
    epoch: str | None
    serve: bool
    credential: str | None
    linger: bool = False


class Posted(Struct, frozen=True, gc=False):
    """What came of a message that was posted."""

    messages: list[Append]
    invite: tuple[str, Principal, str | None, str | None, tuple[Source, ...]] | None = None
    """An invitation that was asked for, all of it but a connection: there is none."""

    @classmethod
    def of(cls, effects: list[Effect]) -> Posted:
        """The part of it that concerns whoever posted."""
        invites = [msgspec.structs.astuple(one)[1:] for one in effects if type(one) is Invite]
        messages = [one for one in effects if type(one) is Append]
        return cls(messages, invites[0] if invites else None)

    @property
    def effects(self) -> list[Effect]:
        """The same as effects of the room."""
        invites = () if self.invite is None else (Invite(None, *self.invite),)
        return [*self.messages, *invites]


class PageRead(Struct, frozen=True, gc=False):
    """A page of a history; bytes, since they are JSON and this is not."""

    messages: list[bytes]
    first_seq: int
    last_seq: int
    oldest_seq: int | UnsetType = UNSET
    folded: list[Fold] | UnsetType = UNSET
    from_seq: int | UnsetType = UNSET
    through_seq: int | UnsetType = UNSET

    @classmethod
    def of(cls, page: MessagePage) -> PageRead:
        """A page as it travels."""
        messages, *more = msgspec.structs.astuple(page)
        return cls([bytes(one) for one in messages], *more)

    @property
    def page(self) -> MessagePage:
        """The page as it is shown."""
        messages, *more = msgspec.structs.astuple(self)
        return MessagePage([Raw(one) for one in messages], *more)


class WaitingRead(Struct, frozen=True, gc=False):
    """What waits for someone, with their rights as they are written."""

    requests: list[tuple[OpenRequest, Standing]]
    proposals: list[Proposal]
    rights: list[Source]

    @classmethod
    def of(cls, found: WaitingItems) -> WaitingRead:
        """The items as they travel."""
        held = [one.source for one in found.rights.capabilities]
        return cls(found.requests, found.proposals, held)

    @property
    def items(self) -> WaitingItems:
        """The items as they are used."""
        return WaitingItems(self.requests, self.proposals, Rights(self.rights))


async def _post(room: RoomPort, principal: Principal, role: Role, raw: bytes) -> Posted:
    await room.prepare(principal.account_id)
    return Posted.of(await room.post(principal, role, raw))


async def _read(
    room: RoomPort,
    after: int | None,
    before: int | None,
    limit: int,
    fold: bool,  # noqa: FBT001
) -> PageRead:
    return PageRead.of(await room.read(after, before, limit, fold=fold))


async def _waiting(room: RoomPort, principal: Principal, role: Role) -> WaitingRead:
    return WaitingRead.of(await room.waiting(principal, role))


async def _status(room: RoomPort) -> RoomStatus:
    return room.status


async def _unban(room: RoomPort, account: str) -> None:
    room.unban(account)


async def _remove(room: RoomPort, account: str, code: int) -> None:
    room.remove(account, CloseCode(code))


async def _touch(room: RoomPort, account: str) -> None:
    room.visits.touch(account)


class RemoteCall(NamedTuple):
    """A call: its arguments, its result, and how a room answers it."""

    arguments: Any
    result: Any
    answer: Callable[..., Awaitable[Any]]


CALLS: Final[dict[str, RemoteCall]] = {
    "status": RemoteCall(tuple[()], RoomStatus, _status),
    "post": RemoteCall(tuple[Principal, Role, bytes], Posted, _post),
    "tools": RemoteCall(
        tuple[Principal, Role, str, str | None, float],
        dict[str, Any] | None,
        lambda room, *asked: room.list_tools(*asked),
    ),
    "flushed": RemoteCall(tuple[()], None, lambda room: room.flushed()),
    "read": RemoteCall(tuple[int | None, int | None, int, bool], PageRead, _read),
    "message": RemoteCall(tuple[int], bytes | None, lambda room, seq: room.message(seq)),
    "participants": RemoteCall(tuple[()], list[dict[str, Any]], lambda room: room.participants()),
    "rights": RemoteCall(
        tuple[()], tuple[dict[str, list[Any]], list[Grant]], lambda room: room.rights()
    ),
    "proposals": RemoteCall(tuple[()], list[Proposal], lambda room: room.proposals()),
    "waiting": RemoteCall(tuple[Principal, Role], WaitingRead, _waiting),
    "request": RemoteCall(tuple[str], OpenRequest | None, lambda room, id_: room.request(id_)),
    "apply_guest_grants": RemoteCall(
        tuple[Principal, Guest], None, lambda room, who, guest: room.apply_guest_grants(who, guest)
    ),
    "visit": RemoteCall(
        tuple[Visitor, Role], None, lambda room, visitor, role: room.visits.begin(visitor, role)
    ),
    "touch": RemoteCall(tuple[str], None, _touch),
    "depart": RemoteCall(tuple[str], None, lambda room, account: room.visits.end(account)),
    "unban": RemoteCall(tuple[str], None, _unban),
    "remove": RemoteCall(tuple[str, int], None, _remove),
}
"""Every call of a room's port that another node may make."""

LONG_CALLS: Final = frozenset(("read", "message", "tools", "participants", "proposals", "waiting"))
"""Those whose answers may be long."""
CHANGE: Final = "change"
"""The call that changes a room's settings, which is more than its port does."""
ChangeRoom: TypeAlias = Callable[[Visitor, str, RoomPatch], Awaitable[Any]]


class WireError(Struct, frozen=True, gc=False):
    """An error as it travels: what it is and what it says."""

    code: str
    message: str
    data: dict[str, Any]

    @classmethod
    def of(cls, error: e.FolkmootError) -> WireError:
        """An error as it travels."""
        return cls(error.code, error.message, error.data)

    @property
    def error(self) -> e.FolkmootError:
        """The same error here."""
        error_type = e.ERRORS.get(self.code, e.RoomUnavailable)
        error = error_type.__new__(error_type)
        e.FolkmootError.__init__(error, self.message, **self.data)
        return error


class CallBody(Struct, frozen=True, gc=False, array_like=True):
    """A call as it travels."""

    name: str
    arguments: bytes


class AnswerBody(Struct, frozen=True, gc=False, array_like=True):
    """An answer as it travels."""

    result: bytes
    error: WireError | None = None


class RefusedMessage(Struct, frozen=True, gc=False, array_like=True, tag="refuse"):
    """That something before the room refused a message of a connection."""

    connection: int
    message: bytes
    error: WireError


encode: Final = msgspec.msgpack.encode


def encode_refusal(connection: int, message: bytes, error: e.FolkmootError) -> bytes:
    return encode(RefusedMessage(connection, message, WireError.of(error)))


def read_refusal(body: bytes) -> RefusedMessage | None:
    """The refusal in what was asked, if it is one."""
    try:
        return msgspec.msgpack.decode(body, type=RefusedMessage)
    except msgspec.DecodeError:
        return None


def encode_call(name: str, *arguments: Any) -> bytes:
    return encode(CallBody(name, encode(arguments)))


def read_call(body: bytes) -> CallBody:
    """The call in what was asked; one without a name if it is none."""
    try:
        return msgspec.msgpack.decode(body, type=CallBody)
    except msgspec.DecodeError:
        return CallBody("", b"")


async def answer_call(room: RoomPort, change: ChangeRoom, asked: CallBody) -> bytes:
    """Do what a call asks of a room here, and answer as bytes; errors are part of the answer."""

    async def change_settings(room: RoomPort, visitor: Visitor, patch: RoomPatch) -> None:
        await change(visitor, room.name, patch)

    try:
        changing = RemoteCall(tuple[Visitor, RoomPatch], None, change_settings)
        call = changing if asked.name == CHANGE else CALLS[asked.name]
        arguments = msgspec.msgpack.decode(asked.arguments, type=call.arguments)
    except (msgspec.DecodeError, KeyError):
        # A node of another version.
        refused = e.RoomUnavailable("The node of the room does not know what was asked of it.")
        return encode(AnswerBody(b"", WireError.of(refused)))
    try:
        try:
            return encode(AnswerBody(encode(await call.answer(room, *arguments))))
        except e.FolkmootError as error:
            return encode(AnswerBody(b"", WireError.of(error)))
    except Exception:
        logger.exception("a call of another node failed", extra={"call": asked.name})
        return encode_failure()


def encode_failure() -> bytes:
    """The answer to a call that failed here, as bytes."""
    failed = e.InternalError("The node of the room failed to answer; its log says why.")
    return encode(AnswerBody(b"", WireError.of(failed)))


def read_answer(name: str, body: bytes) -> Any:
    """The result of a call, or its error."""
    try:
        answer = msgspec.msgpack.decode(body, type=AnswerBody)
        if answer.error is None:
            result = None if name == CHANGE else CALLS[name].result
            return msgspec.msgpack.decode(answer.result, type=result)
    except msgspec.DecodeError:
        raise e.InternalError("The node of the room gave an answer that cannot be read.") from None
    raise answer.error.error
