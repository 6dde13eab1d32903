"""Tools of participants: listing them, calling them, and answering a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.call import Call, wait_unless_left
from folkmoot.operations.limits import (
    MAX_READ_SECONDS,
    MAX_ROOM_TOOL_NAME,
    MAX_ROOM_TOOLS_BYTES,
    ROOM_TOOLS_SECONDS,
)
from folkmoot.operations.rooms.messages import RoomName
from folkmoot.operations.rooms.proposals import Propose, propose
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Operation,
    Route,
    describe,
)
from folkmoot.operations.servers import ToolProgress, progress_of

if TYPE_CHECKING:
    from folkmoot.rooms import Requester


ANSWER_FAILED = -32000
"""The JSON-RPC code of an answer that says in words why it failed."""

ROOM_ROUTE: Final = "`room/post` sends any message of a room."


class Tools(Arguments, frozen=True, kw_only=True):
    """Whose tools."""

    room: RoomName
    to: (
        Annotated[
            str,
            describe(
                "Only the tools of this participant. If omitted, those of everyone who is "
                "connected to the room to serve tools, such as agents and servers."
            ),
        ]
        | None
    ) = None
    wait: Annotated[
        int,
        describe(
            "Seconds to wait for the participants to answer. Default 5, max 55.",
            ge=0,
            le=MAX_READ_SECONDS,
        ),
    ] = ROOM_TOOLS_SECONDS


class OfferedTools(Struct, frozen=True, kw_only=True):
    """The tools of participants; `to` names whose each one is."""

    room: str
    tools: list[dict[str, Any]]
    unanswered: list[str] | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    not_asked: int | UnsetType = UNSET


async def tools(call: Call[Tools]) -> OfferedTools:
    """The tools that the participants of a room offer."""
    given = call.arguments
    listing = requester(call, given.room).tools(given.to, given.wait)
    offers = await wait_unless_left(call.caller, listing)
    found: list[dict[str, Any]] = []
    size = 0
    for offer in offers.tools if offers is not None else ():
        size += len(msgspec.json.encode(offer.definition))
        if found and size > MAX_ROOM_TOOLS_BYTES:
            break
        found.append({"to": offer.by, **offer.definition})
    if offers is None:
        return OfferedTools(room=given.room, tools=found)
    return OfferedTools(
        room=given.room,
        tools=found,
        unanswered=offers.unanswered,
        left_out=len(offers.tools) - len(found),
        not_asked=offers.not_asked,
    )


class CallRoomTool(Arguments, frozen=True, kw_only=True):
    """A participant's tool, and the arguments of the call."""

    room: RoomName
    tool: Annotated[str, describe("Name of the tool, as room_tools lists it")]
    arguments: Annotated[dict[str, Any], describe("The arguments of the tool")] = msgspec.field(
        default_factory=dict
    )
    to: (
        Annotated[
            str,
            describe(
                "Name of the participant whose tool it is. If omitted, the one participant that "
                "offers it."
            ),
        ]
        | None
    ) = None
    reason: Annotated[str, describe("Why; the others read it if the call is proposed")] | None = (
        None
    )
    wait: Annotated[
        int,
        describe("Seconds to wait for the answer. Default 30, max 55.", ge=0, le=MAX_READ_SECONDS),
    ] = 30


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


async def call_tool(call: Call[CallRoomTool]) -> Called:
    """Call a tool, or propose the call where the caller may only do that."""
    given = call.arguments
    if not 1 <= len(given.tool) <= MAX_ROOM_TOOL_NAME:
        raise e.ArgumentInvalid(
            f"tool must have 1 to {MAX_ROOM_TOOL_NAME:,} characters.", field="tool"
        )
    asking = requester(call, given.room)
    to = given.to if given.to is not None else await asking.offering(given.tool, ROOM_TOOLS_SECONDS)
    params = {"name": given.tool, "arguments": given.arguments}
    follows = call.caller.progress is not None
    try:
        sent = await asking.send(to, TOOLS_CALL, params, progress=follows)
    except e.ProposalRequired:
        return await proposed(call, to, params)
    tell = (lambda params: call.progress(progress_of(params))) if follows else None
    answers: dict[str, dict[str, Any]] = {}
    try:
        answers = (
            await wait_unless_left(call.caller, asking.answers([sent], given.wait, tell)) or {}
        )
    finally:
        if not answers and call.caller.leaving.is_set() and not call.caller.hub_stops:
            await asking.cancel([sent])
    told: dict[str, Any] = {"room": given.room, "to": to, "request": sent.id, "seq": sent.seq}
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


