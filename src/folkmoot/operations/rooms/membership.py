"""Rooms for assistants without a WebSocket: finding, making, joining and leaving them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from folkmoot.core import errors as e
from folkmoot.operations.declare import Topic, get, post
from folkmoot.operations.limits import MAX_PATTERNS
from folkmoot.operations.rooms.messages import RoomName, given
from folkmoot.operations.rooms.settings import (
    ACCESS_SAYS,
    Backends,
    Capabilities,
    Grants,
    PageCursor,
    Policy,
)
from folkmoot.operations.row import Absent, Arguments, Cursor, PageLimit, describe, view_of
from folkmoot.rooms.limits import MAX_BACKENDS
from folkmoot.rooms.model import ROOM_PATTERN, Access, RoomPage, RoomView

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


rooms = Topic(scope="rooms")


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


@rooms.reads("room/list", who="guest", reaches_others=True, commands=("room list",))
async def list_rooms(
    call: Call, *, limit: PageLimit = 100, cursor: Cursor | None = None
) -> ListedRooms:
    """List the rooms you can see, by name: the open ones, those you are in (role), and those you
    need an invitation for. A room is a shared stream where people, agents and tools talk.
    """
    page = await call.services.rooms.list(call.visitor, limit=limit, cursor=cursor)
    return ListedRooms([view_of(ListedRoom, it) for it in page.rooms], page.next_cursor)


@list_rooms.at(
    get(
        "/v1/rooms",
        "listRooms",
        "List the rooms you can see",
        "Open rooms, invite-only rooms, and private ones you are in.",
        answer="A page of rooms, by name.",
    )
)
async def list_whole(
    call: Call,
    *,
    limit: Annotated[int, describe("How many at most.", ge=1, le=100)] = 100,
    cursor: PageCursor | None = None,
) -> RoomPage:
    """The same with all that is shown of each room."""
    return await call.services.rooms.list(call.visitor, limit=limit, cursor=cursor)


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


class RoomCreated(RoomView, frozen=True, kw_only=True):
    """A room that was made."""

    message: str


@rooms.adds("room/create", commands=("room create",))
async def create(
    call: Call,
    name: Annotated[
        str,
        "Name of the room (1-64 lower-case letters, digits, dots, underscores and hyphens, "
        "beginning with a letter or a digit)",
    ],
    *,
    access: Annotated[
        Literal["open", "invite", "private"],
        "open: anyone can join; invite: anyone can see it, invited people can join; private: only "
        "invited people can see it. Defaults to open.",
    ]
    | None = None,
    durable: Annotated[bool, "If false, the history is kept in memory only. Default true."]
    | None = None,
    capabilities: Annotated[
        list[str],
        describe(
            "What every member may do here, as kind patterns such as chat.* or "
            "mcp.request.tools/call:search. If omitted, members may chat and propose.",
            max_length=MAX_PATTERNS,
        ),
    ]
    | None = None,
    grants: Annotated[
        dict[str, list[str]],
        "What single people may do in addition: handles, each with a list of kind patterns. They "
        "are invited too.",
    ]
    | None = None,
    policy: Annotated[
        PolicyArguments, "Rules of the room, where they differ from the hub's defaults"
    ]
    | None = None,
    backends: Annotated[
        list[str],
        describe(
            "Tool servers of the hub that take part in the room, by namespace. You must be able to "
            "use some of each yourself.",
            max_length=MAX_BACKENDS,
        ),
    ]
    | None = None,
) -> RoomCreated:
    """Create a room that you own. By default anyone with an account can join it, members may chat
    and propose, and the history is kept.
    """
    from folkmoot.rooms.spec import read_spec

    wish = given(
        None,
        name=name,
        access=access,
        durable=durable,
        capabilities=capabilities,
        grants=grants,
        policy=None if policy is None else given(None, **asdict(policy)),
        backends=backends,
    )
    view = await call.services.rooms.create(call.visitor, read_spec(wish))
    return view_of(RoomCreated, view, message="Room created. You own it. Enter it with room_join.")


@create.at(
    post(
        "/v1/rooms",
        "createRoom",
        "Create a room",
        "You own it, and have the capability `*` there.",
        status=201,
        answer="The room.",
        location="/v1/rooms/{name}",
        example={"name": "planning", "access": "invite"},
        errors=(
            e.BackendUnknown,
            e.CapabilityError,
            e.RoomNameInvalid,
            e.RoomNameTaken,
            e.TooManyRooms,
            e.UserNotFound,
        ),
    )
)
async def create_whole(
    call: Call,
    name: Annotated[str, describe("The name of the new room.", schema={"pattern": ROOM_PATTERN})],
    *,
    access: Annotated[Access, describe(ACCESS_SAYS, schema={"default": "open"})]
    | UnsetType = UNSET,
    capabilities: Capabilities | UnsetType | None = UNSET,
    grants: Grants | UnsetType = UNSET,
    policy: Policy | UnsetType = UNSET,
    backends: Backends | UnsetType | None = UNSET,
    durable: Annotated[
        bool, describe("Whether its history is kept on the disk.", schema={"default": True})
    ]
    | UnsetType = UNSET,
) -> RoomView:
    """The same with all that a room can be, such as capabilities with a constraint."""
    from folkmoot.rooms.spec import read_spec

    wish = given(
        UNSET,
        name=name,
        access=access,
        capabilities=capabilities,
        grants=grants,
        policy=policy,
        backends=backends,
        durable=durable,
    )
    return await call.services.rooms.create(call.visitor, read_spec(wish))


class RoomJoined(RoomView, frozen=True, kw_only=True):
    """A room that the caller is in, and who else is."""

    you: str
    present: list[dict[str, Any]]
    message: str


@rooms.changes(
    "room/join",
    Absent("A program that stays in a room opens a WebSocket."),
    reaches_others=True,
    commands=("room join",),
)
async def join(call: Call, room: RoomName) -> RoomJoined:
    """Enter a room, so that the others see you there. Returns who is present, what members may do,
    and last_seq, from which room_read can continue. You count as present until you leave or do
    nothing for some minutes; joining again does no harm.
    """
    view = await call.services.rooms.visit(call.visitor, room)
    present = await call.services.rooms.participants(call.visitor, room)
    return view_of(
        RoomJoined,
        view,
        you=call.account.handle,
        present=present[:100],
        message="You are in the room. Read with room_read, talk with room_say.",
    )


class LeftRoom(Struct, frozen=True):
    """A room that the caller is no longer in."""

    room: str
    message: str


@rooms.changes(
    "room/leave",
    Absent("A program that stays in a room closes its WebSocket."),
    reaches_others=True,
    commands=Absent("`room join` leaves when it ends."),
)
async def leave(call: Call, room: RoomName) -> LeftRoom:
    """Leave a room. Unless it is open or yours, you need a new invitation to come back."""
    await call.services.rooms.depart(call.visitor, room)
    return LeftRoom(room, "You left the room.")
