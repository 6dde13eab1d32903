from __future__ import annotations

import pytest

from tests.harness import Answer
from tests.transports.rest.support import ROOMS, House, done, refused

UNKNOWN = "there-is-none"

DENIED = "capability_denied"


@pytest.mark.requirement("room.rest-rooms")
async def test_whoever_makes_a_room_owns_it_and_is_told_where_it_is(hub: House) -> None:
    ada = await hub.person("ada")
    spec = {
        "name": "planning",
        "access": "invite",
        "durable": False,
        "capabilities": ["chat.*", {"kind": "mcp.request.*", "payload": {"method": "x"}}],
        "policy": {"quorum": 2, "keep_messages": 500},
    }
    answer = await ada.ask("POST", ROOMS, spec)
    made = done(answer, 201)
    assert answer.headers["location"] == f"{ROOMS}/planning"
    assert made["name"] == "planning"
    assert made["access"] == "invite"
    assert made["durable"] is False
    assert made["role"] == "owner"
    assert made["owners"] == ["ada"]
    assert made["capabilities"] == spec["capabilities"]
    assert made["policy"]["quorum"] == 2
    assert await ada.get(answer.headers["location"]) == made


@pytest.mark.requirement("room.rest-rooms")
async def test_the_list_shows_open_rooms_those_for_the_invited_and_ones_own(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    for access in ("open", "invite", "private"):
        await ada.create(f"a-{access}", access=access)
    assert [room["name"] for room in (await ada.get(ROOMS))["rooms"]] == [
        "a-invite",
        "a-open",
        "a-private",
    ]
    seen = await bob.get(ROOMS)
    assert [room["name"] for room in seen["rooms"]] == ["a-invite", "a-open"]
    assert [room["role"] for room in seen["rooms"]] == [None, None]
    assert [room["may_enter"] for room in seen["rooms"]] == [False, True]
    for name in ("a-invite", "a-private"):
        done(await ada.ask("POST", f"{ROOMS}/{name}/invites", {"handle": "bob"}), 201)
    invited = (await bob.get(ROOMS))["rooms"]
    assert [room["may_enter"] for room in invited] == [True, True, True]
    assert (await bob.get(f"{ROOMS}/a-invite"))["may_enter"] is True
    assert seen["next_cursor"] is None


async def test_a_cursor_leads_through_all_rooms_once(hub: House) -> None:
    ada = await hub.person("ada")
    names = [f"room-{number}" for number in range(5)]
    for name in names:
        await ada.create(name)
    found: list[str] = []
    query = "?limit=2"
    for _ in range(3):
        page = await ada.get(f"{ROOMS}{query}")
        found += [room["name"] for room in page["rooms"]]
        query = f"?limit=2&cursor={page['next_cursor']}"
    assert page["next_cursor"] is None
    assert found == names


async def test_an_owner_changes_what_is_named_and_nothing_else(hub: House) -> None:
    ada, _ = await hub.people("ada", "bob")
    before = await ada.create("planning", policy={"quorum": 3})
    changed = done(
        await ada.ask(
            "PATCH", f"{ROOMS}/planning", {"access": "private", "grants": {"bob": ["*"]}}
        ),
        200,
    )
    assert changed == {**before, "access": "private", "grants": {"bob": ["*"]}}
    assert await ada.get(f"{ROOMS}/planning") == changed


async def test_only_owners_see_grants_change_a_room_or_delete_it(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning", grants={"bob": ["mcp.request.*"]})
    await bob.say("planning", "I am a member")
    seen = await bob.get(f"{ROOMS}/planning")
    assert seen["role"] == "member"
    assert "grants" not in seen
    for method, content in (("PATCH", {"access": "open"}), ("DELETE", None)):
        answer = await bob.ask(method, f"{ROOMS}/planning", content)
        refused(answer, 403, "room_forbidden")
    assert (await ada.get(f"{ROOMS}/planning"))["access"] == "open"


async def test_a_deleted_room_is_gone_with_what_was_said(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
    await ada.say("planning", "soon gone")
    answer = await ada.ask("DELETE", f"{ROOMS}/planning")
    assert (answer.status, answer.body) == (204, b"")
    refused(await ada.ask("GET", f"{ROOMS}/planning"), 404, "room_not_found")
    await ada.create("planning")
    assert (await ada.read("planning"))["messages"] == []


async def test_a_name_is_taken_once(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning", access="private")
    answer = await bob.ask("POST", ROOMS, {"name": "planning"})
    refused(answer, 409, "room_name_taken")


@pytest.mark.settings(rooms={"max_rooms_each": 1})
async def test_one_owns_as_many_rooms_as_the_hub_lets_one(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("one")
    refused(await ada.ask("POST", ROOMS, {"name": "two"}), 429, "too_many_rooms")


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


async def test_the_private_room_of_another_is_answered_like_one_that_is_not_there(
    hub: House,
) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("secret", access="private")
    for method, path, content in REQUESTS:
        private = await bob.ask(method, f"{ROOMS}/secret{path}", content)
        unknown = await bob.ask(method, f"{ROOMS}/{UNKNOWN}{path}", content)
        assert private.status == (401 if path == "/guests" else 404)
        assert (private.status, private.body) == (unknown.status, unknown.body)
        assert like(private) == like(unknown)


def like(answer: Answer) -> dict[str, str]:
    """The head of an answer without what differs each time."""
    return {k: v for k, v in answer.headers.items() if k not in {"x-request-id", "date"}}


async def test_a_room_for_the_invited_is_known_and_closed_to_others(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("club", access="invite")
    assert (await bob.get(f"{ROOMS}/club"))["role"] is None
    for method, path, content in REQUESTS[1:-1]:
        answer = await bob.ask(method, f"{ROOMS}/club{path}", content)
        refused(answer, 403, "room_forbidden")
    await ada.ask("POST", f"{ROOMS}/club/invites", {"handle": "bob"})
    assert (await bob.ask("GET", f"{ROOMS}/club/messages")).status == 200


async def test_what_can_be_no_rooms_name_is_no_room(hub: House) -> None:
    ada = await hub.person("ada")
    for name in ("Planning", "a%20b", "-a", "a" * 65, "..", "%00", "caf%C3%A9", "a%0A"):
        refused(await ada.ask("GET", f"{ROOMS}/{name}"), 404, "room_not_found")


@pytest.mark.requirement("room.rest-participants")
async def test_the_participants_are_those_who_are_here_a_page_at_a_time(hub: House) -> None:
    ada, bob, eve = await hub.people("ada", "bob", "eve")
    await ada.create("planning")
    assert await ada.get(f"{ROOMS}/planning/participants") == {
        "participants": [],
        "next_cursor": None,
    }
    for each in (eve, ada, bob):
        visitor = await hub.hub.rooms.authenticate(each.token)
        await hub.hub.rooms.visit(visitor, "planning")
    first = await bob.get(f"{ROOMS}/planning/participants?limit=2")
    assert first["participants"] == [
        {"id": "ada", "type": "person", "role": "owner", "offers_tools": None},
        {"id": "bob", "type": "person", "role": "member", "offers_tools": None},
    ]
    cursor = first["next_cursor"]
    second = await bob.get(f"{ROOMS}/planning/participants?limit=2&cursor={cursor}")
    assert [one["id"] for one in second["participants"]] == ["eve"]
    assert second["next_cursor"] is None
    for forged in ("AAAA", "YWRh=", "%C3%A9", "..", "_w"):
        path = f"{ROOMS}/planning/participants?cursor={forged}"
        refused(await bob.ask("GET", path), 400, "argument_invalid")


async def test_rights_are_granted_and_revoked_and_someone_is_removed(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning", capabilities=["chat.*"])
    await bob.say("planning", "Here I am.")
    visitor = await hub.hub.rooms.authenticate(bob.token)
    await hub.hub.rooms.visit(visitor, "planning")
    thought = {"protocol": "mcpx/v1", "kind": "reasoning.start", "payload": {}}
    refused(await bob.post("planning", thought), 403, "capability_denied")
    grants, wish = f"{ROOMS}/planning/grants", {"recipient": "bob"}
    refused(await bob.ask("POST", grants, {**wish, "capabilities": ["*"]}), 403, DENIED)
    given = await ada.ask("POST", grants, {**wish, "capabilities": ["reasoning.*"]})
    assert done(given, 201)["kind"] == "capability.grant"
    done(await bob.post("planning", thought), 201)
    for wrong in ({}, wish, {**wish, "capabilities": "*"}, {**wish, "capabilities": []}):
        assert (await ada.ask("POST", grants, wrong)).status == 400
    taken = await ada.ask("POST", f"{ROOMS}/planning/revocations", wish)
    assert done(taken, 201)["kind"] == "capability.revoke"
    refused(await bob.post("planning", thought), 403, "capability_denied")
    path = f"{ROOMS}/planning/participants"
    refused(await bob.ask("DELETE", f"{path}/ada"), 403, DENIED)
    kicked = done(await ada.ask("DELETE", f"{path}/bob?reason=Noise"), 200)
    assert kicked["payload"] == {"participant": "bob", "reason": "Noise"}
    refused(await bob.ask("GET", f"{ROOMS}/planning/messages"), 403, "room_forbidden")


async def test_who_is_in_a_room_reads_who_may_do_what_there(hub: House) -> None:
    ada, bob, eve = await hub.people("ada", "bob", "eve")
    await ada.create("square", access="private")
    rights = f"{ROOMS}/square/grants"
    done(await ada.ask("POST", f"{ROOMS}/square/invites", {"handle": "bob"}), 201)
    visitor = await hub.hub.rooms.authenticate(bob.token)
    await hub.hub.rooms.visit(visitor, "square")
    given = {"recipient": "bob", "capabilities": ["room.invite"]}
    granted = done(await ada.ask("POST", rights, given), 201)
    shown = await bob.get(rights)
    assert shown["roles"]["owner"] == ["*"]
    assert "mcp.proposal.*" in shown["roles"]["member"]
    assert "mcp.proposal.*" not in shown["roles"]["guest"]
    assert shown["grants"] == [
        {
            "id": granted["id"],
            "recipient": "bob",
            "granter": "ada",
            "capabilities": ["room.invite"],
        }
    ]
    done(
        await ada.ask("POST", f"{ROOMS}/square/revocations", {"grant_id": granted["id"]}),
        201,
    )
    assert (await ada.get(rights))["grants"] == []
    refused(await eve.ask("GET", rights), 404, "room_not_found")
