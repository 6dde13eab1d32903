"""Every kind counts: how fast one participant may send, in messages and in bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.ratelimits import AccountRates, Rate
from folkmoot.rooms.machine import Rates, Role
from tests.rooms.machine.playbook import (
    SETTINGS,
    Play,
    answer,
    attached,
    call,
    joins,
    leaves,
    notice,
    principal,
    proposal,
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

THOUGHT: dict[str, Any] = {"kind": "reasoning.thought", "payload": {"text": "hm"}}
STATUS: dict[str, Any] = {"kind": "participant.status", "payload": {}}
KINDS: list[dict[str, Any]] = [
    THOUGHT,
    STATUS,
    {"kind": "chat.acknowledge", "correlation_id": ["m1"]},
    notice("notifications/x"),
    {"kind": "weather.report", "payload": {"rain": True}},
]


@pytest.mark.requirement("room.every-kind-rated")
@pytest.mark.parametrize("sent", KINDS, ids=lambda sent: sent["kind"])
def test_a_burst_of_any_kind_passes_and_a_flood_does_not(sent):
    play = Play(FEW, "alice", "bob")
    play >> says("alice", STATUS, id="m1") << stored("participant.status", "alice")
    for _ in range(9):
        play >> says("bob", sent) << stored(sent["kind"], "bob")
    play >> says("bob", sent) << refused("bob", "rate_limited")
    play >> waits(1) >> says("bob", sent) << stored(sent["kind"], "bob")
    play >> says("bob", sent) << refused("bob", "rate_limited")


@pytest.mark.requirement("room.every-kind-rated")
def test_whoever_is_refused_is_told_when_to_come_back_and_others_are_not_slowed():
    play = Play(FEW, "alice", "bob")
    for number in range(9):
        play.ignore(says("bob", proposal("lamp", {"n": number})))
    told = {"retry_after": 1, "attempted_kind": "reasoning.thought"}
    told["message"] = "You are sending too much too fast. Try again in 1 second."
    play >> says("bob", THOUGHT) << refused("bob", "rate_limited", **told)
    play >> says("alice", THOUGHT) << stored("reasoning.thought", "alice")


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
        play >> says("files", THOUGHT) << stored("reasoning.thought", "files")
    play >> says("files", THOUGHT) << refused("files", "rate_limited")
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
        play >> says("bob", THOUGHT) << stored("reasoning.thought", "bob")
    play >> says("bob", THOUGHT) << refused("bob", "rate_limited")
    play >> leaves("bob") << stored("system.presence.leave")
    with pytest.raises(e.RateLimited):
        joins("bob")(play)
    raw = strict.encode({"protocol": "mcpx/v1", **THOUGHT})
    with pytest.raises(e.RateLimited):
        play.room.post(principal("bob"), Role.MEMBER, raw, play.now)


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