async def proposed(call: Call[CallRoomTool], to: str, params: dict[str, Any]) -> Called:
    """Propose the call, for someone with the right to approve it."""
    given = call.arguments
    asked = Propose(room=given.room, method=TOOLS_CALL, params=params, to=to, reason=given.reason)
    made = await propose(
        Call(services=call.services, caller=call.caller, account=call.account, arguments=asked)
    )
    return Called(
        room=made.room,
        proposal=made.proposal,
        to=to,
        seq=made.seq,
        expires_at=made.expires_at,
        state="proposed",
        message=f"You may not call {given.tool} yourself, so the call was proposed. room_read with "
        "this seq as after, and wait, shows who approves or rejects it, and the response.",
    )


class RespondToRequest(Arguments, frozen=True, kw_only=True):
    """The answer to a request."""

    __exactly_one__ = ("text", "result", "error")

    room: RoomName
    request: Annotated[str, describe("The id of the request, from room_read")]
    text: Annotated[str, describe("The answer as text")] | None = None
    result: (
        Annotated[dict[str, Any], describe("The answer as the result that its method has in MCP")]
        | None
    ) = None
    error: Annotated[str, describe("Why it could not be done")] | None = None


class Responded(Struct, frozen=True):
    """An answer that is part of a room's history now."""

    room: str
    request: str
    id: str
    seq: int


async def respond(call: Call[RespondToRequest]) -> Responded:
    """Answer a request that was made to the caller."""
    given = call.arguments
    answers: list[dict[str, Any]] = []
    if given.text is not None:
        answers.append({"result": {"content": [{"type": "text", "text": given.text}]}})
    if given.result is not None:
        answers.append({"result": given.result})
    if given.error is not None:
        answers.append({"error": {"code": ANSWER_FAILED, "message": given.error}})
    if len(answers) != 1:
        raise e.ArgumentInvalid("Give exactly one of text, result and error.", field="text")
    stored = await requester(call, given.room).respond(given.request, answers[0])
    return Responded(given.room, given.request, stored.id, stored.seq)


def requester(call: Call[Any], room: str) -> Requester:
    """Requests in a room, by the caller."""
    from folkmoot.rooms.requests import Requester

    return Requester(call.services.rooms, call.visitor, room)


CALLS = (
    Operation(
        name="room/tools",
        description="List the tools that the participants of a room offer. Each says in to whose "
        "it is; call it with room_call. Participants that do not answer in time are named in "
        "unanswered.",
        handler=tools,
        scope="rooms",
        who="guest",
        effect="reads",
        reaches_others=True,
        others_words=("tools",),
        waits="wait",
        routes=(
            Route(
                "GET",
                "/v1/rooms/{room}/tools",
                id="listRoomTools",
                summary="List the tools of participants",
                description="Everyone who serves tools is asked; the room's history "
                "has nothing of it.",
                answer="The tools, each with whose it is.",
            ),
        ),
        commands=("room tools",),
    ),
    Operation(
        name="room/call",
        description="Call a tool of a participant in a room, and return its answer. If you may "
        "not call it yourself but may propose it, the call is proposed instead, and state is "
        "proposed: someone who may can then approve or reject it. If you cancel, the call is "
        "cancelled at the participant.",
        handler=call_tool,
        scope="rooms",
        effect="acts",
        others_words=("result", "error"),
        waits="wait",
        progress=ToolProgress,
        routes=Absent(ROOM_ROUTE),
        commands=("room call",),
    ),
    Operation(
        name="room/respond",
        description="Answer a request that someone in a room made to you, such as tools/call. "
        "room_read with kinds set to request shows the requests; those with your name in to are "
        "for you.",
        handler=respond,
        scope="rooms",
        effect="adds",
        reaches_others=True,
        routes=Absent(ROOM_ROUTE),
        commands=Absent("Agents answer through the client library."),
    ),
)
