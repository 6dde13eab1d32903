"""Mail, people and accounts over REST: the operations of the tools, by the same rights."""

from __future__ import annotations

import asyncio

import pytest

from tests.harness import Answer
from tests.mcp_harness import until
from tests.transports.rest.support import Asker, house

OPEN = {"public_url": "https://hub.example", "registration": "open"}


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


async def test_mail_is_sent_read_answered_and_deleted(ann, bob):
    message = (await ann.did("POST", "/v1/messages", {"to": "bob", "body": "Tea?"}))["message_id"]
    for _ in range(2):
        # A look marks nothing as read.
        (got,) = (await bob.get("/v1/messages"))["messages"]
        assert (got["body"], got["unread"]) == ("Tea?", True)
    assert "notice" not in await bob.get("/v1/messages")
    thread = f"/v1/threads/{got['thread_id']}"
    await bob.did("POST", f"/v1/messages/{message}/replies", {"body": "At four."})
    assert len((await ann.get(thread))["messages"]) == 2
    assert (await ann.get("/v1/digest"))["total_unread"] == 1
    await ann.did("PUT", f"{thread}/read", {})
    assert (await ann.get("/v1/digest"))["total_unread"] == 0
    for state, word in (("archived", "archive"), ("starred", "star"), ("muted", "mute")):
        assert (await ann.did("PUT", f"{thread}/{word}"))["state"] == state
        (listed,) = (await ann.get(f"/v1/threads?state={state}"))["threads"]
        assert listed["id"] == got["thread_id"]
        assert (await ann.did("DELETE", f"{thread}/{word}"))["state"] == "active"
    await bob.did("DELETE", f"/v1/messages/{message}")
    assert code(await bob.ask("DELETE", f"/v1/messages/{message}"))[0] == 404
    await ann.did("DELETE", thread)
    assert (await ann.get("/v1/threads"))["threads"] == []
    assert code(await ann.ask("GET", thread))[0] in (403, 404)


async def test_accounts_and_people_are_made_found_and_changed(hub, bob):
    wanted = "POST", "/v1/accounts", {"handle": "ann"}
    made = await hub.stranger.did(*wanted)
    assert f":{hub.port}/mcp?token=" in made["server_url"]
    assert code(await hub.stranger.ask(*wanted)) == (409, "handle_taken")
    recovery = {"handle": "ann", "recovery_code": made["recovery_code"]}
    token = (await hub.stranger.did("POST", "/v1/accounts/recover", recovery))["token"]
    ann, old = Asker(hub.port, token, "ann"), Asker(hub.port, made["token"])
    assert code(await old.ask("GET", "/v1/me")) == (401, "token_invalid")
    await ann.did("PATCH", "/v1/me", {"bio": "Sails.", "display_name": None})
    assert (await ann.get("/v1/me"))["bio"] == "Sails."
    assert (await bob.get("/v1/people/ann"))["bio"] == "Sails."
    assert (await bob.get("/v1/people?query=an"))["results"][0]["handle"] == "ann"
    await bob.did("PUT", "/v1/contacts/ann", {"nickname": "Annie"})
    assert (await bob.get("/v1/contacts"))["contacts"][0]["nickname"] == "Annie"
    await bob.did("DELETE", "/v1/contacts/ann")
    await bob.did("PUT", "/v1/blocks/ann")
    assert (await bob.get("/v1/blocks"))["blocked"] == ["ann"]
    refused = await ann.ask("POST", "/v1/messages", {"to": "bob", "body": "Tea?"})
    assert code(refused) == (403, "cannot_send")
    await bob.did("DELETE", "/v1/blocks/ann")
    invited = await bob.did("POST", "/v1/invites", {})
    assert invited["invite_url"].endswith(invited["invite_code"])
    await ann.did("PUT", "/v1/me/handle", {"new_handle": "anna"})
    assert code(await ann.ask("DELETE", "/v1/me")) == (400, "argument_invalid")
    await ann.did("DELETE", "/v1/me?confirm=anna")
    assert code(await ann.ask("GET", "/v1/me")) == (401, "token_invalid")


