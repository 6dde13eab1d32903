"""Tools of participants: listing and calling them, and answering as one who was called."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from folkmoot.core.errors import ArgumentInvalid, ProposalRequired
from folkmoot.rooms import Requester, visitor_of
from folkmoot.rooms.requests import CALL
from folkmoot.tools.model import Arguments, Call, Payload, Tool
from folkmoot.tools.patience import patiently
from folkmoot.tools.room_proposals import Propose, propose
from folkmoot.tools.room_schemas import MOST_SECONDS, ROOM, Wait
from folkmoot.tools.schemas import anything, integer, obj, one_of, text

LIST_SECONDS = 5
CALL_SECONDS = 30
MOST_NAME = 1_024
MOST_BYTES = 262_144
"""What the definitions of one listing may have together, unless it is one alone."""
ANSWER_FAILED = -32000
"""The JSON-RPC code of an answer that says in words why it failed."""

REQUEST = text("The id of the request, from room_read")


class Tools(Arguments, frozen=True, kw_only=True):
    """Whose tools."""

    room: str
    to: str | None = None
    wait: Wait = LIST_SECONDS


async def tools(call: Call[Tools]) -> Payload:
    """The tools that the participants of a room offer."""
    given = call.arguments
    listing = requester(call, given.room).tools(given.to, given.wait)
    offers = await patiently(call.caller, listing)
    found: list[dict[str, Any]] = []
    size = 0
    for offer in offers.tools if offers is not None else ():
        size += len(msgspec.json.encode(offer.definition))
        if found and size > MOST_BYTES:
            break
        found.append({"to": offer.by, **offer.definition})
    told: dict[str, Any] = {"room": given.room, "tools": found}
    if offers is not None:
        told |= {
            "unanswered": offers.unanswered,
            "left_out": len(offers.tools) - len(found),
            "not_asked": offers.not_asked,
        }
    return told


class CallTool(Arguments, frozen=True, kw_only=True):
    """One tool of a participant, and what to call it with."""

    room: str
    tool: Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    to: str | None = None
    reason: str | None = None
    wait: Wait = CALL_SECONDS


async def call_tool(call: Call[CallTool]) -> Payload:
    """Call a tool, or propose the call where the caller may only do that."""
    given = call.arguments
    asking = requester(call, given.room)
    to = given.to if given.to is not None else await asking.offering(given.tool, LIST_SECONDS)
    params = {"name": given.tool, "arguments": given.arguments}
    try:
        sent = await asking.send(to, CALL, params)
    except ProposalRequired:
        return await proposed(call, to, params)
    answers = await patiently(call.caller, asking.answers([sent], given.wait)) or {}
    told = {"room": given.room, "to": to, "request": sent.id, "seq": sent.seq}
    answer = answers.get(sent.id)
    if answer is None:
        message = (
            f"{to} has not answered yet. room_read with this seq as after, and wait, shows the "
            "response."
        )
        return {**told, "state": "waiting", "message": message}
    if "error" in answer:
        return {**told, "state": "failed", "error": answer["error"]}
    return {**told, "state": "answered", "result": answer.get("result")}


async def proposed(call: Call[CallTool], to: str, params: dict[str, Any]) -> Payload:
    """The call as a proposal: someone who may can approve it."""
    given = call.arguments
    asked = Propose(room=given.room, method=CALL, params=params, to=to, reason=given.reason)
    made: Any = await propose(
        Call(services=call.services, caller=call.caller, account=call.account, arguments=asked)
    )
    message = (
        f"You may not call {given.tool} yourself, so the call was proposed. room_read with this "
        "seq as after, and wait, shows who approves or rejects it, and the response."
    )
    return {**made, "to": to, "state": "proposed", "message": message}


class Respond(Arguments, frozen=True, kw_only=True):
    """The answer to a request."""

    room: str
    request: str
    text: str | None = None
    result: dict[str, Any] | None = None
    error: str | None = None


async def respond(call: Call[Respond]) -> Payload:
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
        raise ArgumentInvalid("Give exactly one of text, result and error.", field="text")
    stored = await requester(call, given.room).respond(given.request, answers[0])
    return {"room": given.room, "request": given.request, "id": stored.id, "seq": stored.seq}


def requester(call: Call[Any], room: str) -> Requester:
    """Requests in a room, by the caller."""
    return Requester(call.services.rooms, visitor_of(call.account), room)


CALL_TOOLS = (
    Tool(
        name="room/tools",
        description="List the tools that the participants of a room offer. Each says in to whose "
        "it is; call it with room_call. Participants that do not answer in time are named in "
        "unanswered.",
        schema=obj(
            {
                "room": ROOM,
                "to": text(
                    "Only the tools of this participant. If omitted, those of every agent and "
                    "tool server in the room."
                ),
                "wait": integer(
                    "Seconds to wait for the participants to answer. Default 5, max 55.",
                    minimum=0,
                    maximum=MOST_SECONDS,
                ),
            },
            ("room",),
        ),
        arguments=Tools,
        handler=tools,
        waits="wait",
        patience=LIST_SECONDS,
        kind="adds",
        others=("tools",),
    ),
    Tool(
        name="room/call",
        description="Call a tool of a participant in a room, and return its answer. If you may "
        "not call it yourself but may propose it, the call is proposed instead, and state is "
        "proposed: someone who may can then approve or reject it.",
        schema=obj(
            {
                "room": ROOM,
                "tool": text("Name of the tool, as room_tools lists it"),
                "arguments": anything("The arguments of the tool"),
                "to": text(
                    "Name of the participant whose tool it is. If omitted, the one participant "
                    "that offers it."
                ),
                "reason": text("Why; the others read it if the call is proposed"),
                "wait": integer(
                    "Seconds to wait for the answer. Default 30, max 55.",
                    minimum=0,
                    maximum=MOST_SECONDS,
                ),
            },
            ("room", "tool"),
        ),
        arguments=CallTool,
        handler=call_tool,
        waits="wait",
        patience=CALL_SECONDS,
        kind="acts",
        others=("result", "error"),
    ),
    Tool(
        name="room/respond",
        description="Answer a request that someone in a room made to you, such as tools/call. "
        "room_read with kinds set to request shows the requests; those with your name in to are "
        "for you.",
        schema=obj(
            {
                "room": ROOM,
                "request": REQUEST,
                "text": text("The answer as text"),
                "result": anything("The answer as the result that its method has in MCP"),
                "error": text("Why it could not be done"),
            },
            ("room", "request"),
            **one_of("text", "result", "error"),
        ),
        arguments=Respond,
        handler=respond,
        kind="adds",
        open_world=True,
    ),
)
