"""Rooms for assistants without a WebSocket: finding, making, joining and leaving them, inviting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.operations.invites import ROOM_INVITES
from folkmoot.operations.limits import MAX_PATTERNS
from folkmoot.operations.rooms import settings
from folkmoot.operations.rooms.calls import CALLS
from folkmoot.operations.rooms.messages import MESSAGES, RoomName
from folkmoot.operations.rooms.proposals import PROPOSALS
from folkmoot.operations.rooms.rights import RIGHTS
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Cursor,
    Operation,
    PageLimit,
    describe,
)
from folkmoot.rooms.limits import MAX_BACKENDS
from folkmoot.rooms.model import Access, RoomView

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


class ListRooms(Arguments, frozen=True, kw_only=True):
    """A page of the list."""

    limit: PageLimit = 100
    cursor: Cursor | None = None


class ListedRoom(Struct, frozen=True):
    """A room in a list."""

    name: str
    access: Access
    role: str | None
    owners: list[str]
    participants: int
    last_seq: int
    invited: bool | UnsetType = UNSET
    unread: int | UnsetType = UNSET
    """Present where the caller is in the room."""
    mentions: int | UnsetType = UNSET


class ListedRooms(Struct, frozen=True):
    """Some rooms, by name."""

    rooms: list[ListedRoom]
    next_cursor: str | None


async def list_rooms(call: Call[ListRooms]) -> ListedRooms:
    """The rooms the caller may know of."""
    given = call.arguments
    page = await call.services.rooms.list(call.visitor, limit=given.limit, cursor=given.cursor)
    names = ListedRoom.__struct_fields__
    rooms = [ListedRoom(*(getattr(view, name) for name in names)) for view in page.rooms]
    return ListedRooms(rooms, page.next_cursor)


class PolicyArguments(Arguments, frozen=True, kw_only=True):
    """The parts of a room's policy that are given; the room checks them."""

    quorum: (
        Annotated[int, describe("How many must reject a proposal to close it. Default 1.")] | None
    ) = None
    proposal_seconds: (
        Annotated[int, describe("Seconds a proposal stays open. 0 is the hub's default.")] | None
    ) = None
    loop_guard: (
        Annotated[
            int,
            describe(
                "How often agents may answer each other without a person before they are paused. "
                "Default 30; 0 for no limit."
            ),
        ]
        | None
    ) = None
    request_seconds: (
        Annotated[int, describe("Seconds a request may take. 0 is the hub's default.")] | None
    ) = None
    progress_seconds: (
        Annotated[
            int,
            describe(
                "Seconds a request may take while it reports progress. 0 is the hub's default."
            ),
        ]
        | None
    ) = None
    keep_messages: (
        Annotated[int, describe("How many messages are kept. 0 is the hub's default.")] | None
    ) = None
    keep_days: (
        Annotated[int, describe("Days a message is kept. 0 is the hub's default.")] | None
    ) = None


class Create(Arguments, frozen=True, kw_only=True):
    """A room to be made."""

    name: Annotated[
        str,
        describe(
            "Name of the room (1-64 lower-case letters, digits, dots, underscores and hyphens, "
            "beginning with a letter or a digit)"
        ),
    ]
    access: (
        Annotated[
            Literal["open", "invite", "private"],
            describe(
                "open: anyone can join; invite: anyone can see it, invited people can join; "
                "private: only invited people can see it. Defaults to open."
            ),
        ]
        | None
    ) = None
    durable: (
        Annotated[bool, describe("If false, the history is kept in memory only. Default true.")]
        | None
    ) = None
    capabilities: (
        Annotated[
            list[str],
            describe(
                "What every member may do here, as kind patterns such as chat.* or "
                "mcp.request.tools/call:search. If omitted, members may chat and propose.",
                max_length=MAX_PATTERNS,
            ),
        ]
        | None
    ) = None
    grants: (
        Annotated[
            dict[str, list[str]],
            describe(
                "What single people may do in addition: handles, each with a list of kind "
                "patterns. They are invited too."
            ),
        ]
        | None
    ) = None
    policy: (
        Annotated[
            PolicyArguments,
            describe("Rules of the room, where they differ from the hub's defaults"),
        ]
        | None
    ) = None
    backends: (
        Annotated[
            list[str],
            describe(
                "Tool servers of the hub that take part in the room, by namespace. You must be "
                "able to use some of each yourself.",
                max_length=MAX_BACKENDS,
            ),
        ]
        | None
    ) = None


class RoomCreated(RoomView, frozen=True, kw_only=True):
    """A room that was made."""

    message: str


async def create(call: Call[Create]) -> RoomCreated:
    """Make a room, whose owner the caller is."""
    from folkmoot.rooms.spec import read_spec

    spec = read_spec(given_members(call.arguments))
    view = await call.services.rooms.create(call.visitor, spec)
    return RoomCreated(
        *msgspec.structs.astuple(view),
        message="Room created. You own it. Enter it with room_join.",
    )


def given_members(given: Arguments) -> dict[str, Any]:
    """What was given, in plain values, without what was left out."""
    return {
        name: given_members(value) if isinstance(value, Arguments) else value
        for name, value in msgspec.structs.asdict(given).items()
        if value is not None
    }


