"""How often things may be done: the limits of the specification, through a client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mcp_harness import Person, meeting, modern, one_era


def wait_for(payload: Any) -> str:
    """What a limit's error says."""
    assert payload.keys() == {"error", "retry_after"}
    assert type(payload["retry_after"]) is int
    sentence: str = payload["error"]
    assert sentence.startswith("Rate limit exceeded. Try again in ")
    assert "rates." not in sentence
    return sentence.removeprefix("Rate limit exceeded. Try again in ")


async def limited(person: Person, tool: str, **arguments: Any) -> str:
    payload, is_error = await person.result(tool, arguments)
    assert is_error, payload
    return wait_for(payload)


@pytest.mark.sqlite("counts by the clock of the test, and not by a server's")
@pytest.mark.requirement("rate.register", "rate.says-when")
@one_era
@pytest.mark.settings(rate_limits="on", http={"trusted_proxies": ["127.0.0.1"]})
async def test_five_accounts_an_hour_from_one_address(hub, clock):
    stranger = await hub.stranger()
    for number in range(5):
        await (await hub.stranger()).call("msg/register", handle=f"person{number}")
        assert await stranger.refused("msg/register", handle="person0") == (
            "Handle already taken."
            if number < 4
            else "Rate limit exceeded. Try again in 60 minutes."
        )
    clock.ahead = 1_800
    assert await limited(stranger, "msg_register", handle="another") == "30 minutes."
    clock.ahead = 3_601
    await stranger.call("msg/register", handle="another")


RATES = {"send_per_minute": 3, "search_per_minute": 2, "invite_per_day": 2}
PASSED_ON = {"x-forwarded-for": "203.0.113.7"}


@pytest.mark.parametrize(
    ("hub", "headers", "counted"),
    [
        ({}, {}, False),
        ({}, PASSED_ON, True),
        ({}, {"forwarded": "for=203.0.113.7"}, True),
        ({}, {"x-real-ip": "203.0.113.7"}, True),
        ({"http": {"trusted_proxies": ["10.0.0.1"]}}, {}, True),
        ({"public_url": "https://hub.example.org", "registration": "open"}, {}, True),
    ],
    ids=["direct", "x-forwarded-for", "forwarded", "x-real-ip", "proxies", "public url"],
)
async def test_whoever_registers_on_the_hubs_own_machine_is_not_counted(
    hub, headers, counted, tmp_path
):
    rates = {"register_per_hour": 1}
    async with meeting(tmp_path, "stateless", rate_limits="on", rates=rates, **hub) as there:
        await (await there.stranger(headers=headers)).call("msg/register", handle="first")
        second = await there.stranger(headers=headers)
        if counted:
            told = await second.refused("msg/register", handle="second")
            assert told == "Rate limit exceeded. Try again in 60 minutes."
        else:
            await second.call("msg/register", handle="second")


@pytest.mark.parametrize(
    ("proxies", "registered"),
    [([], ["10.0.0.1"]), (["127.0.0.0/8", "10.9.0.0/16"], ["10.0.0.1", "10.0.0.2"])],
    ids=["nobody is trusted", "proxies"],
)
async def test_a_made_up_forwarding_header_changes_nothing(proxies, registered, tmp_path):
    limits: dict[str, Any] = {"rate_limits": "on", "rates": {"register_per_hour": 1}}
    passed_on = ("10.0.0.1", "10.0.0.2", "6.6.6.6, 10.0.0.2", "6.6.6.7, 10.0.0.2, 10.9.1.1")
    async with meeting(tmp_path, http={"trusted_proxies": proxies}, **limits) as there:
        made = []
        for number, shown in enumerate(passed_on):
            wanted = {"name": "msg/register", "arguments": {"handle": f"person{number}"}}
            message, headers = modern("tools/call", **wanted)
            answer = await there.post(message, headers={**headers, "x-forwarded-for": shown})
            if not answer.json()["result"]["isError"]:
                made.append(shown)
        assert made == registered


@pytest.mark.sqlite("counts by the clock of the test, and not by a server's")
@pytest.mark.requirement("rate.send", "rate.search", "rate.invite", "rate.configurable")
@one_era
@pytest.mark.settings(rate_limits="on", rates=RATES)
async def test_messages_searches_and_invites_are_counted_by_user(hub, clock):
    alice, bob = await hub.people("alice", "bob")
    sent = await alice.call("msg/send", to="bob", body="One")
    await alice.call("msg/reply", message_id=sent["message_id"], body="Two")
    await alice.refused("msg/send", to="nobody", body="Counts as well")
    assert await limited(alice, "msg/send", to="bob", body="Four") == "60 seconds."
    assert await limited(alice, "msg_send", to="bob", body="Four") == "60 seconds."
    assert await limited(alice, "msg/reply", message_id=sent["message_id"], body="Four") == (
        "60 seconds."
    )
    await bob.call("msg/send", to="alice", body="Others are not limited")
    for _ in range(2):
        await alice.call("msg/search_users", query="bo")
        await alice.call("msg/invite")
    assert await limited(alice, "msg/search_users", query="bo") == "60 seconds."
    assert await limited(alice, "msg/invite") == "24 hours."
    clock.ahead = 61
    await alice.call("msg/send", to="bob", body="Four")
    await alice.call("msg/search_users", query="bo")
    assert await limited(alice, "msg/invite") == "24 hours."
    clock.ahead = 86_401
    await alice.call("msg/invite")
