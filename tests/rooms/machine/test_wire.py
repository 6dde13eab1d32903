"""Envelopes in, envelopes out: what the gateway adds, replaces and leaves alone."""

from __future__ import annotations

import pytest

from folkmoot.core.strict import Limits
from folkmoot.rooms.machine import DEFAULT_RIGHTS, Role, Room, Tell
from tests.rooms.machine.playbook import (
    attached,
    call,
    chat,
    chat_notice,
    joins,
    kick,
    read,
    refused,
    says,
    stored,
)


@pytest.mark.requirement("wire.fields", "wire.from-filled", "wire.id-filled", "wire.broadcast")
def test_what_is_absent_is_filled_in(play):
    play >> says("bob", chat()) << stored("chat.message", "bob", protocol="mcpx/v1")
    assert list(play.last) == ["seq", "ts", "from", "id", "protocol", "kind", "payload"]
    assert play.last["seq"] == 4
    assert play.last["ts"] == "2027-01-15T08:00:00.000Z"
    assert "to" not in play.last


@pytest.mark.requirement("wire.fields")
def test_every_member_that_was_sent_is_passed_on_unknown_ones_too(play):
    sent = {**chat(), "id": "m1", "from": "bob", "to": ["alice"], "correlation_id": ["x", "y"]}
    play >> says("bob", sent, context="thread", colour="red") << stored("chat.message", "bob")
    ours = {"seq": 4, "ts": play.last["ts"], "protocol": "mcpx/v1"}
    assert play.last == {**ours, **sent, "context": "thread", "colour": "red"}


@pytest.mark.requirement("wire.payload-untouched", "chat.delivered-as-sent")
def test_the_senders_bytes_are_passed_on_as_they_are(play):
    body = (
        b'"protocol" : "mcpx/v1", "kind":"chat.message",\t"payload": {"text":"\\u0068i", "n":1.10}}'
    )
    play >> says("bob", b" \n{" + body) << stored("chat.message", "bob")
    assert play.stored[-1].data.endswith(body)


@pytest.mark.requirement("wire.payload-untouched", "wire.seq-forged", "wire.ts-by-gateway")
@pytest.mark.parametrize("claim", [b'"seq":99', b'"\\u0073eq":99', b'"ts":"1970"', b'"t\\u0073":1'])
def test_what_the_sender_claims_in_the_gateways_place_is_replaced_and_the_payload_is_not(
    play, claim
):
    payload = b'{"text":"\\u0068i","big":123456789012345678901234567890,"n":1.10, "e":1E2}'
    raw = b'{%b,"protocol":"mcpx/v1","kind":"chat.message","payload":%b}' % (claim, payload)
    play >> says("bob", raw) << stored("chat.message", "bob", seq=4)
    assert play.last["ts"].startswith("2027")
    assert payload in play.stored[-1].data


@pytest.mark.parametrize("name", ["id", "from", "to", "correlation_id", "context"])
def test_a_member_that_is_null_is_as_good_as_absent(play, name):
    play >> says("bob", {**chat(), name: None}) << stored("chat.message", "bob")
    assert play.last.get(name, ...) is not None


@pytest.mark.requirement("wire.correlation-array")
def test_a_lone_correlation_becomes_an_array(play):
    play >> says("bob", chat(), correlation_id="m1") << stored("chat.message", "bob")
    assert play.last["correlation_id"] == ["m1"]


@pytest.mark.requirement("wire.broadcast")
def test_an_empty_to_is_a_broadcast(play):
    play >> says("bob", chat(), to=[]) << stored("chat.message", "bob", to=[])


@pytest.mark.requirement("wire.protocol")
def test_another_protocol_is_refused(play):
    play >> says("bob", chat(), protocol="mcpx/v2") << refused("bob", "unsupported_protocol")


@pytest.mark.requirement("wire.from-forged")
@pytest.mark.parametrize("name", ["alice", "gateway", "Bob", "bob "])
def test_a_forged_sender_is_refused(play, name):
    play >> says("bob", chat(), from_=name) << refused("bob", "sender_forged")


@pytest.mark.requirement("wire.id-used-before", "wire.id-retry-safe")
def test_an_id_is_used_once_and_a_retry_learns_that_it_arrived(play):
    play >> says("bob", chat(), id="m1") << stored("chat.message", "bob", id="m1", seq=4)
    play >> says("bob", chat(), id="m1") << refused("bob", "id_used", "m1", seq=4)
    play >> says("alice", chat(), id="m1") << refused("alice", "id_used", "m1")
    play >> says("alice", chat(), id="g2") << refused("alice", "id_used", "g2")
    play >> says("alice", kick("nobody"), id="m2") << refused("alice", "recipient_unknown", "m2")
    play >> says("alice", chat(), id="m2") << stored("chat.message", "alice", id="m2")


def test_who_is_told_of_another_ones_id_does_not_learn_its_seq(play):
    play >> says("bob", chat(), id="m1") << stored("chat.message", "bob")
    told = play.receive("alice", b'{"protocol":"mcpx/v1","kind":"a.b","id":"m1"}')
    assert isinstance(told[0], Tell)
    assert "seq" not in read(told[0].data)["payload"]


