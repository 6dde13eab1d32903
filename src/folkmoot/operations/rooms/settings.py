"""A room itself: create, show, change and delete it, its participants and guests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.core.policy import PrincipalType
from folkmoot.operations.call import Bind, fit_on_page, make_cursor, read_cursor
from folkmoot.operations.rate_limits import by_address, when_not_invited
from folkmoot.operations.rooms.history import PageCursor, RoomName
from folkmoot.operations.row import (
    Absent,
    Arguments,
    NoContent,
    Operation,
    OperationLimit,
    Route,
    describe,
)
from folkmoot.rooms.limits import MAX_BACKENDS, MAX_GRANTED, MAX_OWNERS, MAX_PATTERNS
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import (
    NEXT_CURSOR,
    ROOM_PATTERN,
    Access,
    AwayMember,
    Invitation,
    RoomPage,
    RoomView,
    ref,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


SIGNED_IN: Final = (
    "This browser is signed in already. Open the link in a private window, or sign out first."
)
GUESSED: Final = OperationLimit("guest", by_address, when_not_invited)
"""Guesses at the tokens of invitations."""

PATTERNS: Final[dict[str, Any]] = {"items": ref("Capability"), "maxItems": MAX_PATTERNS}
HANDLE: Final = "^@?[A-Za-z][A-Za-z0-9_]{2,19}$"

ACCESS_SAYS: Final = (
    "open: everyone with an account may enter. invite: everyone sees the room, and invited people "
    "may enter. private: only invited people can see it."
)
Capabilities = Annotated[
    list[Any],
    describe(
        "The capabilities of everyone but the owners; null is the default of their role.",
        schema=PATTERNS,
    ),
]
Grants = Annotated[
    dict[str, Any],
    describe(
        "Additional capabilities of single people, by handle. In a change, it replaces all grants.",
        schema={
            "maxProperties": MAX_GRANTED,
            "propertyNames": {"pattern": HANDLE},
            "additionalProperties": {"type": "array", **PATTERNS},
        },
    ),
]
Policy = Annotated[dict[str, Any], describe("The room's own policy.", schema=ref("PolicyChange"))]
Backends = Annotated[
    list[Any],
    describe(
        "The backends that take part, by namespace; replaces the present ones; null is none. You "
        "must be able to use some of each at the hub yourself.",
        schema={
            "items": {"type": "string", "pattern": "^[a-z][a-z0-9]{2,19}$"},
            "maxItems": MAX_BACKENDS,
            "uniqueItems": True,
        },
    ),
]


def given_settings(given: Arguments) -> dict[str, Any]:
    """What was given, null included; the room is not a setting."""
    members = msgspec.structs.asdict(given)
    return {name: it for name, it in members.items() if it is not UNSET and name != "room"}


class RoomsQuery(Arguments, frozen=True, kw_only=True):
    """A page of the list."""

    limit: Annotated[int, describe("How many at most.", ge=1, le=100)] = 100
    cursor: PageCursor | None = None


async def list_rooms(call: Call[RoomsQuery]) -> RoomPage:
    """The rooms the caller may know of."""
    given = call.arguments
    return await call.services.rooms.list(call.visitor, limit=given.limit, cursor=given.cursor)


class RoomSpec(Arguments, frozen=True, kw_only=True):
    """A room to be made."""

    name: Annotated[str, describe("The name of the new room.", schema={"pattern": ROOM_PATTERN})]
    access: Annotated[Access, describe(ACCESS_SAYS, schema={"default": "open"})] | UnsetType = UNSET
    capabilities: Capabilities | UnsetType | None = UNSET
    grants: Grants | UnsetType = UNSET
    policy: Policy | UnsetType = UNSET
    backends: Backends | UnsetType | None = UNSET
    durable: (
        Annotated[
            bool, describe("Whether its history is kept on the disk.", schema={"default": True})
        ]
        | UnsetType
    ) = UNSET


async def create(call: Call[RoomSpec]) -> RoomView:
    """A new room, whose owner the caller is."""
    from folkmoot.rooms.spec import read_spec

    return await call.services.rooms.create(call.visitor, read_spec(given_settings(call.arguments)))


class OneRoom(Arguments, frozen=True, kw_only=True):
    """One room."""

    room: RoomName


async def show(call: Call[OneRoom]) -> RoomView:
    return await call.services.rooms.get(call.visitor, call.arguments.room)


class RoomPatch(OneRoom, frozen=True, kw_only=True):
    """What is to change of a room."""

    access: Annotated[Access, describe(ACCESS_SAYS)] | UnsetType = UNSET
    capabilities: Capabilities | UnsetType | None = UNSET
    grants: Grants | UnsetType = UNSET
    policy: Policy | UnsetType = UNSET
    backends: Backends | UnsetType | None = UNSET
    owners: (
        Annotated[
            list[Any],
            describe(
                "The owners from then on, by handle, all of them members of the room. To leave "
                "yourself out hands the room over.",
                schema={
                    "items": {"type": "string", "pattern": HANDLE},
                    "minItems": 1,
                    "maxItems": MAX_OWNERS,
                },
            ),
        ]
        | UnsetType
    ) = UNSET


async def change(call: Call[RoomPatch]) -> RoomView:
    """Change a room, and return it."""
    from folkmoot.rooms.spec import read_patch

    given = call.arguments
    patch = read_patch(given_settings(given))
    return await call.services.rooms.change(call.visitor, given.room, patch)


async def delete(call: Call[OneRoom]) -> NoContent:
    """No more of a room."""
    await call.services.rooms.delete(call.visitor, call.arguments.room)
    return NoContent()


class Participants(OneRoom, frozen=True, kw_only=True):
    """A page of the participants."""

    limit: Annotated[int, describe("How many at most.", ge=1, le=1000)] = 100
    cursor: PageCursor | None = None


class ParticipantView(Struct, frozen=True):
    """Someone who is here."""

    id: Annotated[str, describe("The handle, a guest's name, or a backend's namespace.")]
    type: Annotated[
        str, describe("Who acts.", schema={"enum": [each.value for each in PrincipalType]})
    ]
    role: Annotated[
        str, describe("As what.", schema={"enum": [*(each.value for each in Role), "gateway"]})
    ]
    offers_tools: Annotated[
        bool | None,
        describe(
            "Whether a connection of it joined with `serve=1`, or it is a backend; null for one "
            "that takes part through tools, and may answer by hand."
        ),
    ]


class ParticipantPageView(Struct, frozen=True):
    """A page of the participants."""

    participants: Annotated[list[ParticipantView], describe("By id.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR]
    away: Annotated[
        list[AwayMember] | UnsetType,
        describe(
            "Members and guests who are not here now, by id; on the first page. Of a room with "
            "more than 1,000 members, those among the first 1,000."
        ),
    ] = UNSET


async def participants(call: Call[Participants]) -> dict[str, Any]:
    """The participants by name."""
    given = call.arguments
    after = "" if given.cursor is None else read_cursor(given.cursor)
    everyone = await call.services.rooms.participants(call.visitor, given.room)
    following = sorted((one for one in everyone if one["id"] > after), key=lambda one: one["id"])
    page, more = fit_on_page(((one, 0) for one in following), given.limit)
    told = {"participants": page, "next_cursor": make_cursor(page[-1]["id"]) if more else None}
    if given.cursor is None:
        present = {one["id"] for one in everyone}
        told["away"] = await call.services.rooms.away(call.visitor, given.room, present)
    return told


class InviteParticipant(OneRoom, frozen=True, kw_only=True):
    """Whom to invite."""

    __exactly_one__ = ("handle", "guest")
    __also__: ClassVar = {
        "description": "A handle, or a guest and perhaps its capabilities.",
        "dependentRequired": {"capabilities": ["guest"]},
    }

    handle: (
        Annotated[str, describe("Whom to invite, by handle.", min_length=1, max_length=64)]
        | UnsetType
    ) = UNSET
    guest: (
        Annotated[
            str,
            describe(
                "The name in the room of someone without an account.", min_length=1, max_length=64
            ),
        ]
        | UnsetType
    ) = UNSET
    capabilities: (
        Annotated[
            list[Any],
            describe(
                "What a guest holds from the start, beside what all guests do; you must hold it "
                "yourself.",
                schema=PATTERNS,
            ),
        ]
        | UnsetType
    ) = UNSET


async def invite(call: Call[InviteParticipant]) -> Invitation:
    """An invitation; the token of a guest is in this answer and nowhere else."""
    from folkmoot.rooms.spec import read_capabilities

    given = call.arguments
    wish = given_settings(given)
    if (given.handle is UNSET) is (given.guest is UNSET):
        raise e.ArgumentInvalid("Give either a handle or a guest.", field="handle")
    if given.capabilities is not UNSET:
        if given.guest is UNSET:
            raise e.ArgumentInvalid(
                "Only a guest's invitation has capabilities; use the room's grants for a handle.",
                field="capabilities",
            )
        wish["capabilities"] = read_capabilities("capabilities", given.capabilities)
    return await call.services.rooms.invite(call.visitor, given.room, **wish)


class GuestToken(OneRoom, frozen=True, kw_only=True):
    """The token of an invitation."""

    token: Annotated[str, describe("The token of the invitation.", min_length=1, max_length=128)]


class GuestView(Struct, frozen=True):
    """A guest who may enter."""

    credential: Annotated[
        str | None,
        describe(
            "The guest's token from now on, for this room only; null for a page of the hub, whose "
            "browser keeps it where no page reads it."
        ),
    ]
    guest: Annotated[str, describe("The guest's name.")]
    room: Annotated[str, describe("The room.")]


async def enter_as_guest(call: Call[GuestToken]) -> GuestView:
    """A guest's credential for the token of an invitation."""
    given, caller = call.arguments, call.caller
    if caller.binds and (caller.session is not None or caller.visitor is not None):
        # Before the invitation is used up: the cookie of the other session would be lost.
        raise e.RoomForbidden(SIGNED_IN)
    visitor, credential = await call.services.rooms.exchange(given.room, given.token)
    if caller.binds:
        call.bind = Bind("", "", otherwise=None, guest=credential)
        return GuestView(None, visitor.principal.name, given.room)
    return GuestView(credential, visitor.principal.name, given.room)


