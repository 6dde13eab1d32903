"""Tools of participants: listing them, calling them, and answering a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.call import wait_unless_left
from folkmoot.operations.declare import Topic, get
from folkmoot.operations.limits import (
    MAX_READ_SECONDS,
    MAX_ROOM_TOOL_NAME,
    MAX_ROOM_TOOLS_BYTES,
    ROOM_TOOLS_SECONDS,
)
from folkmoot.operations.rooms.messages import RoomName
from folkmoot.operations.rooms.proposals import propose
from folkmoot.operations.row import Absent, describe
from folkmoot.operations.servers import ToolProgress, progress_of

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.rooms import Requester


ANSWER_FAILED = -32000
"""The JSON-RPC code of an answer that says in words why it failed."""

ROOM_ROUTE: Final = Absent("`room/post` sends any message of a room.")
calls = Topic(scope="rooms")


class OfferedTools(Struct, frozen=True, kw_only=True):
    """The tools of participants; `to` names whose each one is."""

    room: str
    tools: list[dict[str, Any]]
    unanswered: list[str] | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    not_asked: int | UnsetType = UNSET


@calls.reads(
    "room/tools",
    get(
        "/v1/rooms/{room}/tools",
        "listRoomTools",
        "List the tools of participants",
        "Everyone who serves tools is asked; the room's history has nothing of it.",
        answer="The tools, each with whose it is.",
    ),
    who="guest",
    reaches_others=True,
    others_words=("tools",),
    waits="wait",
    commands=("room tools",),
)
async def tools(
    call: Call,
    room: RoomName,
    *,
    to: Annotated[
        str,
        "Only the tools of this participant. If omitted, those of everyone who is connected to the "
        "room to serve tools, such as agents and servers.",
    ]
    | None = None,
    wait: Annotated[
        int,
        describe(
            "Seconds to wait for the participants to answer. Default 5, max 55.",
            ge=0,
            le=MAX_READ_SECONDS,
        ),
    ] = ROOM_TOOLS_SECONDS,
) -> OfferedTools:
    """List the tools that the participants of a room offer. Each says in to whose it is; call it
    with room_call. Participants that do not answer in time are named in unanswered.
    """
    offers = await wait_unless_left(call.caller, requester(call, room).tools(to, wait))
    if offers is None:
        return OfferedTools(room=room, tools=[])
    found: list[dict[str, Any]] = []
    size = 0
    for offer in offers.tools:
        size += len(msgspec.json.encode(offer.definition))
        if found and size > MAX_ROOM_TOOLS_BYTES:
            break
        found.append({"to": offer.by, **offer.definition})
    return OfferedTools(
        room=room,
        tools=found,
        unanswered=offers.unanswered,
        left_out=len(offers.tools) - len(found),
        not_asked=offers.not_asked,
    )


class Called(Struct, frozen=True, kw_only=True):
    """How a call stands: answered, failed, still waiting, or proposed instead."""

    room: str
    proposal: str | UnsetType = UNSET
    to: str
    request: str | UnsetType = UNSET
    seq: int
    expires_at: str | UnsetType = UNSET
    state: Literal["answered", "failed", "waiting", "proposed"]
    result: Any = UNSET
    error: Any = UNSET
    message: str | UnsetType = UNSET


@calls.acts(
    "room/call",
    ROOM_ROUTE,
    others_words=("result", "error"),
    waits="wait",
    progress=ToolProgress,
    commands=("room call",),
)
async def call_tool(
    call: Call,
    room: RoomName,
    tool: Annotated[str, "Name of the tool, as room_tools lists it"],
    *,
    arguments: Annotated[dict[str, Any], "The arguments of the tool"] = {},  # noqa: B006 - nothing changes it
    to: Annotated[
        str,
        "Name of the participant whose tool it is. If omitted, the one participant that offers it.",
    ]
    | None = None,
    reason: Annotated[str, "Why; the others read it if the call is proposed"] | None = None,
    wait: Annotated[
        int,
        describe("Seconds to wait for the answer. Default 30, max 55.", ge=0, le=MAX_READ_SECONDS),
    ] = 30,
) -> Called:
    """Call a tool of a participant in a room, and return its answer. If you may not call it
    yourself but may propose it, the call is proposed instead, and state is proposed: someone who
    may can then approve or reject it. If you cancel, the call is cancelled at the participant.
    """
    if not 1 <= len(tool) <= MAX_ROOM_TOOL_NAME:
        raise e.ArgumentInvalid(
            f"tool must have 1 to {MAX_ROOM_TOOL_NAME:,} characters.", field="tool"
        )
    asking = requester(call, room)
    to = to if to is not None else await asking.offering(tool, ROOM_TOOLS_SECONDS)
    params = {"name": tool, "arguments": arguments}
    follows = call.caller.progress is not None
    try:
        sent = await asking.send(to, TOOLS_CALL, params, progress=follows)
    except e.ProposalRequired:
        return await proposed(call, room, to, params, reason)
    tell = (lambda params: call.progress(progress_of(params))) if follows else None
    answers: dict[str, dict[str, Any]] = {}
    try:
        answers = await wait_unless_left(call.caller, asking.answers([sent], wait, tell)) or {}
    finally:
        if not answers and call.caller.leaving.is_set() and not call.caller.hub_stops:
            await asking.cancel([sent])
    told: dict[str, Any] = {"room": room, "to": to, "request": sent.id, "seq": sent.seq}
    answer = answers.get(sent.id)
    if answer is None:
        message = (
            f"{to} has not answered yet. room_read with this seq as after, and wait, shows the "
            "response."
        )
        return Called(**told, state="waiting", message=message)
    if "error" in answer:
        return Called(**told, state="failed", error=answer["error"])
    return Called(**told, state="answered", result=answer.get("result"))


async def proposed(
    call: Call, room: str, to: str, params: dict[str, Any], reason: str | None
) -> Called:
    """Propose the call, for someone with the right to approve it."""
    made = await propose(call, room, TOOLS_CALL, params=params, to=to, reason=reason)
    return Called(
        room=made.room,
        proposal=made.proposal,
        to=to,
        seq=made.seq,
        expires_at=made.expires_at,
        state="proposed",
        message=f"You may not call {params['name']} yourself, so the call was proposed. room_read "
        "with this seq as after, and wait, shows who approves or rejects it, and the response.",
    )


class Responded(Struct, frozen=True):
    """An answer that is part of a room's history now."""

    room: str
    request: str
    id: str
    seq: int