def test_an_id_that_the_history_no_longer_holds_may_be_used_again(play):
    play >> says("bob", chat(), id="m1") << stored("chat.message", "bob")
    play >> says("bob", chat(), id="m2") << stored("chat.message", "bob")
    play.room.trim(5)
    play >> says("bob", chat(), id="m2") << refused("bob", "id_used")
    play >> says("bob", chat(), id="m1") << stored("chat.message", "bob", id="m1")


def test_ids_that_memory_lost_are_looked_up_in_the_store(stage):
    play = stage(bounds={"ids": 4})
    play.room = Room(play.settings, play.new_id, stored=True)
    play >> joins("bob") << attached("bob") << stored("system.presence.join")
    for n in range(1, 5):
        play >> says("bob", chat(), id=f"m{n}") << stored("chat.message", "bob")
    assert play.looked_up == []
    play >> says("bob", chat(), id="m5") << stored("chat.message", "bob")
    play >> says("bob", chat(), id="m1") << refused("bob", "id_used", seq=2)
    assert play.looked_up == ["m5", "m1"]


@pytest.mark.requirement(
    "wire.refusal-to-sender", "wire.refusal-shape", "wire.refusal-correlates", "wire.seq-on-stored"
)
def test_a_refusal_says_what_was_attempted_and_what_is_allowed(play):
    play >> says("bob", kick("alice"), id="m1")
    play << refused(
        "bob",
        "capability_denied",
        "m1",
        attempted_kind="room.kick",
        your_capabilities=list(DEFAULT_RIGHTS[Role.MEMBER]),
    )


@pytest.mark.requirement("wire.refusal-correlates")
@pytest.mark.parametrize(
    ("raw", "code", "kind"),
    [
        (b'{"protocol":"mcpx/v1","id":"m1","kind":"Nonsense"}', "kind_syntax", "Nonsense"),
        (b'{"protocol":"mcpx/v1","id":"m1","kind":7}', "invalid_envelope", None),
        (b'{"protocol":"mcpx/v1","id":"m1"}', "invalid_envelope", None),
        (b'{"id":"m1","kind":"chat.message"}', "unsupported_protocol", "chat.message"),
    ],
)
def test_a_refusal_names_id_and_kind_wherever_they_can_be_read(play, raw, code, kind):
    play >> says("bob", raw) << refused("bob", code, "m1", attempted_kind=kind)


@pytest.mark.requirement("wire.strict", "check.before-delivery")
@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"\xff{}", "invalid_utf8"),
        (b"[]", "batch_refused"),
        (b"7", "not_an_object"),
        (b"", "invalid_json"),
        (b'{"protocol":"mcpx/v1","kind":"a.b","payload":{"a":1,"a":2}}', "duplicate_key"),
        (b'{"protocol":"mcpx/v1","kind":"a.b","payload":{"a":NaN}}', "number_out_of_range"),
        (b'{"protocol":"mcpx/v1","kind":"a.b","payload":{"a":"\\ud800"}}', "lone_surrogate"),
        (
            b'{"protocol":"mcpx/v1","kind":"a.b","payload":' + b'{"a":' * 70 + b"1" + b"}" * 71,
            "nesting_too_deep",
        ),
        (b"[" * 200_000, "batch_refused"),
    ],
)
def test_bytes_that_are_no_strict_message_reach_nobody(play, raw, code):
    play >> says("alice", raw)
    assert len(play.waiting) == 1
    play << refused("alice", code, attempted_kind=None)


@pytest.mark.requirement("wire.strict")
def test_a_message_has_its_limit_to_the_byte(stage):
    play = stage("bob", limits=Limits(message_bytes=100))
    empty = b'{"protocol":"mcpx/v1","kind":"chat.message","payload":{"text":""}}'
    fits = empty.replace(b'""', b'"' + b"x" * (100 - len(empty)) + b'"')
    play >> says("bob", fits) << stored("chat.message", "bob")
    play >> says("bob", fits.replace(b"xx", b"xxx", 1)) << refused("bob", "message_too_large")


def test_old_spellings_are_taken_only_where_the_setting_says_so(play, stage):
    old = {**chat(), "kind": "chat"}
    play >> says("bob", old) << refused("bob", "kind_syntax")
    kind = stage("bob", accept_old_spellings=True)
    kind >> says("bob", old) << stored("chat.message", "bob", payload={"text": "hello"})


@pytest.mark.requirement("check.before-delivery")
@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        ({**call("files"), "kind": "mcp.request.tools/list"}, "method_mismatch"),
        ({**call("files"), "kind": "mcp.request.tools/call:write"}, "context_mismatch"),
        ({**call("files"), "kind": "mcp.request.Tools/call"}, "method_mismatch"),
        ({**chat_notice(), "kind": "mcp.notification.notifications/other"}, "method_mismatch"),
        ({**chat(), "kind": "system.welcome"}, "kind_reserved"),
        ({**chat(), "kind": "system.presence.join"}, "kind_reserved"),
        ({**chat(), "kind": "room.invite-ack"}, "kind_reserved"),
        ({**chat(), "kind": "capability.grant-ack"}, "kind_reserved"),
        ({**chat(), "kind": "system.proposal.expired"}, "kind_reserved"),
        ({**chat(), "kind": "stream.open"}, "kind_reserved"),
        ({"kind": "chat.message", "payload": {}}, "payload_invalid"),
    ],
)
def test_nobody_claims_one_thing_and_does_another(play, envelope, code):
    play >> says("alice", envelope) << refused("alice", code)
