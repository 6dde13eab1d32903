"""Rooms for assistants without a WebSocket: finding, making, joining and leaving them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.operations.components import policy_change
from folkmoot.operations.declare import Topic, get, post
from folkmoot.operations.limits import MAX_PATTERNS
from folkmoot.operations.rooms.messages import RoomName, given
from folkmoot.operations.rooms.settings import (
    Backends,
    Capabilities,
    Grants,
    PageCursor,
)
from folkmoot.operations.row import Absent, Cursor, PageLimit, describe, view_of
from folkmoot.operations.schema import schema_of_type
from folkmoot.rooms.limits import MAX_BACKENDS
from folkmoot.rooms.model import ROOM_PATTERN, Access, RoomPage, RoomView, ref

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


POLICY: Final = {
    "properties": {
        name: {**it, "type": it["type"][0]} for name, it in policy_change()["properties"].items()
    },
    "required": [],
    "additionalProperties": False,
}


class RoomCreated(RoomView, frozen=True, kw_only=True):
    """A room that was made."""

    message: str


@rooms.adds(
    "room/create",
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
    ),
    document={
        "properties": {
            "name": {"type": "string", "pattern": ROOM_PATTERN, "description": "Its name."},
            "capabilities": schema_of_type(Capabilities),
            "grants": schema_of_type(Grants),
            "policy": {"anyOf": [ref("PolicyChange"), {"type": "null"}]},
            "backends": schema_of_type(Backends),
        }
    },
    commands=("room create",),
)
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
        list[Any],
        describe(
            "What every member may do here, as kind patterns such as chat.* or "
            "mcp.request.tools/call:search. If omitted, members may chat and propose.",
            max_length=MAX_PATTERNS,
            schema={"items": {"type": "string"}},
        ),
    ]
    | None = None,
    grants: Annotated[
        dict[str, Any],
        describe(
            "What single people may do in addition: handles, each with a list of kind patterns. "
            "They are invited too.",
            schema={"additionalProperties": {"type": "array", "items": {"type": "string"}}},
        ),
    ]
    | None = None,
    policy: Annotated[
        dict[str, Any],
        describe("Rules of the room, where they differ from the hub's defaults", schema=POLICY),
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
        policy=policy,
        backends=backends,
    )
    view = await call.services.rooms.create(call.visitor, read_spec(wish))
    return view_of(RoomCreated, view, message="Room created. You own it. Enter it with room_join.")


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
