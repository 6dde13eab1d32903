from __future__ import annotations

import asyncio

import pytest
from websockets.asyncio.client import connect

from tests.transports.rest.support import ROOMS, Asker, chat, done, house, refused


@pytest.mark.requirement("room.rest-post", "chat.rest-broadcast")
async def test_a_message_comes_back_as_it_is_stored_and_heard(hub, ada, bob, planning):
    sent = b'{"protocol":"mcpx/v1", "kind":"chat.message","payload":{"text":"h\\u0069"}}'
    async with connect(f"ws://127.0.0.1:{hub.port}/ws?room=planning&token={bob.token}") as socket:
        assert b"system.welcome" in await socket.recv(decode=False)
        answer = await ada.post("planning", sent)
        while (heard := await socket.recv(decode=False)) != answer.body:
            assert b'"kind":"system.' in heard
    stored = done(answer, 201)
    # The first is of Bob, who came in.
    assert (stored["seq"], stored["from"], stored["id"] != "") == (2, "ada", True)
    # The sender's own bytes, behind what the hub added.
    assert answer.body.endswith(sent[1:])
    assert answer.body in (await ada.ask("GET", f"{planning}/messages")).body


@pytest.mark.requirement("room.rest-history")
async def test_history_is_read_after_a_seq_before_one_and_from_its_end(ada, planning):
    for number in range(1, 8):
        await ada.say("planning", f"{number}")

    async def seqs(query: str) -> list[int]:
        page = await ada.read("planning", query)
        assert (page["first_seq"], page["last_seq"]) == (1, 7)
        return [message["seq"] for message in page["messages"]]

    assert await seqs("") == [1, 2, 3, 4, 5, 6, 7]
    assert await seqs("?limit=3") == [5, 6, 7]
    assert await seqs("?after=2&limit=3") == [3, 4, 5]
    assert await seqs("?before=4&limit=2") == [2, 3]
    assert await seqs("?after=2&before=5") == [3, 4]
    assert await seqs("?after=7") == []
    assert await seqs("?after=9007199254740991") == []
    assert await seqs("?before=1") == []
    assert await seqs("?before=0") == []


async def test_waiting_ends_with_the_next_message(hub, ada, bob, planning):
    first = await ada.say("planning", "before")
    # What is there already is not waited for.
    page = await bob.read("planning", "?after=0&wait=55")
    assert [message["id"] for message in page["messages"]] == [first["id"]]
    waiting = asyncio.ensure_future(bob.read("planning", "?after=1&wait=55"))
    await hub.busy_with(1)
    second = await ada.say("planning", "at last")
    page = await waiting
    assert [message["id"] for message in page["messages"]] == [second["id"]]
    assert page["last_seq"] == 2


async def test_a_stopping_hub_ends_all_waiting_at_once_and_says_why(tmp_path):
    async with house(tmp_path) as here:
        ada = await here.person("ada")
        await ada.create("planning")
        path = f"{ROOMS}/planning/messages?after=0&wait=55"
        waiting = asyncio.ensure_future(ada.ask("GET", path))
        await here.busy_with(1)
    answer = await waiting
    if answer.status != 200:
        refused(answer, 503, "hub_stopping")


async def test_whoever_leaves_while_waiting_is_waited_for_no_longer(hub, ada, planning):
    waiting = asyncio.ensure_future(ada.read("planning", "?after=0&wait=55"))
    await hub.busy_with(1)
    waiting.cancel()
    await hub.busy_with(0)


async def test_a_token_that_ended_meanwhile_is_told_nothing(hub, ada):
    made = await hub.hub.accounts.register("bob")
    bob = Asker(hub.port, made.token)
    await ada.create("planning")
    path = f"{ROOMS}/planning/messages?after=0&wait=55"
    waiting = asyncio.ensure_future(bob.ask("GET", path))
    await hub.busy_with(1)
    await hub.hub.accounts.recover("bob", made.recovery_code)
    await ada.say("planning", "not for the old token")
    refused(await waiting, 401, "token_invalid")


REFUSED = (
    ({"kind": "reasoning.start"}, 403, "capability_denied"),
    ({"from": "ada"}, 403, "sender_forged"),
    ({"kind": "system.welcome"}, 403, "kind_reserved"),
    ({"kind": "nonsense"}, 400, "kind_syntax"),
    ({"to": ["bob", "bob"]}, 400, "recipient_invalid"),
    ({"payload": {}}, 400, "payload_invalid"),
    ({"id": "used"}, 409, "id_used"),
    ({"kind": "mcpx.withdraw.proposal", "correlation_id": ["x"]}, 404, "proposal_unknown"),
)


@pytest.mark.requirement("room.rest-post")
async def test_a_message_that_breaks_a_rule_is_refused_by_its_own_error(ada, bob):
    await ada.create("planning", capabilities=["chat.*", "mcpx.withdraw.*"])
    await ada.say("planning", "first", id="used")
    for change, status, code in REFUSED:
        told = refused(await bob.post("planning", {**chat("x"), **change}), status, code)
        if status == 403:
            assert told["attempted_kind"] == change.get("kind", "chat.message")
        if code == "capability_denied":
            assert told["your_capabilities"] == ["chat.*", "mcpx.withdraw.*"]
    assert (await ada.read("planning"))["last_seq"] == 1


async def test_proposals_are_listed_with_what_came_of_them(ada, bob, planning):
    path = f"{planning}/proposals"
    assert await ada.get(path) == {"proposals": [], "next_cursor": None}
    sent = []
    for number in range(3):
        payload = {"method": "tools/call", "params": {"name": "lamp", "n": number}}
        envelope = chat("", kind="mcp.proposal.tools/call:lamp", payload=payload)
        sent.append(done(await bob.post("planning", envelope), 201))
    why = {"kind": "mcpx.reject.proposal", "payload": {"reason": "too bright"}}
    done(await ada.post("planning", chat("", correlation_id=[sent[0]["id"]], **why)), 201)
    page = await bob.get(f"{path}?limit=2")
    rest = await bob.get(f"{path}?limit=2&cursor={page['next_cursor']}")
    assert [one["id"] for one in page["proposals"]] == [sent[2]["id"], sent[1]["id"]]
    (oldest,) = rest["proposals"]
    told = {"state": "rejected", "closed_by": "ada", "proposer": "bob", "message": sent[0]}
    assert oldest == {**oldest, **told}
    assert rest["next_cursor"] is None
    open_ones = (await bob.get(f"{path}?state=open&limit=1"))["proposals"]
    assert [one["id"] for one in open_ones] == [sent[2]["id"]]
    for forged in ("YWRh", "x"):
        refused(await ada.ask("GET", f"{path}?cursor={forged}"), 400, "argument_invalid")
