"""Rights in a room as they come and go: nobody uses what they no longer have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Answer
from tests.interaction.room_client import (
    ROOM,
    Square,
    call,
    grant,
    message,
    proposal,
    square,
)
from tests.transports.rest.support import ROOMS, Asker, done

MOW = "mcp.request.tools/call:mow"
MEMBER = ["chat.*", "capability.grant"]


async def waiting(there: Square, handle: str) -> list[str]:
    """The proposals that someone is asked to decide on."""
    found = await Asker(there.port, there.tokens[handle]).get("/v1/asks")
    return [one["id"].rpartition("/")[2] for one in found["asks"]]


async def granted_in(there: Square) -> list[str]:
    """Who holds something in the room that was granted."""
    found = await Asker(there.port, there.tokens["ann"]).get(f"{ROOMS}/{ROOM}/grants")
    return [one["recipient"] for one in found["grants"]]


@pytest.mark.parametrize("how", ["suspended", "deleted", "kicked"])
async def test_what_someone_proposed_and_granted_ends_with_their_place(tmp_path, how):
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "cat", "dan")
        await there.room("ann", capabilities=[*MEMBER, "mcp.proposal.*"])
        accounts = there.hub.accounts
        bobs = await accounts.named("bob")
        async with there.seats("ann", "bob", "cat", "dan") as (ann, bob, cat, dan):
            await ann.said(grant("bob", MOW))
            await bob.kind("system.welcome")
            await bob.said(grant("cat", MOW))
            await cat.kind("system.welcome")
            await cat.said(grant("dan", MOW))
            await dan.kind("system.welcome")
            await dan.said(call("ann"))
            proposed = await bob.said(proposal())
            assert await waiting(there, "ann") == [proposed["id"]]
            if how == "suspended":
                await accounts.suspend(bobs, suspended=True)
            elif how == "deleted":
                leaving = Asker(there.port, there.tokens["bob"])
                done(await leaving.ask("DELETE", "/v1/me?confirm=bob"), 200)
            else:
                await ann.said(message("room.kick", {"participant": "bob"}))
            assert (await ann.kind("system.proposal.withdrawn"))["payload"] == {
                "proposal": proposed["id"],
                "state": "withdrawn",
                "reason": how,
            }
            assert await waiting(there, "ann") == []
            for lost in (cat, dan):
                welcome = await lost.kind("system.welcome")
                assert MOW not in welcome["payload"]["you"]["capabilities"]
                assert (await lost.refused(call("ann")))["error"] == "proposal_required"
            assert await granted_in(there) == ([] if how == "deleted" else ["bob"])
    # Nor does it come back when the room is loaded again.
    async with (
        square(tmp_path, tokens=there.tokens) as there,
        there.seats("cat", "dan") as (cat, dan),
    ):
        for lost in (cat, dan):
            assert (await lost.refused(call("ann")))["error"] == "proposal_required"
        if how == "suspended":
            await there.hub.accounts.suspend(bobs, suspended=False)
            for back in (cat, dan):
                welcome = await back.kind("system.welcome")
                assert MOW in welcome["payload"]["you"]["capabilities"]
                assert (await back.refused(call("ann")))["error"] == "recipient_unknown"
            assert sorted(await granted_in(there)) == ["bob", "cat", "dan"]
        assert await waiting(there, "ann") == []


async def test_a_room_has_several_owners_and_is_handed_over(there):
    await there.people("ann", "bob", "cat", "dan")
    await there.room("ann", access="invite", grants={"cat": ["room.kick"]})

    async def owners(who: str, *handles: str) -> Answer:
        return await there.rest(who, "PATCH", f"/{ROOM}", {"owners": list(handles)})

    assert (await there.rest("ann", "POST", f"/{ROOM}/invites", {"handle": "bob"})).status == 201
    for stranger in ("bob", "dan", "nobody"):
        # Also one who was invited must have come in first.
        refused = await owners("ann", "ann", stranger)
        assert refused.status == 400
        assert "must join it first" in refused.json()["error"]["message"]
    async with there.seat("ann") as ann, there.seat("bob") as bob, there.seat("cat") as cat:
        assert (await owners("bob", "bob")).status == 403
        both = await owners("ann", "ann", "bob")
        assert (both.status, both.json()["owners"]) == (200, ["ann", "bob"])
        told = await bob.kind("system.welcome")
        assert told["payload"]["you"]["role"] == "owner"
        await bob.said(message("weather.report"))
        kicked = await cat.refused(message("room.kick", {"participant": "bob"}))
        assert kicked["error"] == "capability_denied"
        handed = await owners("bob", "bob")
        assert (handed.status, handed.json()["owners"]) == (200, ["bob"])
        told = await ann.kind("system.welcome")
        assert told["payload"]["you"]["role"] == "member"
        assert (await ann.refused(message("weather.report")))["error"] == "capability_denied"
        assert (await there.rest("ann", "DELETE", f"/{ROOM}")).status == 403
        assert (await owners("ann", "ann")).status == 403
        await cat.said(message("room.kick", {"participant": "ann"}))
        assert await ann.closed() == 4403
    assert (await there.rest("bob", "DELETE", f"/{ROOM}")).status == 204


@pytest.mark.settings(rooms={"max_rooms_each": 1})
async def test_whom_a_room_counts_for_goes_with_its_owners(there):
    await there.people("ann", "bob", "cat")
    await there.room("ann")
    await there.room("cat", "other")

    async def counts_for() -> str:
        row = await there.hub.store.read(
            lambda tx: tx.fetch_one(
                "SELECT u.handle FROM rooms r CROSS JOIN users u "
                "WHERE u.id = r.created_by AND r.name = ?",
                (ROOM,),
            )
        )
        return str(row[0]) if row else ""

    async with there.seat("bob"), there.seat("cat"):
        full = await there.rest("ann", "PATCH", f"/{ROOM}", {"owners": ["ann", "cat"]})
        assert (full.status, full.json()["error"]["code"]) == (429, "too_many_rooms")
        for owners, payer in ((["bob", "ann"], "ann"), (["bob"], "bob")):
            done = await there.rest("ann", "PATCH", f"/{ROOM}", {"owners": owners})
            assert done.status == 200
            assert await counts_for() == payer
    await there.room("ann", "another")
    back = await there.rest("bob", "PATCH", f"/{ROOM}", {"owners": ["bob", "ann"]})
    assert back.status == 429


async def test_the_grants_of_a_change_take_the_place_of_those_until_now(there):
    await there.people("ann", "bob", "cat", "dan")
    await there.room("ann", grants={"bob": ["mcp.request.*"], "cat": ["room.kick"]})

    async def patch(wanted: Any) -> Answer:
        return await there.rest("ann", "PATCH", f"/{ROOM}", {"grants": wanted})

    async with there.seat("bob") as bob:
        # Someone nobody else may find keeps what they hold.
        await there.hub.store.write(lambda tx: tx.execute("UPDATE users SET privacy = 'private'"))
        kept = await patch({"bob": ["mcp.request.*"]})
        assert (kept.status, kept.json()["grants"]) == (200, {"bob": ["mcp.request.*"]})
        null = await patch({"bob": None})
        assert (null.status, null.json()["error"]["code"]) == (400, "argument_invalid")
        assert (await patch({"dan": ["chat.*"]})).status == 404
        assert (await bob.refused(call("cat")))["error"] == "recipient_unknown"
        none = await patch({})
        assert (none.status, none.json()["grants"]) == (200, {})
        assert (await bob.refused(call("cat")))["error"] == "proposal_required"
