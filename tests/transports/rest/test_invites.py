"""Invitations that nobody has used yet: listed, withdrawn, and by whom."""

from __future__ import annotations

from tests.transports.rest.support import ROOMS, done, refused
from tests.transports.rest.test_guests import exchange, invited
from tests.transports.rest.test_tapes import operator

MINE, ALL = "/v1/me/invites", "/v1/invites"
NO_SUCH = "i_" + "0" * 24


async def test_people_list_and_withdraw_their_own_invitations_and_operators_all(hub):
    root = await operator(hub)
    ann, bob = await hub.people("ann", "bob")
    assert await ann.get(MINE) == {"invites": [], "next_cursor": None}
    hello = {"message": "Come aboard!"}
    codes = [done(await who.ask("POST", ALL, hello), 201)["invite_code"] for who in (ann, ann, bob)]
    made = done(await root.ask("POST", "/v1/people/cleo/invite", {"days": 1}), 200)
    for who in (ann, bob):
        refused(await who.ask("GET", ALL), 403, "scope_missing")
        refused(await who.ask("DELETE", f"{ALL}/{NO_SUCH}"), 403, "scope_missing")
    mine = (await ann.get(MINE))["invites"]
    assert [(it["invited_by"], it["has_message"]) for it in mine] == [("ann", True)] * 2
    listed = await root.get(ALL)
    everyone = [(it["invited_by"], it["handle"]) for it in listed["invites"]]
    known = [*[("ann", None)] * 2, ("bob", None), (None, "cleo")]
    assert sorted(everyone, key=str) == known
    # The list opens nothing.
    for code in (*codes, made["invite_code"]):
        assert code not in str(listed) + str(mine)
        assert code[:8] not in str(listed)
    bobs = (await bob.get(MINE))["invites"][0]["id"]
    for path in (f"{MINE}/{bobs}", f"{MINE}/{NO_SUCH}", f"{MINE}/i_%25", f"{MINE}/i_"):
        refused(await ann.ask("DELETE", path), 404, "invite_not_open")
    done(await ann.ask("DELETE", f"{MINE}/{mine[0]['id']}"), 204)
    refused(await ann.ask("DELETE", f"{MINE}/{mine[0]['id']}"), 404, "invite_not_open")
    assert [it["id"] for it in (await ann.get(MINE))["invites"]] == [mine[1]["id"]]
    done(await root.ask("DELETE", f"{ALL}/{bobs}"), 204)
    statuses = []
    for at, code in enumerate(codes):
        asked = {"handle": f"new{at}", "invite_code": code}
        statuses.append((await hub.stranger.ask("POST", "/v1/accounts", asked)).status)
    # One of ann's two is good, the other one and bob's are not.
    assert (sorted(statuses[:2]), statuses[2]) == ([201, 400], 400)
    # What was used is open no longer, and cannot be withdrawn.
    assert (await ann.get(MINE))["invites"] == []
    refused(await ann.ask("DELETE", f"{MINE}/{mine[1]['id']}"), 404, "invite_not_open")
    lines = (await root.get("/v1/audit?action=invite.withdrawn"))["lines"]
    assert {(it["by"], it["about"]) for it in lines} == {("ann", mine[0]["id"]), ("otto", bobs)}


async def test_open_invitations_come_in_pages_and_end_with_their_time(hub, clock):
    root = await operator(hub)
    for name in ("ada", "bea", "cyd"):
        done(await root.ask("POST", f"/v1/people/{name}/invite", {"days": 1}), 200)
    first = await root.get(f"{ALL}?limit=2")
    rest = await root.get(f"{ALL}?limit=2&cursor={first['next_cursor']}")
    found = [it["handle"] for it in (*first["invites"], *rest["invites"])]
    assert (sorted(found), rest["next_cursor"]) == (["ada", "bea", "cyd"], None)
    refused(await root.ask("GET", f"{ALL}?cursor=bm90aGluZw"), 400, "argument_invalid")
    clock.advance(2 * 86_400)
    assert (await root.get(ALL))["invites"] == []


async def test_owners_and_inviters_see_and_withdraw_whom_a_room_waits_for(hub, ann, bob, cyd):
    invite = {"capabilities": ["chat", "room.invite"]}
    await ann.create("planning", access="invite", **invite)
    path = f"{ROOMS}/planning/invites"
    for handle in ("bob", "cyd"):
        done(await ann.ask("POST", path, {"handle": handle}), 201)
    await bob.say("planning", "Here I am.")
    mine, hers = await invited(bob, guest="gus"), await invited(ann, guest="grace")
    seen = (await ann.get(path))["invitations"]
    assert [(it["handle"], it["guest"], it["invited_by"]) for it in seen] == [
        ("cyd", None, None),
        (None, "grace", "ann"),
        (None, "gus", "bob"),
    ]
    assert [it["guest"] for it in (await bob.get(path))["invitations"]] == ["gus"]
    for name in ("grace", "cyd", "nobody"):
        refused(await bob.ask("DELETE", f"{path}/{name}"), 404, "invite_not_open")
    done(await bob.ask("DELETE", f"{path}/gus"), 204)
    refused(await exchange(hub, mine), 401, "invitation_invalid")
    done(await ann.ask("DELETE", f"{path}/cyd"), 204)
    refused(await cyd.ask("GET", path), 403, "room_forbidden")
    # Who came is no invitation any more.
    done(await exchange(hub, hers), 201)
    refused(await ann.ask("DELETE", f"{path}/grace"), 404, "invite_not_open")
    refused(await ann.ask("DELETE", f"{path}/bob"), 404, "invite_not_open")
    assert (await ann.get(path))["invitations"] == []
    await ann.create("hidden", access="private")
    refused(await bob.ask("GET", f"{ROOMS}/hidden/invites"), 404, "room_not_found")