class InRoom(Arguments, frozen=True, kw_only=True):
    """One room."""

    room: RoomName


class RoomJoined(RoomView, frozen=True, kw_only=True):
    """A room that the caller is in, and who else is."""

    you: str
    present: list[dict[str, Any]]
    message: str


async def join(call: Call[InRoom]) -> RoomJoined:
    """Come into a room; the caller is there until they leave or do nothing for long."""
    visitor, name = call.visitor, call.arguments.room
    view = await call.services.rooms.visit(visitor, name)
    present = await call.services.rooms.participants(visitor, name)
    return RoomJoined(
        *msgspec.structs.astuple(view),
        you=call.account.handle,
        present=present[:100],
        message="You are in the room. Read with room_read, talk with room_say.",
    )


class LeftRoom(Struct, frozen=True):
    """A room that the caller is no longer in."""

    room: str
    message: str


async def leave(call: Call[InRoom]) -> LeftRoom:
    name = call.arguments.room
    await call.services.rooms.depart(call.visitor, name)
    return LeftRoom(name, "You left the room.")


class InviteToRoom(Arguments, frozen=True, kw_only=True):
    """The handle to invite."""

    __exactly_one__ = ("handle", "guest")

    room: RoomName
    handle: (
        Annotated[str, describe("Handle of the user to invite. Mutually exclusive with guest.")]
        | None
    ) = None
    guest: (
        Annotated[
            str,
            describe(
                "The name that a guest without an account will have in the room. Mutually "
                "exclusive with handle."
            ),
        ]
        | None
    ) = None
    capabilities: (
        Annotated[
            list[str],
            describe(
                "What the guest may do beside chatting, as kind patterns such as mcp.proposal.*; "
                "you must hold them yourself. For a guest only.",
                max_length=MAX_PATTERNS,
            ),
        ]
        | None
    ) = None


class InvitedToRoom(Struct, frozen=True, kw_only=True):
    """Someone who may come in; a guest's token is in this answer and nowhere else."""

    room: str
    handle: str | UnsetType | None = UNSET
    guest: str | UnsetType | None = UNSET
    token: str | UnsetType = UNSET
    expires_at: str | UnsetType | None = UNSET
    message: str


async def invite(call: Call[InviteToRoom]) -> InvitedToRoom:
    """Ask someone in."""
    given = call.arguments
    if (given.handle is None) is (given.guest is None):
        raise e.ArgumentInvalid("Give either handle or guest.", field="handle")
    if given.handle is not None and given.capabilities:
        raise e.ArgumentInvalid("capabilities are for a guest.", field="capabilities")
    made = await call.services.rooms.invite(
        call.visitor,
        given.room,
        handle=given.handle,
        guest=given.guest,
        capabilities=given.capabilities or (),
    )
    if made.token is None:
        message = f"@{made.handle} has been invited."
        return InvitedToRoom(room=made.room, handle=made.handle, message=message)
    return InvitedToRoom(
        room=made.room,
        guest=made.guest,
        token=made.token,
        expires_at=made.expires_at,
        message="Give this token only to the guest: the first person to use it becomes the "
        "guest. It cannot be shown again.",
    )


ROOMS = (
    Operation(
        name="room/list",
        description="List the rooms you can see, by name: the open ones, those you are in (role), "
        "and those you need an invitation for. A room is a shared stream where people, agents and "
        "tools talk.",
        handler=list_rooms,
        scope="rooms",
        who="guest",
        reaches_others=True,
        routes=(settings.LIST,),
        commands=("room list",),
    ),
    Operation(
        name="room/create",
        description="Create a room that you own. By default anyone with an account can join "
        "it, members may chat and propose, and the history is kept.",
        handler=create,
        scope="rooms",
        routes=(settings.CREATE,),
        commands=("room create",),
    ),
    Operation(
        name="room/join",
        description="Enter a room, so that the others see you there. Returns who is present, "
        "what members may do, and last_seq, from which room_read can continue. You "
        "count as present until you leave or do nothing for some minutes; joining "
        "again does no harm.",
        handler=join,
        scope="rooms",
        reaches_others=True,
        routes=Absent("A program that stays in a room opens a WebSocket."),
        commands=("room join",),
    ),
    Operation(
        name="room/leave",
        description="Leave a room. Unless it is open or yours, you need a new invitation to come "
        "back.",
        handler=leave,
        scope="rooms",
        reaches_others=True,
        routes=Absent("A program that stays in a room closes its WebSocket."),
        commands=Absent("`room join` leaves when it ends."),
    ),
    *MESSAGES,
    *CALLS,
    *PROPOSALS,
    Operation(
        name="room/invite",
        description="Invite someone into a room: a user by handle, or someone without an account "
        "as a guest, for whom you get a token that works once. Give the token to that person only.",
        handler=invite,
        secret=("token",),
        scope="rooms.manage",
        who="guest",
        reaches_others=True,
        routes=(settings.INVITE,),
        commands=("room invite",),
    ),
    *settings.SETTINGS,
    *RIGHTS,
    *ROOM_INVITES,
)