@calls.adds(
    "room/respond",
    ROOM_ROUTE,
    reaches_others=True,
    commands=Absent("Agents answer through the client library."),
    exactly_one=("text", "result", "error"),
)
async def respond(
    call: Call,
    room: RoomName,
    request: Annotated[str, "The id of the request, from room_read"],
    *,
    text: Annotated[str, "The answer as text"] | None = None,
    result: Annotated[dict[str, Any], "The answer as the result that its method has in MCP"]
    | None = None,
    error: Annotated[str, "Why it could not be done"] | None = None,
) -> Responded:
    """Answer a request that someone in a room made to you, such as tools/call. room_read with kinds
    set to request shows the requests; those with your name in to are for you.
    """
    answers: list[dict[str, Any]] = []
    if text is not None:
        answers.append({"result": {"content": [{"type": "text", "text": text}]}})
    if result is not None:
        answers.append({"result": result})
    if error is not None:
        answers.append({"error": {"code": ANSWER_FAILED, "message": error}})
    if len(answers) != 1:
        raise e.ArgumentInvalid("Give exactly one of text, result and error.", field="text")
    stored = await requester(call, room).respond(request, answers[0])
    return Responded(room, request, stored.id, stored.seq)


def requester(call: Call, room: str) -> Requester:
    """Requests in a room, by the caller."""
    from folkmoot.rooms.requests import Requester

    return Requester(call.services.rooms, call.visitor, room)