LIST: Final = Route(
    "GET",
    "/v1/rooms",
    id="listRooms",
    summary="List the rooms you can see",
    description="Open rooms, invite-only rooms, and private ones you are in.",
    answer="A page of rooms, by name.",
    handler=list_rooms,
)
CREATE: Final = Route(
    "POST",
    "/v1/rooms",
    id="createRoom",
    summary="Create a room",
    description="You own it, and have the capability `*` there.",
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
    handler=create,
)
INVITE: Final = Route(
    "POST",
    "/v1/rooms/{room}/invites",
    id="invite",
    summary="Invite someone",
    description="By handle, or someone without an account as a guest. It appears in the room as "
    "`room.invite`, and needs that capability; the guest's token is shown to you alone.",
    status=201,
    answer="The invitation.",
    example={"guest": "grace"},
    errors=(
        e.PayloadInvalid,
        e.CapabilityDenied,
        e.CapabilityError,
        e.ParticipantPaused,
        e.BlockedByInterceptor,
        e.NameRefused,
        e.TooManyOpen,
        e.UserNotFound,
    ),
    handler=invite,
)

SETTINGS: Final = (
    Operation(
        name="room/show",
        description="Read a room's settings.",
        handler=show,
        scope="rooms",
        who="guest",
        tool=Absent("`room/join` answers it, and `room/list` lists the rooms."),
        routes=(
            Route(
                "GET",
                "/v1/rooms/{room}",
                id="getRoom",
                summary="Read a room's settings",
                answer="The room.",
            ),
        ),
        commands=("room show",),
    ),
    Operation(
        name="room/change",
        description="For owners. Settings that are left out stay as they are. `capabilities`, "
        "`grants`, `backends` and `owners` are replaced whole; of `policy`, each member that is "
        "given.",
        handler=change,
        scope="rooms.manage",
        errors=(e.BackendUnknown, e.CapabilityError, e.TooManyRooms, e.UserNotFound),
        tool=Absent("What a room allows is for its owners to decide, not for a model."),
        routes=(
            Route(
                "PATCH",
                "/v1/rooms/{room}",
                id="changeRoom",
                summary="Change a room's settings",
                answer="The room.",
                example={"access": "open"},
                takes=RoomPatch,
            ),
        ),
        commands=("room change",),
    ),
    Operation(
        name="room/delete",
        description="For owners.",
        handler=delete,
        scope="rooms.manage",
        reaches_others=True,
        tool=Absent("What a room allows is for its owners to decide, not for a model."),
        routes=(
            Route(
                "DELETE",
                "/v1/rooms/{room}",
                id="deleteRoom",
                summary="Delete a room and its history",
                status=204,
                answer="The room is gone.",
            ),
        ),
        commands=("room delete",),
    ),
    Operation(
        name="room/participants",
        description="List who is in a room now, and its members who are away.",
        gives=ParticipantPageView,
        handler=participants,
        scope="rooms",
        who="guest",
        tool=Absent("`room/join` answers it."),
        routes=(
            Route(
                "GET",
                "/v1/rooms/{room}/participants",
                id="listParticipants",
                summary="List who is here now, and who is away",
                answer="A page of participants, by name.",
            ),
        ),
        commands=("room show",),
    ),
    Operation(
        name="room/enter_as_guest",
        description="Exchanges the token of an invitation, once, for a credential that is valid in "
        "this room only. It is used like any other token.",
        handler=enter_as_guest,
        secret=("token", "credential"),
        scope="",
        who="anyone",
        limits=(GUESSED,),
        errors=(e.InvitationInvalid,),
        tool=Absent("Guests have no account, and tools need one."),
        routes=(
            Route(
                "POST",
                "/v1/rooms/{room}/guests",
                id="exchangeInvitation",
                summary="Enter as a guest",
                status=201,
                answer="The credential.",
                example={"token": "gi_0123456789abcdef"},
                takes=GuestToken,
            ),
        ),
        commands=Absent("`room join --invitation` exchanges it and enters."),
    ),
)
