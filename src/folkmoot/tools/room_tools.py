"""Rooms for assistants without a WebSocket: finding, making, joining and leaving them, inviting."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from folkmoot.core.errors import ArgumentInvalid
from folkmoot.rooms import RoomView, read_spec, visitor_of
from folkmoot.rooms.backends import MOST_BACKENDS
from folkmoot.tools.model import Arguments, Call, Payload, Tool
from folkmoot.tools.people_tools import PageLimit
from folkmoot.tools.room_calls import CALL_TOOLS
from folkmoot.tools.room_proposals import PROPOSAL_TOOLS
from folkmoot.tools.room_schemas import MOST_PATTERNS, POLICY, ROOM, PolicyGiven
from folkmoot.tools.room_talk import TALK_TOOLS
from folkmoot.tools.schemas import (
    CURSOR,
    LIMIT,
    choice,
    lists,
    obj,
    one_of,
    switch,
    text,
    texts,
)

MOST_SHOWN = 100
"""How many of those who are here a newcomer is shown."""
LISTED = ("name", "access", "role", "owners", "participants", "last_seq")
"""What a list tells of each room."""


class ListRooms(Arguments, frozen=True, kw_only=True):
    """A page of the list."""

    limit: PageLimit = 100
    cursor: str | None = None


async def list_rooms(call: Call[ListRooms]) -> Payload:
    """The rooms the caller may know of."""
    given = call.arguments
    page = await call.services.rooms.list(
        visitor_of(call.account), limit=given.limit, cursor=given.cursor
    )
    rooms = [{name: getattr(view, name) for name in LISTED} for view in page.rooms]
    return {"rooms": rooms, "next_cursor": page.next_cursor}


class Create(Arguments, frozen=True, kw_only=True):
    """A room to be made."""

    name: str
    access: Literal["open", "invite", "private"] | None = None
    durable: bool | None = None
    capabilities: Annotated[list[str], Meta(max_length=MOST_PATTERNS)] | None = None
    grants: dict[str, list[str]] | None = None
    policy: PolicyGiven | None = None
    backends: Annotated[list[str], Meta(max_length=MOST_BACKENDS)] | None = None


async def create(call: Call[Create]) -> Payload:
    """Make a room, whose owner the caller is."""
    spec = read_spec(given_members(call.arguments))
    view = await call.services.rooms.create(visitor_of(call.account), spec)
    return {**shown(view), "message": "Room created. You own it. Enter it with room_join."}


def given_members(given: Arguments) -> dict[str, Any]:
    """What was given, in plain values, without what was left out."""
    return {
        name: given_members(value) if isinstance(value, Arguments) else value
        for name, value in msgspec.structs.asdict(given).items()
        if value is not None
    }


def shown(view: RoomView) -> dict[str, Any]:
    """A room as its members see it."""
    return {name: it for name, it in msgspec.structs.asdict(view).items() if it is not UNSET}


class Room(Arguments, frozen=True, kw_only=True):
    """One room."""

    room: str


async def join(call: Call[Room]) -> Payload:
    """Come into a room; the caller is there until they leave or do nothing for long."""
    visitor, name = visitor_of(call.account), call.arguments.room
    view = await call.services.rooms.visit(visitor, name)
    present = await call.services.rooms.participants(visitor, name)
    return {
        **shown(view),
        "you": call.account.handle,
        "present": present[:MOST_SHOWN],
        "message": "You are in the room. Read with room_read, talk with room_say.",
    }


async def leave(call: Call[Room]) -> Payload:
    """Leave a room."""
    name = call.arguments.room
    await call.services.rooms.depart(visitor_of(call.account), name)
    return {"room": name, "message": "You left the room."}


class Invite(Arguments, frozen=True, kw_only=True):
    """Whom to ask in."""

    room: str
    handle: str | None = None
    guest: str | None = None
    capabilities: Annotated[list[str], Meta(max_length=MOST_PATTERNS)] | None = None


async def invite(call: Call[Invite]) -> Payload:
    """Ask someone in; a guest's token is in this answer and nowhere else."""
    given = call.arguments
    if (given.handle is None) is (given.guest is None):
        raise ArgumentInvalid("Give either handle or guest.", field="handle")
    if given.handle is not None and given.capabilities:
        raise ArgumentInvalid("capabilities are for a guest.", field="capabilities")
    made = await call.services.rooms.invite(
        visitor_of(call.account),
        given.room,
        handle=given.handle,
        guest=given.guest,
        capabilities=given.capabilities or (),
    )
    if made.token is None:
        message = f"@{made.handle} may join the room now. Tell them, for instance with msg_send."
        return {"room": made.room, "handle": made.handle, "message": message}
    return {
        "room": made.room,
        "guest": made.guest,
        "token": made.token,
        "expires_at": made.expires_at,
        "message": "Give this token only to the guest: the first person to use it becomes the "
        "guest. It cannot be shown again.",
    }


