from __future__ import annotations

from typing import Any

import pytest

from tests.transports.rest.support import ROOMS, Asker, chat, done, refused

DENIED = "capability_denied"


@pytest.mark.requirement("room.rest-rooms")
async def test_whoever_makes_a_room_owns_it_changes_it_and_deletes_it(ada, bob):
    spec: dict[str, Any] = {
        "name": "planning",
        "access": "open",
        "durable": False,
        "capabilities": ["chat.*", {"kind": "mcp.request.*", "payload": {"method": "x"}}],
        "policy": {"quorum": 2, "keep_messages": 500},
    }
    answer = await ada.ask("POST", ROOMS, spec)
    made = done(answer, 201)
    path = answer.headers["location"]
    assert path == f"{ROOMS}/planning"
    spec |= {"role": "owner", "owners": ["ada"], "policy": {**made["policy"], **spec["policy"]}}
    assert made == {**made, **spec} == {**await ada.get(path), "message": made["message"]}
    wish = {"access": "private", "grants": {"bob": ["mcp.request.*"]}}
    await bob.say("planning", "I am a member.")
    for method, content in (("PATCH", wish), ("DELETE", None)):
        refused(await bob.ask(method, path, content), 403, "room_forbidden")
    before = await ada.get(path)
    changed = done(await ada.ask("PATCH", path, wish), 200)
    assert changed == {**before, **wish} == await ada.get(path)
    seen = await bob.get(path)
    assert (seen["role"], "grants" in seen) == ("member", False)
    answer = await ada.ask("DELETE", path)
    assert (answer.status, answer.body) == (204, b"")
    refused(await ada.ask("GET", path), 404, "room_not_found")
    await ada.create("planning")
    assert (await ada.read("planning"))["messages"] == []


@pytest.mark.requirement("room.rest-rooms")
async def test_the_list_shows_open_rooms_those_for_the_invited_and_ones_own(ada, bob):
    for access in ("open", "invite", "private"):
        await ada.create(f"a-{access}", access=access)

    async def listed(who: Asker, members: str) -> list[Any]:
        rooms = (await who.get(ROOMS))["rooms"]
        return [tuple(room[name] for name in members.split()) for room in rooms]

    assert await listed(ada, "name") == [("a-invite",), ("a-open",), ("a-private",)]
    assert await listed(bob, "name role may_enter") == [
        ("a-invite", None, False),
        ("a-open", None, True),
    ]
    for name in ("a-invite", "a-private"):
        done(await ada.ask("POST", f"{ROOMS}/{name}/invites", {"handle": "bob"}), 201)
    assert await listed(bob, "may_enter") == [(True,)] * 3
    first = await bob.get(f"{ROOMS}?limit=2")
    rest = await bob.get(f"{ROOMS}?limit=2&cursor={first['next_cursor']}")
    assert [room["name"] for room in rest["rooms"]] == ["a-private"]
    assert rest["next_cursor"] is None


REQUESTS = [
    ("GET", "", None),
    ("PATCH", "", {"access": "open"}),
    ("DELETE", "", None),
    ("GET", "/participants", None),
    ("GET", "/messages", None),
    ("GET", "/messages?after=0&wait=1", None),
    ("POST", "/messages", {"protocol": "mcpx/v1", "kind": "chat.message"}),
    ("GET", "/proposals", None),
    ("POST", "/invites", {"guest": "grace"}),
    ("POST", "/guests", {"token": "gi_" + "0" * 64}),
]


async def test_the_private_room_of_another_is_answered_like_one_that_is_not_there(ada, bob):
    await ada.create("secret", access="private")
    for method, path, content in REQUESTS:
        told = []
        for name in ("secret", "there-is-none"):
            answer = await bob.ask(method, f"{ROOMS}/{name}{path}", content)
            for differs in ("x-request-id", "date"):
                del answer.headers[differs]
            told.append((answer.status, answer.body, answer.headers))
        assert told[0] == told[1]
        assert told[0][0] == (401 if path == "/guests" else 404)
    for name in ("Planning", "a%20b", "-a", "a" * 65, "..", "%00", "caf%C3%A9", "a%0A"):
        refused(await ada.ask("GET", f"{ROOMS}/{name}"), 404, "room_not_found")


