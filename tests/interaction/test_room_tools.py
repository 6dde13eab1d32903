"""Rooms through `/mcp`: what an assistant without a WebSocket can do, and what nobody can."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from folkmoot.client import Context
from folkmoot.client import Room as ServingRoom
from tests.harness import ask
from tests.mcp_harness import INVALID, Meeting, Person, both_eras, meeting, modern, one_era
from tests.transports.rooms.support import Seat, Town

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


@pytest.mark.requirement("room.tools", "room.read-waits", "mcp.both-eras")
@both_eras
async def test_two_assistants_talk_and_neither_polls(era: str, hub: Meeting) -> None:
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room_create", name="tea")
    joined = await bob.call("room_join", room="tea")
    assert joined["last_seq"] == 1

    async def ping() -> list[str]:
        heard, said = [], await ann.call("room_say", room="tea", text="0")
        for number in range(1, 6):
            wait = {"room": "tea", "kinds": ["chat"], "after": said["seq"], "wait": LONG}
            (message,) = (await ann.call("room_read", **wait))["messages"]
            assert message["from"] == "bob"
            heard.append(message["text"])
            reply = {"text": str(number), "reply_to": message["id"]}
            said = await ann.call("room_say", room="tea", **reply)
        return heard

    async def pong() -> list[str]:
        heard, after = [], joined["last_seq"]
        for _ in range(5):
            wait = {"room": "tea", "kinds": ["chat"], "after": after, "wait": LONG}
            (message,) = (await bob.call("room_read", **wait))["messages"]
            assert message["from"] == "ann"
            heard.append(message["text"])
            after = (await bob.call("room_say", room="tea", text=f"re {message['text']}"))["seq"]
        return heard

    assert await asyncio.gather(ping(), pong()) == [
        ["re 0", "re 1", "re 2", "re 3", "re 4"],
        ["0", "1", "2", "3", "4"],
    ]
    before = (await bob.call("room_read", room="tea", kinds=["presence"]))["messages"]
    await bob.call("room_leave", room="tea")
    after = (await ann.call("room_read", room="tea", kinds=["presence"]))["messages"]
    assert [message["kind"] for message in after] == [
        *(message["kind"] for message in before),
        "system.presence.leave",
    ]


@pytest.mark.requirement("room.tools")
@both_eras
async def test_an_assistant_and_someone_on_a_websocket_are_in_one_room(
    era: str, hub: Meeting
) -> None:
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room/create", name="tea")
    async with Town(hub.hub).joined(bob.token, room="tea") as seat:
        await seat.hear()
        await ann.call("room/join", room="tea")
        came = await seat.hear()
        assert came["kind"] == "system.presence.join"
        assert came["payload"]["participant"]["id"] == "ann"
        said = await ann.call("room/say", room="tea", text="hello bob")
        heard = await seat.hear()
        assert (heard["seq"], heard["id"]) == (said["seq"], said["id"])
        assert heard["payload"]["params"] == {"text": "hello bob"}
        waiting = asyncio.create_task(
            ann.call("room/read", room="tea", after=said["seq"], wait=LONG)
        )
        await seat.say("hello ann")
        (message,) = (await waiting)["messages"]
        assert (message["from"], message["text"]) == ("bob", "hello ann")
        await asks_and_answers(ann, seat)


async def of_kind(seat: Seat, kind: str) -> dict[str, Any]:
    """The next message of a kind."""
    while True:
        message = await seat.hear()
        if message["kind"] == kind:
            return message


async def asks_and_answers(ann: Person, seat: Seat) -> None:
    """The one on the WebSocket proposes and does what the assistant then asks for."""
    await seat.send(
        {
            "kind": "mcp.proposal.tools/call:count",
            "id": "p-1",
            "to": ["bob"],
            "payload": {"method": "tools/call", "params": {"name": "count"}},
        }
    )
    assert (await of_kind(seat, "mcp.proposal.tools/call:count"))["id"] == "p-1"
    done = await ann.call("room/decide", room="tea", proposal="p-1", decision="fulfil")
    request = await of_kind(seat, "mcp.request.tools/call:count")
    assert request["id"] == done["request"]
    await seat.send(
        {
            "kind": "mcp.response.tools/call:count",
            "to": ["ann"],
            "correlation_id": [request["id"]],
            "payload": {"jsonrpc": "2.0", "id": request["payload"]["id"], "result": {"is": 7}},
        }
    )
    answer = {"room": "tea", "after": done["seq"], "wait": LONG, "kinds": ["response"]}
    (response,) = (await ann.call("room/read", **answer))["messages"]
    assert response["payload"]["result"] == {"is": 7}


@pytest.mark.requirement("auth.unauthenticated-tools")
@both_eras
async def test_without_an_account_no_room_is_to_be_had(era: str, hub: Meeting) -> None:
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
async def test_a_private_room_is_nowhere_for_those_who_are_not_in_it(
    era: str, hub: Meeting
) -> None:
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


@one_era
async def test_a_room_by_invitation_is_seen_by_all_and_entered_by_the_invited(
    era: str, hub: Meeting
) -> None:
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room/create", name="hall", access="invite")
    (room,) = (await bob.call("room/list"))["rooms"]
    assert (room["name"], room["role"]) == ("hall", None)
    for name in INSIDE:
        if name == "room/leave":
            continue
        payload, is_error = await bob.result(name, {"room": "hall", **ROOM_TOOLS[name]})
        assert is_error
        assert payload == {
            "error": "This room is for invited people only.",
            "code": "room_forbidden",
        }
    await ann.call("room/invite", room="hall", handle="bob")
    await bob.call("room/join", room="hall")
    await bob.call("room/leave", room="hall")
    assert (await bob.result("room/join", {"room": "hall"}))[0]["code"] == "room_forbidden"


@one_era
async def test_a_refusal_says_what_is_allowed(era: str, hub: Meeting) -> None:
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room/create", name="tea", capabilities=["mcp.proposal.*"])
    payload, _ = await bob.result("room/say", {"room": "tea", "text": "hello"})
    assert payload == {
        "error": "You have no permission for mcp.notification.notifications/chat/message.",
        "code": "capability_denied",
        "attempted_kind": "mcp.notification.notifications/chat/message",
        "your_capabilities": ["mcp.proposal.*"],
    }
    made = await ann.call("room/propose", room="tea", method="ping", to="gateway")
    decide = {"room": "tea", "proposal": made["proposal"], "decision": "fulfil"}
    payload, _ = await bob.result("room/decide", decide)
    assert (
        payload["error"] == "You have no permission for mcp.request.ping, but you can propose it."
    )
    assert payload["code"] == "proposal_required"
    assert (await ann.result("room/decide", decide))[0]["code"] == "proposal_own"


async def test_chat_that_is_too_much_is_told_when_to_come_back(tmp_path: Path) -> None:
    limits = {"chat_agent_per_minute": 3}
    async with meeting(tmp_path, rate_limits="on", rates=limits) as there:
        robot = await there.person("robot", account_type="agent")
        await robot.call("room/create", name="tea")
        for number in range(3):
            await robot.call("room/say", room="tea", text=str(number))
        payload, is_error = await robot.result("room/say", {"room": "tea", "text": "more"})
        assert is_error
        assert payload["error"].startswith("You are sending messages too fast. Try again in ")
        assert 0 < payload["retry_after"] <= 60
        assert len((await robot.call("room/read", room="tea"))["messages"]) == 3


@pytest.mark.one_node("counts who waits in the room")
@both_eras
async def test_one_who_leaves_while_waiting_is_waited_for_no_longer(era: str, hub: Meeting) -> None:
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room/create", name="tea")
    await ann.call("room/say", room="tea", text="hello")
    live, _ = await hub.hub.rooms.enter(await visitor(hub, ann), "tea")
    reading = asyncio.create_task(
        bob.client.call_tool("room_read", {"room": "tea", "after": 1, "wait": LONG})
    )
    while live.is_idle:  # noqa: ASYNC110 - nobody sets an event for it
        await asyncio.sleep(0.005)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await bob.leave()
    while not live.is_idle:  # noqa: ASYNC110 - nobody sets an event for it
        await asyncio.sleep(0.005)


@both_eras
async def test_a_call_that_is_cancelled_ends_at_the_agent_and_its_progress_is_relayed(
    era: str, hub: Meeting
) -> None:
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


async def visitor(there: Meeting, person: Person) -> Any:
    return await there.hub.rooms.authenticate(person.token)


@pytest.mark.one_node("counts who waits in the room")
async def test_a_hub_that_stops_lets_nobody_wait(tmp_path: Path) -> None:
    async with meeting(tmp_path, "stateless") as there:
        ann = await there.person("ann")
        await ann.call("room/create", name="tea")
        await ann.call("room/say", room="tea", text="hello")
        live, _ = await there.hub.rooms.enter(await visitor(there, ann), "tea")
        message, headers = modern(
            "tools/call",
            name="room_read",
            arguments={"room": "tea", "after": 1, "wait": LONG},
        )
        asked = asyncio.create_task(
            there.post(message, query=f"?token={ann.token}", headers=headers)
        )
        while live.is_idle:  # noqa: ASYNC110 - nobody sets an event for it
            await asyncio.sleep(0.005)
        there.hub.stop()
        answer = await asked
        assert answer.status == 200
        assert json.loads(answer.json()["result"]["content"][0]["text"])["messages"] == []


@one_era
async def test_a_deleted_account_is_in_no_room_and_what_it_said_stays(
    era: str, hub: Meeting
) -> None:
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room/create", name="tea", grants={"bob": ["mcp.request.*"]})
    await bob.call("room/join", room="tea")
    await bob.call("room/say", room="tea", text="remember me")
    await bob.call("room/create", name="bobs")
    async with Town(hub.hub).joined(bob.token, room="tea") as seat:
        await bob.call("msg/delete_account", confirm="bob")
        assert (await seat.ended()).code == 4401
    assert await bob.refused("room/say", room="tea", text="x") == INVALID
    joined = await ann.call("room/join", room="tea")
    assert [each["id"] for each in joined["present"]] == ["ann"]
    assert joined["grants"] == {}
    said = (await ann.call("room/read", room="tea", kinds=["chat"]))["messages"]
    assert [(message["from"], message["text"]) for message in said] == [("bob", "remember me")]
    rooms = {room["name"]: room["owners"] for room in (await ann.call("room/list"))["rooms"]}
    assert rooms == {"tea": ["ann"], "bobs": []}

    async def rows(tx: Any) -> Any:
        return await tx.fetch(
            "SELECT r.name, m.role, r.grants, r.created_by IS NULL FROM rooms r "
            "LEFT JOIN room_members m ON m.room_id = r.id ORDER BY r.name"
        )

    assert await hub.hub.store.read(rows) == [
        ("bobs", None, "{}", 1),
        ("tea", "owner", "{}", 0),
    ]


async def test_a_guests_token_is_told_to_the_inviter_alone(hub: Meeting) -> None:
    ann, bob = await hub.people("ann", "bob")
    await ann.call("room/create", name="tea")
    async with Town(hub.hub).joined(bob.token, room="tea") as seat:
        guest = await ann.call("room/invite", room="tea", guest="zoe")
        await ann.call("room/say", room="tea", text="the end")
        heard = ""
        while "the end" not in heard:
            heard += json.dumps(await seat.hear())
    assert "zoe" in heard
    read = json.dumps(await ann.call("room/read", room="tea"))
    for place in (heard, read, (await ask(hub.port, "/metrics")).text):
        assert guest["token"] not in place
        assert guest["token"].removeprefix("gi_") not in place