ROOM_TOOLS = (
    Tool(
        name="room/list",
        description="List the rooms you can see, by name: the open ones, those you are in (role), "
        "and those you need an invitation for. A room is a shared stream where people, agents and "
        "tools talk.",
        schema=obj({"limit": LIMIT, "cursor": CURSOR}),
        arguments=ListRooms,
        handler=list_rooms,
        kind="reads",
        open_world=True,
    ),
    Tool(
        name="room/create",
        description="Create a room that you own. By default anyone with an account can join "
        "it, members may chat and propose, and the history is kept.",
        schema=obj(
            {
                "name": text(
                    "Name of the room (1-64 lower-case letters, digits, dots, underscores and "
                    "hyphens, beginning with a letter or a digit)"
                ),
                "access": choice(
                    "open",
                    "invite",
                    "private",
                    description="open: anyone can join; invite: anyone can see it, invited "
                    "people can join; private: only invited people can see it. "
                    "Defaults to open.",
                ),
                "durable": switch("If false, the history is kept in memory only. Default true."),
                "capabilities": texts(
                    "What every member may do here, as kind patterns such as chat.* or "
                    "mcp.request.tools/call:search. If omitted, members may chat and propose.",
                    most=MOST_PATTERNS,
                ),
                "grants": lists(
                    "What single people may do in addition: handles, each with a list of kind "
                    "patterns. They are invited too."
                ),
                "policy": POLICY,
                "backends": texts(
                    "Tool servers of the hub that take part in the room, by namespace. You must be "
                    "able to use some of each yourself.",
                    most=MOST_BACKENDS,
                ),
            },
            ("name",),
        ),
        arguments=Create,
        handler=create,
        kind="adds",
    ),
    Tool(
        name="room/join",
        description="Enter a room, so that the others see you there. Returns who is present, "
        "what members may do, and last_seq, from which room_read can continue. You "
        "count as present until you leave or do nothing for some minutes; joining "
        "again does no harm.",
        schema=obj({"room": ROOM}, ("room",)),
        arguments=Room,
        handler=join,
        open_world=True,
    ),
    Tool(
        name="room/leave",
        description="Leave a room. Unless it is open or yours, you need a new invitation to come "
        "back.",
        schema=obj({"room": ROOM}, ("room",)),
        arguments=Room,
        handler=leave,
        open_world=True,
    ),
    *TALK_TOOLS,
    *CALL_TOOLS,
    *PROPOSAL_TOOLS,
    Tool(
        name="room/invite",
        description="Invite someone into a room: a user by handle, or someone without an account "
        "as a guest, for whom you get a token that works once. Give the token to that person only.",
        schema=obj(
            {
                "room": ROOM,
                "handle": text("Handle of the user to invite. Mutually exclusive with guest."),
                "guest": text(
                    "The name that a guest without an account will have in the room. Mutually "
                    "exclusive with handle."
                ),
                "capabilities": texts(
                    "What the guest may do beside chatting, as kind patterns such as "
                    "mcp.proposal.*; you must hold them yourself. For a guest only.",
                    most=MOST_PATTERNS,
                ),
            },
            ("room",),
            **one_of("handle", "guest"),
        ),
        arguments=Invite,
        handler=invite,
        kind="adds",
        open_world=True,
    ),
)
