"""Rooms through `/mcp`: what an assistant without a WebSocket can do, and what nobody can."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from folkmoot.client import Context
from folkmoot.client import Room as ServingRoom
from tests.mcp_harness import INVALID, Person, both_eras, one_era

LONG = 50
ROOM_TOOLS: dict[str, dict[str, Any]] = {
    "room/list": {},
    "room/create": {"name": "other"},
    "room/join": {},
    "room/leave": {},
    "room/say": {"text": "hello"},
    "room/read": {},
    "room/tools": {"to": "ann", "wait": 0},
    "room/call": {"tool": "count", "to": "ann", "wait": 0},
    "room/respond": {"request": "x", "text": "yes"},
    "room/propose": {"method": "ping"},
    "room/proposals": {},
    "room/decide": {"proposal": "x", "decision": "withdraw"},
    "room/invite": {"guest": "zoe"},
}
INSIDE = [name for name in ROOM_TOOLS if name not in {"room/list", "room/create"}]


@one_era
async def test_whoever_asks_for_mail_hears_who_mentions_and_invites_them(hub):
    ann, bob = await hub.people("ann", "bob")
    for room in ("tea", "den"):
        await ann.call("room_create", name=room)
        await ann.call("room_invite", room=room, handle="bob")
    await bob.call("room_join", room="tea")
    assert "rooms" not in await ann.call("msg_digest")
    await ann.call("room_say", room="tea", text="@bob, are you there?")
    den = {"room": "den", "unread": 0, "mentions": 0, "invited": True}
    tea = {"room": "tea", "unread": 1, "mentions": 1, "invited": False}
    assert (await bob.call("msg_digest"))["rooms"] == [den, tea]
    await bob.call("room_mark_read", room="tea")
    assert (await bob.call("msg_digest"))["rooms"] == [den]


@pytest.mark.requirement("room.tools", "room.read-waits", "mcp.both-eras")
@both_eras
async def test_two_assistants_talk_and_neither_polls(hub):
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room_create", name="tea")
    joined = await bob.call("room_join", room="tea")
    assert joined["last_seq"] == 1

    async def talk(person: Person, after: int) -> list[tuple[str, str]]:
        """Wait for a word, and answer it, five times; what was heard, and of whom."""
        heard = []
        for _ in range(5):
            wait = {"room": "tea", "kinds": ["chat"], "after": after, "wait": LONG}
            (message,) = (await person.call("room_read", **wait))["messages"]
            heard.append((message["from"], message["text"]))
            reply = {"text": f"{message['text']}.", "reply_to": message["id"]}
            after = (await person.call("room_say", room="tea", **reply))["seq"]
        return heard

    first = await ann.call("room_say", room="tea", text="0")
    assert await asyncio.gather(talk(ann, first["seq"]), talk(bob, joined["last_seq"])) == [
        [("bob", "0" + "." * number) for number in range(1, 10, 2)],
        [("ann", "0" + "." * number) for number in range(0, 10, 2)],
    ]
    before = (await bob.call("room_read", room="tea", kinds=["presence"]))["messages"]
    await bob.call("room_leave", room="tea")
    after = (await ann.call("room_read", room="tea", kinds=["presence"]))["messages"]
    assert [message["kind"] for message in after] == [
        *(message["kind"] for message in before),
        "system.presence.leave",
    ]


@pytest.mark.requirement("auth.unauthenticated-tools")
@both_eras
async def test_without_an_account_no_room_is_to_be_had(hub):
    ann = await hub.person("ann")
    await ann.call("room/create", name="tea")
    guest = await ann.call("room/invite", room="tea", guest="zoe")
    _, credential = await hub.hub.rooms.exchange("tea", guest["token"])
    for token in ("", guest["token"], credential, f"gk_{'0' * 64}"):
        stranger = await hub.stranger(f"?token={token}")
        said = INVALID if token else "Authentication required."
        for name, arguments in ROOM_TOOLS.items():
            assert await stranger.refused(name, **{"room": "tea", **arguments}) == said


@one_era
async def test_a_private_room_is_nowhere_for_those_who_are_not_in_it(hub):
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room/create", name="den", access="private")
    await ann.call("room/say", room="den", text="psst")
    assert (await bob.call("room/list"))["rooms"] == []
    for name in INSIDE:
        arguments = ROOM_TOOLS[name]
        hidden = await bob.result(name, {"room": "den", **arguments})
        assert hidden == await bob.result(name, {"room": "nowhere", **arguments}), name
        assert hidden[1]
        assert hidden[0]["code"] == "room_not_found"
    waiting = {"room": "den", "wait": LONG, "after": 0}
    assert (await bob.result("room/read", waiting))[0]["code"] == "room_not_found"
    # Only its name cannot be had a second time.
    assert (await bob.result("room/create", {"name": "den"}))[0]["code"] == ("room_name_taken")


@both_eras
async def test_a_call_that_is_cancelled_ends_at_the_agent_and_its_progress_is_relayed(hub):
    ann, rob = await hub.people("ann", "rob")
    await ann.call("room/create", name="tea")
    ended = asyncio.Event()
    agent = ServingRoom(hub.hub.base_url, room="tea", token=rob.token)

    @agent.tool
    async def steep(minutes: int, ctx: Context) -> str:
        try:
            await ctx.progress(1, total=minutes, message="It is hot.")
            await asyncio.sleep(minutes)
        finally:
            ended.set()
        return "done"

    told: asyncio.Queue[tuple[float, float | None, str | None]] = asyncio.Queue()

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.put_nowait((progress, total, message))

    call = {"room": "tea", "tool": "steep", "to": "rob", "wait": LONG}
    async with agent:
        arguments = {**call, "arguments": {"minutes": 0}}
        done = await ann.client.call_tool("room_call", arguments, progress_callback=heard)
        assert json.loads(done.content[0].text)["state"] == "answered"
        assert await told.get() == (1, 0, "It is hot.")
        ended.clear()
        arguments = {**call, "arguments": {"minutes": 600}}
        calling = asyncio.create_task(
            ann.client.call_tool("room_call", arguments, progress_callback=heard)
        )
        assert await told.get() == (1, 600, "It is hot.")
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await asyncio.wait_for(ended.wait(), 30)
