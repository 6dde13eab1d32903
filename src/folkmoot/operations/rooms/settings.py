"""A room itself: show, change and delete it, its participants and guests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType, convert

from folkmoot.core import errors as e
from folkmoot.core.policy import PrincipalType
from folkmoot.operations.call import Bind, fit_on_page, make_cursor, read_cursor
from folkmoot.operations.declare import Topic, delete, get, patch, post
from folkmoot.operations.limits import MAX_CURSOR
from folkmoot.operations.rate_limits import by_address, when_not_invited
from folkmoot.operations.rooms.messages import RoomInPath, given
from folkmoot.operations.row import Absent, NoContent, OperationLimit, describe
from folkmoot.rooms.limits import MAX_BACKENDS, MAX_GRANTED, MAX_OWNERS, MAX_PATTERNS
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import NEXT_CURSOR, Access, AwayMember, RoomView, ref

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


PATH: Final = "/v1/rooms/{room}"
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
PageCursor = Annotated[
    str, describe("The `next_cursor` of the page before.", min_length=1, max_length=MAX_CURSOR)
]
shown = Topic(scope="rooms", who="guest")
managed = Topic(
    scope="rooms.manage",
    tool=Absent("What a room allows is for its owners to decide, not for a model."),
)


@shown.reads(
    "room/show",
    get(PATH, "getRoom", "Read a room's settings", answer="The room."),
    tool=Absent("`room/join` answers it, and `room/list` lists the rooms."),
    commands=("room show",),
)
async def show(call: Call, room: RoomInPath) -> RoomView:
    """Read a room's settings."""
    return await call.services.rooms.get(call.visitor, room)


@managed.changes(
    "room/change",
    patch(
        PATH,
        "changeRoom",
        "Change a room's settings",
        answer="The room.",
        example={"access": "open"},
    ),
    errors=(e.BackendUnknown, e.CapabilityError, e.TooManyRooms, e.UserNotFound),
    commands=("room change",),
)
async def change(
    call: Call,
    room: RoomInPath,
    *,
    access: Annotated[Access, ACCESS_SAYS] | UnsetType = UNSET,
    capabilities: Capabilities | UnsetType | None = UNSET,
    grants: Grants | UnsetType = UNSET,
    policy: Policy | UnsetType = UNSET,
    backends: Backends | UnsetType | None = UNSET,
    owners: Annotated[
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
    | UnsetType = UNSET,
) -> RoomView:
    """For owners. Settings that are left out stay as they are. `capabilities`, `grants`, `backends`
    and `owners` are replaced whole; of `policy`, each member that is given.
    """
    from folkmoot.rooms.spec import read_patch

    changed = given(
        UNSET,
        access=access,
        capabilities=capabilities,
        grants=grants,
        policy=policy,
        backends=backends,
        owners=owners,
    )
    return await call.services.rooms.change(call.visitor, room, read_patch(changed))


@managed.destroys(
    "room/delete",
    delete(
        PATH, "deleteRoom", "Delete a room and its history", status=204, answer="The room is gone."
    ),
    reaches_others=True,
    commands=("room delete",),
)
async def delete_room(call: Call, room: RoomInPath) -> NoContent:
    """For owners."""
    await call.services.rooms.delete(call.visitor, room)
    return NoContent()


class ParticipantView(Struct, frozen=True):
    """Someone who is here."""

    id: Annotated[str, "The handle, a guest's name, or a backend's namespace."]
    type: Annotated[
        str, describe("Who acts.", schema={"enum": [each.value for each in PrincipalType]})
    ]
    role: Annotated[
        str, describe("As what.", schema={"enum": [*(each.value for each in Role), "gateway"]})
    ]
    offers_tools: Annotated[
        bool | None,
        "Whether a connection of it joined with `serve=1`, or it is a backend; null for one that "
        "takes part through tools, and may answer by hand.",
    ]


class ParticipantPageView(Struct, frozen=True):
    """A page of the participants."""

    participants: Annotated[list[ParticipantView], "By id."]
    next_cursor: Annotated[str | None, NEXT_CURSOR]
    away: Annotated[
        list[AwayMember] | UnsetType,
        "Members and guests who are not here now, by id; on the first page. Of a room with more "
        "than 1,000 members, those among the first 1,000.",
    ] = UNSET


@shown.reads(
    "room/participants",
    get(
        PATH + "/participants",
        "listParticipants",
        "List who is here now, and who is away",
        answer="A page of participants, by name.",
    ),
    tool=Absent("`room/join` answers it."),
    commands=("room show",),
)
async def participants(
    call: Call,
    room: RoomInPath,
    *,
    limit: Annotated[int, describe("How many at most.", ge=1, le=1000)] = 100,
    cursor: PageCursor | None = None,
) -> ParticipantPageView:
    """List who is in a room now, and its members who are away."""
    rooms = call.services.rooms
    after = "" if cursor is None else read_cursor(cursor)
    everyone = await rooms.participants(call.visitor, room)
    following = sorted((one for one in everyone if one["id"] > after), key=lambda one: one["id"])
    page, more = fit_on_page(((one, 0) for one in following), limit)
    present = {one["id"] for one in everyone}
    return ParticipantPageView(
        convert(page, list[ParticipantView]),
        make_cursor(page[-1]["id"]) if more else None,
        await rooms.away(call.visitor, room, present) if cursor is None else UNSET,
    )


class GuestView(Struct, frozen=True):
    """A guest who may enter."""

    credential: Annotated[
        str | None,
        "The guest's token from now on, for this room only; null for a page of the hub, whose "
        "browser keeps it where no page reads it.",
    ]
    guest: Annotated[str, "The guest's name."]
    room: Annotated[str, "The room."]


@shown.adds(
    "room/enter_as_guest",
    post(
        PATH + "/guests",
        "exchangeInvitation",
        "Enter as a guest",
        status=201,
        answer="The credential.",
        example={"token": "gi_0123456789abcdef"},
    ),
    secret=("token", "credential"),
    scope="",
    who="anyone",
    limits=(GUESSED,),
    errors=(e.InvitationInvalid,),
    tool=Absent("Guests have no account, and tools need one."),
    commands=Absent("`room join --invitation` exchanges it and enters."),
)
async def enter_as_guest(
    call: Call,
    room: RoomInPath,
    token: Annotated[str, describe("The token of the invitation.", min_length=1, max_length=128)],
) -> GuestView:
    """Exchanges the token of an invitation, once, for a credential that is valid in this room only.
    It is used like any other token.
    """
    caller = call.caller
    if caller.binds and (caller.session is not None or caller.visitor is not None):
        # Before the invitation is used up: the cookie of the other session would be lost.
        raise e.RoomForbidden(SIGNED_IN)
    visitor, credential = await call.services.rooms.exchange(room, token)
    if caller.binds:
        call.bind = Bind("", "", otherwise=None, guest=credential)
        return GuestView(None, visitor.principal.name, room)
    return GuestView(credential, visitor.principal.name, room)