@pytest.mark.requirement("room.rest-participants")
async def test_the_participants_are_those_who_are_here_a_page_at_a_time(
    hub, ada, bob, eve, planning
):
    path, rooms = f"{planning}/participants", hub.hub.rooms
    owner = {"id": "ada", "type": "person", "role": "owner"}
    assert await ada.get(path) == {"participants": [], "next_cursor": None, "away": [owner]}
    for each in (eve, ada, bob):
        await rooms.visit(await rooms.authenticate(each.token), "planning")
    first = await bob.get(f"{path}?limit=2")
    here = {"type": "person", "offers_tools": None}
    assert first["participants"] == [{**here, **owner}, {**here, "id": "bob", "role": "member"}]
    assert first["away"] == []
    second = await bob.get(f"{path}?limit=2&cursor={first['next_cursor']}")
    assert [one["id"] for one in second["participants"]] == ["eve"]
    assert (second["next_cursor"], "away" in second) == (None, False)
    refused(await bob.ask("GET", f"{path}?cursor=AAAA"), 400, "argument_invalid")


async def test_rights_are_granted_shown_and_revoked_and_someone_is_removed(hub, ada, bob, eve):
    await ada.create("planning", access="private", capabilities=["chat.*"])
    room = f"{ROOMS}/planning"
    done(await ada.ask("POST", f"{room}/invites", {"handle": "bob"}), 201)
    await hub.hub.rooms.visit(await hub.hub.rooms.authenticate(bob.token), "planning")
    thought = chat("", kind="reasoning.start", payload={})
    refused(await bob.post("planning", thought), 403, DENIED)
    grants, wish = f"{room}/grants", {"recipient": "bob"}
    refused(await bob.ask("POST", grants, {**wish, "capabilities": ["*"]}), 403, DENIED)
    given = {**wish, "capabilities": ["reasoning.*"]}
    granted = done(await ada.ask("POST", grants, given), 201)
    assert granted["kind"] == "capability.grant"
    done(await bob.post("planning", thought), 201)
    shown = await bob.get(grants)
    assert shown["roles"] == {**shown["roles"], "owner": ["*"], "member": ["chat.*"]}
    assert shown["grants"] == [{"id": granted["id"], "granter": "ada", **given}]
    refused(await eve.ask("GET", grants), 404, "room_not_found")
    for wrong in ({}, wish, {**wish, "capabilities": "*"}, {**wish, "capabilities": []}):
        assert (await ada.ask("POST", grants, wrong)).status == 400
    for which in ({"grant_id": granted["id"]}, wish):
        taken = done(await ada.ask("POST", f"{room}/revocations", which), 201)
        assert taken["kind"] == "capability.revoke"
        assert (await ada.get(grants))["grants"] == []
        refused(await bob.post("planning", thought), 403, DENIED)
        granted = done(await ada.ask("POST", grants, given), 201)
    refused(await bob.ask("DELETE", f"{room}/participants/ada"), 403, DENIED)
    kicked = done(await ada.ask("DELETE", f"{room}/participants/bob?reason=Noise"), 200)
    assert kicked["payload"] == {"participant": "bob", "reason": "Noise"}
    refused(await bob.ask("GET", f"{room}/messages"), 404, "room_not_found")


async def test_what_is_unread_is_listed_and_marked_as_read_by_whoever_may_enter(hub, ada, bob):
    await ada.create("planning")
    await bob.say("planning", "I am here.")
    invited = done(await ada.ask("POST", f"{ROOMS}/planning/invites", {"guest": "kim"}), 201)
    path = f"{ROOMS}/planning"
    entered = await hub.stranger.ask("POST", f"{path}/guests", {"token": invited["token"]})
    kim = Asker(hub.port, done(entered, 201)["credential"])
    said = await ada.say("planning", "Look at this, @bob and @kim.")
    away = (await kim.get(f"{path}/participants"))["away"]
    assert [(one["id"], one["role"]) for one in away] == [
        ("ada", "owner"),
        ("bob", "member"),
        ("kim", "guest"),
    ]
    for who in (bob, kim):
        (room,) = (await who.get(ROOMS))["rooms"]
        assert (room["unread"], room["mentions"]) == (1, 1)
    assert await bob.get("/v1/unread") == {
        "rooms": [{"room": "planning", "unread": 1, "mentions": 1, "invited": False}],
        "unread": 1,
        "mentions": 1,
        "invitations": 0,
    }
    read = {"room": "planning", "read_seq": said["seq"], "unread": 0, "mentions": 0}
    for who, body in ((bob, {"seq": said["seq"]}), (bob, {"seq": 1}), (bob, {}), (kim, {})):
        assert done(await who.ask("PUT", f"{path}/read", body), 200) == read
    await ada.create("secret", access="private")
    refused(await bob.ask("PUT", f"{ROOMS}/secret/read", {}), 404, "room_not_found")
    refused(await kim.ask("PUT", f"{ROOMS}/secret/read", {}), 404, "room_not_found")
    refused(await kim.ask("GET", "/v1/unread"), 403, "room_forbidden")
    refused(await hub.stranger.ask("PUT", f"{path}/read", {}), 401, "authentication_required")
    refused(await bob.ask("PUT", f"{path}/read", {"seq": -1}), 400, "argument_invalid")
