"""The answers that the page of tools shows are those of a hub."""

from __future__ import annotations

import asyncio
from typing import Any

from docs.pages.answers import ANSWERS
from folkmoot.client import Room
from folkmoot.operations import CATALOGUE
from tests.mcp_harness import Person, meeting


def shape(value: Any) -> Any:
    """The members of an answer with their types; of a list, those of its first entry."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value)


async def tools_in_a_room(hub: str, alice: Person, bob: Person) -> dict[str, Any]:
    """What alice is answered who lists and calls a tool of bob's, and bob who answers."""
    tea = {"room": "tea"}
    program = Room(hub, room="tea", token=bob.token)

    @program.tool
    def high_water(harbour: str) -> str:
        """When the tide is highest."""
        return harbour

    async with program:
        given = {"room/tools": await alice.call("room/tools", **tea)}
    before = (await bob.call("room/read", **tea))["last_seq"]
    called = alice.call("room/call", **tea, to="bob", tool="high_water")
    asked = asyncio.create_task(called)
    waiting = await bob.call("room/read", **tea, kinds=["request"], after=before, wait=50)
    answer = {"request": waiting["messages"][-1]["id"], "text": "six"}
    given["room/respond"] = await bob.call("room/respond", **tea, **answer)
    return given | {"room/call": await asked}


async def in_a_room(hub: str, alice: Person, bob: Person) -> dict[str, Any]:
    """What the tools of rooms answer."""
    tea = {"room": "tea"}
    given = {"room/create": await alice.call("room/create", name="tea")}
    await bob.call("room/join", **tea)
    joining = {"room/join": tea, "room/list": {}, "room/say": {**tea, "text": "Hello"}}
    given |= {name: await alice.call(name, **joining[name]) for name in joining}
    after = {**tea, "after": given["room/say"]["seq"] - 1}
    given["room/read"] = await alice.call("room/read", **after)
    gone = {**tea, "message_id": given["room/say"]["id"]}
    given["room/delete_message"] = await alice.call("room/delete_message", **gone)
    given["room/mark_read"] = await alice.call("room/mark_read", **tea)
    given |= await tools_in_a_room(hub, alice, bob)
    words = {"name": "chat.say", "arguments": {"text": "Supper"}}
    asked = {"method": "tools/call", "params": words, "to": "gateway", "reason": "Hunger"}
    given["room/propose"] = await bob.call("room/propose", **tea, **asked)
    decided = {"proposal": given["room/propose"]["proposal"], "decision": "fulfil"}
    rest: dict[str, dict[str, Any]] = {
        "room/proposals": tea,
        "ask/list": {},
        "room/decide": {**tea, **decided},
        "room/invite": {**tea, "guest": "zoe"},
        "room/leave": tea,
    }
    return given | {name: await alice.call(name, **rest[name]) for name in rest}


async def test_every_tool_answers_as_its_example_does(tmp_path):
    async with meeting(tmp_path) as there:
        stranger = await there.stranger()
        given = {"msg/register": await stranger.call("msg/register", handle="alice")}
        given["msg/recover"] = await stranger.call(
            "msg/recover", handle="alice", recovery_code=given["msg/register"]["recovery_code"]
        )
        alice = await there.returning(given["msg/recover"]["token"])
        bob = await there.person("bob")
        given["msg/send"] = sent = await alice.call("msg/send", to="bob", body="Hello")
        given["msg/reply"] = await bob.call("msg/reply", message_id=sent["message_id"], body="Yes?")
        await bob.call("msg/send", to="alice", body="Are you there?")
        thread = {"thread_id": sent["thread_id"]}
        bobs = {"handle": "bob"}
        rest: dict[str, dict[str, Any]] = {
            "msg/whoami": {}, "msg/digest": {}, "msg/open_inbox": {}, "msg/threads": {},
            "msg/inbox": {}, "msg/thread": thread, "msg/mark_read": thread, "msg/star": thread,
            "msg/mute": thread, "msg/archive": thread, "msg/add_contact": bobs,
            "msg/contacts": {}, "msg/remove_contact": bobs, "msg/lookup": bobs,
            "msg/search_users": {"query": "bob"}, "msg/block": bobs, "msg/blocks": {},
            "msg/invite": {},
            "msg/set_profile": {"bio": ""},
            "folkmoot/tokens": {},
            "folkmoot/find_tool": {"query": "look up a profile", "limit": 1},
            "folkmoot/call_tool": {"name": "msg/whoami", "arguments": {}},
            "msg/delete_message": {"message_id": sent["message_id"]},
            "msg/delete_thread": thread, "msg/change_handle": {"new_handle": "alice_v2"},
            "msg/delete_account": {"confirm": "alice_v2"},
        }  # fmt: skip
        given |= await in_a_room(there.hub.base_url, alice, bob)
        given["ask/create"] = asked = await bob.call(
            "ask/create", tool="shell", arguments={"command": "ls"}, why="A", to="alice"
        )
        ask = {"ask": asked["ask_id"]}
        given |= {name: await bob.call(name, **ask) for name in ("ask/result", "ask/withdraw")}
        asked = await bob.call("ask/create", tool="shell", arguments={"command": "ls"}, to="alice")
        given["ask/decide"] = await alice.call(
            "ask/decide", ask=asked["ask_id"], verdict="reject", reason="Not before Monday."
        )
        given |= {name: await alice.call(name, **rest[name]) for name in rest}
    assert given.keys() == ANSWERS.keys() == {tool.name for tool in CATALOGUE.tools}
    assert {name: shape(answer) for name, answer in given.items()} == {
        name: shape(answer) for name, answer in ANSWERS.items()
    }
    for name, answer in ANSWERS.items():
        if name != "msg/open_inbox":
            assert given[name].get("message") == answer.get("message")
