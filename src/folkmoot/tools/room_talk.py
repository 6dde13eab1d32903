"""Talking in a room: saying something, and reading what is said."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from folkmoot.core import chat
from folkmoot.core.errors import ArgumentInvalid
from folkmoot.core.message import JSONRPC
from folkmoot.rooms import visitor_of
from folkmoot.tools.model import Arguments, Call, Payload, Tool
from folkmoot.tools.patience import patiently
from folkmoot.tools.people_tools import PageLimit
from folkmoot.tools.room_reading import Part, Reading
from folkmoot.tools.room_schemas import LAST_SEQ, MOST_NAMES, MOST_SECONDS, ROOM, Seq, Wait
from folkmoot.tools.room_wire import GROUP_NAMES, Group, envelope, heard
from folkmoot.tools.schemas import choice, integer, obj, text, texts


class Say(Arguments, frozen=True, kw_only=True):
    """Words for everyone in a room."""

    room: str
    text: str
    format: Literal["plain", "markdown"] | None = None
    reply_to: str | None = None
    mentions: Annotated[list[str], Meta(max_length=MOST_NAMES)] | None = None
    thread_id: str | None = None


async def say(call: Call[Say]) -> Payload:
    """Say something; answered once it is part of the room's history."""
    given = msgspec.structs.asdict(call.arguments)
    room = given.pop("room")
    params = {name: value for name, value in given.items() if value is not None}
    payload = {"jsonrpc": JSONRPC, "method": chat.METHOD, "params": params}
    raw = envelope(f"mcp.notification.{chat.METHOD}", payload)
    stored = heard(await call.services.rooms.post(visitor_of(call.account), room, raw))
    return {"room": room, "id": stored.id, "seq": stored.seq}


class Read(Arguments, frozen=True, kw_only=True):
    """Which part of a room's history, and whether to wait for more of it."""

    room: str
    after: Seq | None = None
    before: Seq | None = None
    limit: PageLimit = 50
    kinds: Annotated[list[Group], Meta(max_length=len(GROUP_NAMES))] | None = None
    wait: Wait = 0


async def read(call: Call[Read]) -> Payload:
    """Messages in their order, and from where to read on."""
    given = call.arguments
    if given.before is not None and (given.after is not None or given.wait):
        raise ArgumentInvalid("before cannot be combined with after or wait.", field="before")
    reading = Reading(
        call.services.rooms,
        visitor_of(call.account),
        given.room,
        limit=given.limit,
        groups=frozenset(given.kinds or GROUP_NAMES),
    )
    if given.wait:
        waiting = reading.wait(given.after, given.wait)
        part = await patiently(call.caller, waiting) or Part(last_seq=given.after or 0)
    elif given.after is not None:
        part = await reading.after(given.after)
    else:
        part = await reading.before(given.before)
    return {"room": given.room, **msgspec.structs.asdict(part)}


TALK_TOOLS = (
    Tool(
        name="room/say",
        description="Say something to everyone in a room. Returns the message's id and seq; give "
        "the seq to room_read as after, with wait, to get the answers.",
        schema=obj(
            {
                "room": ROOM,
                "text": text("What to say"),
                "format": choice(
                    "plain", "markdown", description="How the text is written. Defaults to plain."
                ),
                "reply_to": text("The id of the message this answers"),
                "mentions": texts("Names of the participants to mention", most=MOST_NAMES),
                "thread_id": text("A name for the conversation within the room, if there are many"),
            },
            ("room", "text"),
        ),
        arguments=Say,
        handler=say,
        kind="adds",
        open_world=True,
    ),
    Tool(
        name="room/read",
        description="Read a room's messages, oldest first: the newest ones, or those after or "
        "before a seq. To follow a conversation, call it again with the answer's last_seq as "
        "after, and with wait to return as soon as something new arrives.",
        schema=obj(
            {
                "room": ROOM,
                "after": integer(
                    "Return the messages after this seq, such as the last_seq of an earlier "
                    "answer. With wait and without after, only what is new from now on.",
                    minimum=0,
                    maximum=LAST_SEQ,
                ),
                "before": integer(
                    "Return the last messages before this seq, to look further back.",
                    minimum=0,
                    maximum=LAST_SEQ,
                ),
                "limit": integer(
                    "Maximum number of messages to return. Default 50, max 100.",
                    minimum=1,
                    maximum=100,
                ),
                "kinds": texts(
                    "Return only these: chat is what is said, presence is who comes and goes, "
                    "proposal is proposals and what becomes of them. If omitted, returns all.",
                    most=len(GROUP_NAMES),
                    values=GROUP_NAMES,
                ),
                "wait": integer(
                    "Wait up to this many seconds for a message instead of polling. Returns as "
                    "soon as one arrives. Default 0, max 55.",
                    minimum=0,
                    maximum=MOST_SECONDS,
                ),
            },
            ("room",),
        ),
        arguments=Read,
        handler=read,
        waits="wait",
        kind="reads",
        others=("messages",),
    ),
)
