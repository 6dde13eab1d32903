from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.harness import ask
from tests.transports.rest.support import ROOMS, Asker, House, chat, done, house, refused, until


@pytest.mark.requirement("room.rest-post")
async def test_a_message_comes_back_as_it_is_stored(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
    sent = b'{"protocol":"mcpx/v1", "kind":"chat.message","payload":{"text":"h\\u0069"}}'
    answer = await ada.post("planning", sent)
    stored = done(answer, 201)
    assert stored["seq"] == 1
    assert stored["from"] == "ada"
    assert stored["id"]
    # The sender's own bytes, behind what the hub added.
    assert answer.body.endswith(sent[1:])
    page = await ada.ask("GET", f"{ROOMS}/planning/messages")
    assert answer.body in page.body


@pytest.mark.requirement("chat.rest-broadcast")
async def test_a_posted_message_reaches_everyone_in_the_room_in_the_same_bytes(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning")
    url = f"ws://127.0.0.1:{hub.port}/ws?room=planning&token={bob.token}"
    async with connect(url) as socket:
        assert json.loads(await socket.recv())["kind"] == "system.welcome"
        answer = await ada.post("planning", chat("Good morning!"))
        while (heard := await socket.recv(decode=False)) != answer.body:
            assert json.loads(heard)["kind"].startswith("system.")


@pytest.mark.requirement("room.rest-history")
async def test_history_is_read_after_a_seq_before_one_and_from_its_end(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
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


async def test_waiting_ends_with_the_next_message(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning")
    first = await ada.say("planning", "before")
    # What is there already is not waited for.
    page = await bob.read("planning", "?after=0&wait=55")
    assert [message["id"] for message in page["messages"]] == [first["id"]]
    waiting = asyncio.ensure_future(bob.read("planning", "?after=1&wait=55"))
    await until(lambda: in_flight(hub) == 1)
    second = await ada.say("planning", "at last")
    page = await waiting
    assert [message["id"] for message in page["messages"]] == [second["id"]]
    assert page["last_seq"] == 2


def in_flight(here: Any) -> int:
    """How many requests the hub is busy with."""
    return here.hub.metrics.in_flight


async def test_waiting_ends_when_its_time_is_over(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
    page = await ada.read("planning", "?after=0&wait=1")
    assert page["messages"] == []


async def test_a_stopping_hub_ends_all_waiting_at_once_and_says_why(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        ada = await here.person("ada")
        await ada.create("planning")
        path = f"{ROOMS}/planning/messages?after=0&wait=55"
        waiting = asyncio.ensure_future(ada.ask("GET", path))
        await until(lambda: in_flight(here) == 1)
    answer = await waiting
    if answer.status != 200:
        refused(answer, 503, "hub_stopping")


async def test_whoever_leaves_while_waiting_is_waited_for_no_longer(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
    waiting = asyncio.ensure_future(ada.read("planning", "?after=0&wait=55"))
    await until(lambda: in_flight(hub) == 1)
    waiting.cancel()
    await until(lambda: in_flight(hub) == 0)


async def test_a_token_that_ended_meanwhile_is_told_nothing(hub: House) -> None:
    ada = await hub.person("ada")
    made = await hub.hub.accounts.register("bob")
    bob = Asker(hub.port, made.token)
    await ada.create("planning")
    path = f"{ROOMS}/planning/messages?after=0&wait=55"
    waiting = asyncio.ensure_future(bob.ask("GET", path))
    await until(lambda: in_flight(hub) == 1)
    await hub.hub.accounts.recover("bob", made.recovery_code)
    await ada.say("planning", "not for the old token")
    refused(await waiting, 401, "token_invalid")


async def test_whoever_is_put_out_meanwhile_is_told_nothing(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning")
    await bob.say("planning", "here I am")
    visitor = await hub.hub.rooms.authenticate(bob.token)
    await hub.hub.rooms.visit(visitor, "planning")
    last = (await bob.read("planning"))["last_seq"]
    path = f"{ROOMS}/planning/messages?after={last}&wait=55"
    waiting = asyncio.ensure_future(bob.ask("GET", path))
    await until(lambda: in_flight(hub) == 1)
    kick = {"protocol": "mcpx/v1", "kind": "room.kick", "payload": {"participant": "bob"}}
    done(await ada.post("planning", kick), 201)
    refused(await waiting, 403, "room_forbidden")


@pytest.mark.requirement("room.rest-post")
async def test_a_refusal_says_what_was_attempted_and_what_is_allowed(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning", capabilities=["chat.*"])
    envelope = {"protocol": "mcpx/v1", "kind": "reasoning.start", "payload": {}}
    told = refused(await bob.post("planning", envelope), 403, "capability_denied")
    assert told["attempted_kind"] == "reasoning.start"
    assert told["your_capabilities"] == ["chat.*"]
    told = refused(await bob.post("planning", chat("x", **{"from": "ada"})), 403, "sender_forged")
    assert told["attempted_kind"] == "chat.message"
    assert (await ada.read("planning"))["messages"] == []


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"kind": "system.welcome"}, 403, "kind_reserved"),
        ({"kind": "room.invite-ack"}, 403, "kind_reserved"),
        ({"kind": "nonsense"}, 400, "kind_syntax"),
        ({"protocol": "mcpx/v2"}, 400, "unsupported_protocol"),
        ({"to": "ada"}, 400, "invalid_envelope"),
        ({"to": ["bob", "bob"]}, 400, "recipient_invalid"),
        ({"payload": {}}, 400, "payload_invalid"),
        ({"kind": "mcpx.withdraw.proposal", "correlation_id": ["x"]}, 404, "proposal_unknown"),
    ],
)
async def test_a_message_that_breaks_a_rule_is_refused_by_its_own_error(
    hub: House, change: dict[str, Any], status: int, code: str
) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
    refused(await ada.post("planning", {**chat("x"), **change}), status, code)
    assert (await ada.read("planning"))["messages"] == []


async def test_a_message_sent_again_is_refused_with_the_seq_of_the_first(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning")
    first = await ada.say("planning", "once", id="my-own")
    again = await ada.post("planning", chat("once", id="my-own"))
    assert refused(again, 409, "id_used")["seq"] == first["seq"]
    others = await bob.post("planning", chat("once", id="my-own"))
    assert "seq" not in refused(others, 409, "id_used")


@pytest.mark.requirement("chat.rate-limit")
async def test_chat_over_its_rate_is_refused_with_the_time_to_wait(tmp_path: Path) -> None:
    rates = {"chat_person_per_minute": 2}
    async with house(tmp_path, rate_limits="on", rates=rates) as here:
        ada = await here.person("ada")
        await ada.create("planning")
        for text in ("one", "two"):
            await ada.say("planning", text)
        answer = await ada.post("planning", chat("three"))
        told = refused(answer, 429, "rate_limited")
        assert answer.headers["retry-after"] == str(told["retry_after"])
        assert 0 < told["retry_after"] <= 60
        assert told["attempted_kind"] == "chat.message"


async def test_proposals_are_listed_with_what_came_of_them(hub: House) -> None:
    ada, bob = await hub.people("ada", "bob")
    await ada.create("planning")
    path = f"{ROOMS}/planning/proposals"
    assert await ada.get(path) == {"proposals": [], "next_cursor": None}
    sent = []
    for number in range(3):
        payload = {"method": "tools/call", "params": {"name": "lamp", "n": number}}
        kind = "mcp.proposal.tools/call:lamp"
        envelope = {"protocol": "mcpx/v1", "kind": kind, "payload": payload}
        sent.append(done(await bob.post("planning", envelope), 201))
    reject = {
        "protocol": "mcpx/v1",
        "kind": "mcpx.reject.proposal",
        "correlation_id": [sent[0]["id"]],
        "payload": {"reason": "too bright"},
    }
    done(await ada.post("planning", reject), 201)
    everything = (await bob.get(path))["proposals"]
    assert [one["id"] for one in everything] == [one["id"] for one in reversed(sent)]
    oldest = everything[-1]
    assert oldest["state"] == "rejected"
    assert oldest["closed_by"] == "ada"
    assert oldest["proposer"] == "bob"
    assert oldest["message"] == sent[0]
    open_ones = (await bob.get(f"{path}?state=open&limit=1"))["proposals"]
    assert [one["id"] for one in open_ones] == [sent[2]["id"]]


async def test_proposals_are_paged_and_a_forged_cursor_is_refused(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
    for number in range(5):
        payload = {"method": "tools/call", "params": {"name": "lamp", "n": number}}
        kind = "mcp.proposal.tools/call"
        envelope = {"protocol": "mcpx/v1", "kind": kind, "payload": payload}
        done(await ada.post("planning", envelope), 201)
    path, query, found = f"{ROOMS}/planning/proposals", "?limit=2", []
    for _ in range(3):
        page = await ada.get(f"{path}{query}")
        found += [one["seq"] for one in page["proposals"]]
        query = f"?limit=2&cursor={page['next_cursor']}"
    assert page["next_cursor"] is None
    assert found == [5, 4, 3, 2, 1]
    for forged in ("YWRh", "MQ==", "4pGg", "x"):
        answer = await ada.ask("GET", f"{path}?cursor={forged}")
        refused(answer, 400, "argument_invalid")


async def test_head_answers_as_get_does_without_the_body(hub: House) -> None:
    ada = await hub.person("ada")
    await ada.create("planning")
    head = await ask(
        hub.port,
        f"{ROOMS}/planning",
        method="HEAD",
        headers={"authorization": f"Bearer {ada.token}"},
    )
    get = await ada.ask("GET", f"{ROOMS}/planning")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