async def test_arguments_are_refused_in_the_words_of_the_tool(hub, ann):
    for method, path, body, sentence in (
        ("POST", "/v1/messages", {"body": "x"}, "Missing argument: to."),
        ("POST", "/v1/messages", {"to": 7}, "to must be a string."),
        ("POST", "/v1/messages", {"to": "x", "cc": "y"}, "Unknown argument: cc."),
        # What the path and the route itself say cannot be said otherwise.
        ("PUT", "/v1/contacts/bob", {"handle": "cyd"}, "Unknown argument: handle."),
        ("GET", "/v1/people", None, "Missing argument: query."),
    ):
        answer = await ann.ask(method, path, body)
        assert answer.status == 400
        assert answer.json()["error"]["message"] == sentence
    assert code(await ann.ask("GET", "/v1/messages?peek=false")) == (400, "query_invalid")
    assert code(await ann.ask("GET", "/v1/messages?limit=1000")) == (400, "query_invalid")
    assert code(await hub.stranger.ask("GET", "/v1/me")) == (401, "authentication_required")


@pytest.mark.settings(rate_limits="on", rates={"search_per_minute": 1})
async def test_limits_count_what_comes_this_way_too(ann):
    await ann.get("/v1/people?query=bob")
    limited = await ann.ask("GET", "/v1/people?query=bob")
    assert code(limited) == (429, "rate_limited")
    assert int(limited.headers["retry-after"]) > 0


@pytest.mark.parametrize("behind", [OPEN, {"http": {"trusted_proxies": ["10.0.0.1"]}}])
async def test_behind_a_proxy_nobody_counts_as_sitting_at_the_hub(behind, tmp_path):
    rates = {"register_per_hour": 1}
    async with house(tmp_path, rate_limits="on", rates=rates, **behind) as here:
        await here.stranger.did("POST", "/v1/accounts", {"handle": "ann"})
        second = await here.stranger.ask("POST", "/v1/accounts", {"handle": "bob"})
        assert code(second) == (429, "rate_limited")


@pytest.mark.settings(rate_limits="on", rates={"export_per_hour": 2})
async def test_someone_takes_away_all_that_is_theirs_a_few_times_an_hour(ann, bob):
    await bob.did("POST", "/v1/messages", {"to": "ann", "body": "Tea at five?"})
    for _ in range(2):
        answer = await ann.ask("GET", "/v1/me/export")
        assert answer.status == 200
    assert (await ann.ask("GET", "/v1/me/export")).status == 429
    assert (await bob.ask("GET", "/v1/me/export")).status == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="ann.json"'
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["account"]["handle"] == "ann"
    assert "Tea at five?" in answer.text
    for secret in (ann.token, "token_hash", "recovery_hash"):
        assert secret not in answer.text
    # Nothing of it is read by that.
    assert (await ann.get("/v1/messages"))["messages"][0]["unread"] is True


async def test_waiting_for_mail_ends_with_it_and_a_deny_meanwhile_holds(hub, ann, bob):

    async def waiting() -> asyncio.Task[Answer]:
        asked = asyncio.create_task(bob.ask("GET", "/v1/messages?wait=50"))
        await until(lambda: hub.hub.bus.subscriptions > 0)
        return asked

    asked = await waiting()
    await ann.did("POST", "/v1/messages", {"to": "bob", "body": "Tea?"})
    (got,) = (await asked).json()["messages"]
    assert got["body"] == "Tea?"
    await bob.did("PUT", f"/v1/threads/{got['thread_id']}/read", {})
    asked = await waiting()
    await hub.hub.behind.granting.grant("bob", ["!msg/inbox"])
    await ann.did("POST", "/v1/messages", {"to": "bob", "body": "Still?"})
    assert code(await asked) == (403, "capability_denied")


async def test_people_read_their_own_audit_lines_and_see_which_token_did_what(hub, ann, bob):
    body = {"label": "bot", "scope": "mail.read account.read"}
    made = await ann.did("POST", "/v1/me/credentials", body)
    bot = Asker(hub.port, made["token"])
    sent = await bot.ask("POST", "/v1/messages", {"to": "bob", "body": "Tea?"})
    assert code(sent) == (403, "scope_missing")
    await hub.hub._audit.drain()
    refusal, created = (await ann.get("/v1/me/activity"))["lines"]
    assert (created["action"], created["about"]) == ("token.created", made["id"])
    assert (refusal["action"], refusal["outcome"]) == ("policy.refused", "scope_missing")
    assert refusal["credential_id"] == made["id"] != created["credential_id"]
    only = await ann.get(f"/v1/me/activity?credential={made['id']}")
    assert [it["id"] for it in only["lines"]] == [refusal["id"]]
    older = await ann.get(f"/v1/me/activity?before={refusal['id']}&limit=1")
    assert [it["id"] for it in older["lines"]] == [created["id"]]
    assert (await bob.get("/v1/me/activity"))["lines"] == []
