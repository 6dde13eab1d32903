"""Every kind counts: how fast one participant may send, in messages and in bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.ratelimits import AccountRates, Rate
from folkmoot.rooms.machine import Rates, Role, Tell
from tests.rooms.machine.playbook import (
    SETTINGS,
    Play,
    answer,
    attached,
    call,
    joins,
    leaves,
    principal,
    proposal,
    read,
    refused,
    says,
    stored,
    waits,
)

SLOW = Rates(sent=Rate(1, 1_000_000), answers=Rate(2, 1_000_000))
FEW = msgspec.structs.replace(
    SETTINGS, rates=SLOW, account_rights={"account-bob": ("*",), "account-files": ("*",)}
)
NARROW = msgspec.structs.replace(FEW, rates=Rates(sent=Rate(1000, 1024), answers=Rate(2, 1_000)))

KINDS: dict[str, dict[str, Any]] = {
    "reasoning": {"kind": "reasoning.thought", "payload": {"text": "hm"}},
    "acknowledge": {"kind": "chat.acknowledge", "correlation_id": ["m1"]},
    "status": {"kind": "participant.status", "payload": {}},
    "notification": {
        "kind": "mcp.notification.notifications/x",
        "payload": {"jsonrpc": "2.0", "method": "notifications/x"},
    },
    "unknown": {"kind": "weather.report", "payload": {"rain": True}},
}

THOUGHT = strict.encode({"protocol": "mcpx/v1", **KINDS["reasoning"]})


@pytest.mark.requirement("room.every-kind-rated")
@pytest.mark.parametrize("kind", KINDS)
def test_a_burst_of_any_kind_passes_and_a_flood_does_not(kind):
    play = Play(FEW, "alice", "bob")
    name = KINDS[kind]["kind"]
    play >> says("alice", KINDS["status"], id="m1") << stored("participant.status", "alice")
    for _ in range(9):
        play >> says("bob", KINDS[kind]) << stored(name, "bob")
    play >> says("bob", KINDS[kind]) << refused("bob", "rate_limited")
    play >> waits(1) >> says("bob", KINDS[kind]) << stored(name, "bob")
    play >> says("bob", KINDS[kind]) << refused("bob", "rate_limited")


@pytest.mark.requirement("room.every-kind-rated")
def test_whoever_is_refused_is_told_when_to_come_back_and_others_are_not_slowed():
    play = Play(FEW, "alice", "bob")
    for number in range(9):
        play >> says("bob", proposal("lamp", {"n": number}))
        play.waiting.clear()
    (told,) = says("bob", KINDS["reasoning"])(play)
    assert isinstance(told, Tell)
    payload = read(told.data)["payload"]
    assert (payload["error"], payload["retry_after"]) == ("rate_limited", 1)
    assert payload["message"] == "You are sending too much too fast. Try again in 1 second."
    assert payload["attempted_kind"] == "reasoning.thought"
    play >> says("alice", KINDS["reasoning"]) << stored("reasoning.thought", "alice")


@pytest.mark.requirement("room.every-kind-rated")
def test_bytes_count_beside_messages():
    play = Play(NARROW, "alice", "bob")
    thought = {"kind": "reasoning.thought", "payload": {"text": "x" * 5_000}}
    play >> says("bob", thought) << stored("reasoning.thought", "bob")
    play >> says("bob", thought) << stored("reasoning.thought", "bob")
    play >> says("bob", thought) << refused("bob", "rate_limited")
    play >> waits(6) >> says("bob", thought) << stored("reasoning.thought", "bob")


@pytest.mark.requirement("room.every-kind-rated")
def test_answers_have_a_rate_of_their_own():
    play = Play(FEW, "alice", "bob", "files")
    for _ in range(9):
        play >> says("files", KINDS["reasoning"]) << stored("reasoning.thought", "files")
    play >> says("files", KINDS["reasoning"]) << refused("files", "rate_limited")
    asked = call("files", "read", {}, 1)
    play >> says("bob", asked, id="q1") << stored("mcp.request.tools/call", "bob")
    play >> says("files", answer("q1", "bob")) << stored("mcp.response.tools/call", "files")


@pytest.mark.requirement("room.every-kind-rated")
def test_to_leave_and_come_back_gains_nothing_and_counts_itself():
    play = Play(FEW, "alice", "bob")
    for _ in range(4):
        play >> leaves("bob") << stored("system.presence.leave")
        play >> joins("bob") << attached("bob") << stored("system.presence.join")
    for _ in range(5):
        play >> says("bob", KINDS["reasoning"]) << stored("reasoning.thought", "bob")
    play >> says("bob", KINDS["reasoning"]) << refused("bob", "rate_limited")
    play >> leaves("bob") << stored("system.presence.leave")
    with pytest.raises(e.RateLimited):
        joins("bob")(play)
    with pytest.raises(e.RateLimited):
        play.room.post(principal("bob"), Role.MEMBER, THOUGHT, play.now)


def test_one_message_larger_than_the_bucket_passes_and_is_paid_for():
    buckets = AccountRates()
    rate = Rate(10, 100)
    buckets.take("ann", rate, 5_000, 0.0)
    with pytest.raises(e.RateLimited) as refused:
        buckets.take("ann", rate, 1, 1.0)
    assert refused.value.data["retry_after"] == 40
    with pytest.raises(e.RateLimited):
        buckets.take("ann", rate, 1, 39.0)
    buckets.take("ann", rate, 1, 41.0)


def test_a_clock_that_is_set_back_locks_nobody_out():
    buckets = AccountRates()
    rate = Rate(1, 1_000)
    for _ in range(10):
        buckets.take("ann", rate, 1, 1_000.0)
    with pytest.raises(e.RateLimited):
        buckets.take("ann", rate, 1, 10.0)
    buckets.take("ann", rate, 1, 11.0)
