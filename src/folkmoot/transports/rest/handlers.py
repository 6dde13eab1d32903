"""What each operation does; the table says when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from folkmoot.core.errors import (
    ArgumentInvalid,
    FolkmootError,
    InvitationInvalid,
    QueryInvalid,
    RoomDoorError,
)
from folkmoot.operations.call import unless
from folkmoot.rooms import deciding
from folkmoot.rooms.guests import GUEST_LIMIT
from folkmoot.rooms.machine.wire import readable
from folkmoot.rooms.spec import read_capabilities, read_patch, read_spec
from folkmoot.transports.rest.model import BODY, Answered, Call
from folkmoot.transports.rest.paging import make_cursor, read_cursor, within, wrong_cursor
from folkmoot.transports.rest.reading import check_members
from folkmoot.transports.rest.schemas import SCHEMAS

if TYPE_CHECKING:
    from folkmoot.rooms.model import ProposalView


async def list_rooms(call: Call) -> Answered:
    """The rooms the caller may know of."""
    return Answered(await call.services.rooms.list(call.visitor, **call.query))


async def create_room(call: Call) -> Answered:
    """A new room, whose owner the caller is."""
    made = await call.services.rooms.create(call.visitor, read_spec(call.body))
    return Answered(made, {"location": f"/v1/rooms/{made.name}"})


async def get_room(call: Call) -> Answered:
    """One room."""
    return Answered(await call.services.rooms.get(call.visitor, call.room))


async def change_room(call: Call) -> Answered:
    """One room, set anew."""
    patch = read_patch(call.body)
    return Answered(await call.services.rooms.change(call.visitor, call.room, patch))


async def delete_room(call: Call) -> Answered:
    """No more of a room."""
    await call.services.rooms.delete(call.visitor, call.room)
    return Answered()


async def participants(call: Call) -> Answered:
    """Who is here, by name."""
    cursor = call.query.get("cursor")
    after = "" if cursor is None else read_cursor(cursor)
    everyone = await call.services.rooms.participants(call.visitor, call.room)
    following = sorted((one for one in everyone if one["id"] > after), key=lambda one: one["id"])
    page, more = within(((one, 0) for one in following), call.query["limit"])
    return Answered(
        {"participants": page, "next_cursor": make_cursor(page[-1]["id"]) if more else None}
    )


async def messages(call: Call) -> Answered:
    """What was said, in order."""
    rooms, query = call.services.rooms, call.query
    if query["wait"] and "before" in query:
        raise QueryInvalid("wait cannot be combined with before.")
    page = None
    if query["wait"]:
        page = await unless(call.leaving, rooms.messages(call.visitor, call.room, **query))
    if page is None:
        page = await rooms.messages(call.visitor, call.room, **{**query, "wait": 0})
    return Answered(page)


async def post_message(call: Call) -> Answered:
    """The message as everyone gets it."""
    try:
        stored = await call.services.rooms.post(call.visitor, call.room, call.raw, admitted=False)
    except RoomDoorError:
        raise
    except FolkmootError as error:
        # As `system.error` says it on a WebSocket.
        if error.data.get("attempted_kind") is None:
            error.data["attempted_kind"] = readable(call.raw, BODY)[1]
        raise
    return Answered(Raw(stored))


async def proposals(call: Call) -> Answered:
    """What was proposed, the latest first."""
    query = call.query
    found = await call.services.rooms.proposals(
        call.visitor,
        call.room,
        state=query.get("state"),
        before=_place(query.get("cursor")),
        limit=query["limit"] + 1,
    )
    page, more = within(((one, _size(one)) for one in found), query["limit"])
    return Answered(
        {"proposals": page, "next_cursor": make_cursor(str(page[-1].seq)) if more else None}
    )


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    place = read_cursor(cursor)
    if not place.isascii() or not place.isdigit():
        raise wrong_cursor()
    return int(place)


def _size(proposal: ProposalView) -> int:
    return 0 if proposal.message is UNSET else len(bytes(proposal.message))


async def proposal(call: Call) -> Answered:
    """One proposal."""
    return Answered(await deciding.find(call.services.rooms, call.visitor, call.room, call.id))


async def approve(call: Call) -> Answered:
    """What came of an approval, with the answer if it comes in time."""
    rooms, query = call.services.rooms, call.query
    outcome = await deciding.approve(rooms, call.visitor, call.room, call.id, to=query.get("to"))
    if query["wait"]:
        answer = deciding.answer_to(rooms, call.visitor, call.room, outcome, query["wait"])
        outcome = await unless(call.leaving, answer) or outcome
    return Answered(outcome)


async def reject(call: Call) -> Answered:
    """What came of a rejection."""
    reason = _members("Rejection", call)["reason"]
    return Answered(
        await deciding.reject(call.services.rooms, call.visitor, call.room, call.id, reason)
    )


async def waiting(call: Call) -> Answered:
    """What waits for the caller."""
    return Answered(await call.services.rooms.waiting(call.visitor, call.room, **call.query))


async def invite(call: Call) -> Answered:
    """An invitation; the token of a guest is in this answer and nowhere else."""
    wish = {name: value for name, value in call.body.items() if name != "capabilities"}
    check_members(SCHEMAS["Invite"], wish)
    if len(wish) != 1:
        raise ArgumentInvalid("Give either a handle or a guest.", field="handle")
    if "capabilities" in call.body:
        if "guest" not in wish:
            raise ArgumentInvalid(
                "Only a guest's invitation has capabilities; use the room's grants for a handle.",
                field="capabilities",
            )
        given = call.body["capabilities"]
        wish["capabilities"] = read_capabilities("capabilities", given)
    return Answered(await call.services.rooms.invite(call.visitor, call.room, **wish))


async def exchange(call: Call) -> Answered:
    """A guest's credential for the token of an invitation."""
    token = _members("GuestToken", call)["token"]
    with call.services.limits.guessing(GUEST_LIMIT, call.address, InvitationInvalid):
        visitor, credential = await call.services.rooms.exchange(call.room, token)
    return Answered({"credential": credential, "guest": visitor.principal.name, "room": call.room})


async def describe(call: Call) -> Answered:
    """The document of all this."""
    return Answered(call.services.document)


def _members(schema: str, call: Call) -> dict[str, Any]:
    body = call.body
    check_members(SCHEMAS[schema], body)
    return body
