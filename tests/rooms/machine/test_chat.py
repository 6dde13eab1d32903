"""Chat: two spellings and a tool, one right, one rate."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core.policy import PrincipalType
from folkmoot.ratelimits import Limit
from folkmoot.rooms.machine import Role
from tests.rooms.machine.playbook import (
    SETTINGS,
    attached,
    call,
    chat,
    chat_notice,
    joins,
    leaves,
    logged,
    proposal,
    refused,
    says,
    stored,
    waits,
)

NOTICE = "mcp.notification.notifications/chat/message"
REQUEST = "mcp.request.tools/call"
ANSWER = "mcp.response.tools/call:chat.say"
SAYING = {"account-bob": ("mcp.request.tools/call:chat.say",)}


def say(text: str = "hello", n: int = 1, **body: Any) -> dict[str, Any]:
    return call("gateway", "chat.say", {"text": text, **body}, n)


def about(kind: str, *ids: str) -> dict[str, Any]:
    return {"kind": f"chat.{kind}", "correlation_id": [*ids]}


@pytest.mark.requirement("chat.notification", "chat.short-form", "chat.delivered-as-sent")
def test_both_spellings_are_chat_and_delivered_as_sent(play):
    play >> says("bob", chat("hi", format="markdown"))
    play << stored("chat.message", "bob", payload={"text": "hi", "format": "markdown"})
    assert play.stored[-1].kind == "chat.message.markdown"
    play >> says("bob", chat_notice("hi"))
    play << stored(
        NOTICE, "bob", payload={"method": "notifications/chat/message", "params": {"text": "hi"}}
    )


@pytest.mark.requirement("chat.notification-params")
def test_the_params_of_chat_are_checked(play):
    body = {"format": "plain", "thread_id": "t", "reply_to": "m1", "mentions": ["alice"]}
    play >> says("bob", chat_notice("hi", **body)) << stored(NOTICE, "bob")
    play >> says("bob", chat("hi", **body)) << stored("chat.message", "bob")
    for wrong in ({"thread_id": 1}, {"reply_to": None}, {"mentions": "alice"}, {"mentions": [1]}):
        play >> says("bob", chat_notice("hi", **wrong)) << refused("bob", "payload_invalid")
        play >> says("bob", chat("hi", **wrong)) << refused("bob", "payload_invalid")
    play >> says("bob", chat_notice(7)) << refused("bob", "payload_invalid")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ", "\n\t  "])
def test_empty_chat_is_refused_in_every_spelling(play, text):
    for envelope in (chat(text), chat_notice(text), {**chat(text), "kind": "chat.message.text"}):
        play >> says("bob", envelope) << refused("bob", "payload_invalid")
    play >> says("alice", say(text)) << stored(REQUEST, "alice")
    play << stored(ANSWER, payload={"error": {"data": {"code": "params_invalid"}}})


@pytest.mark.requirement("chat.acknowledge-and-cancel")
def test_chat_is_acknowledged_by_others_and_cancelled_by_its_sender(play):
    play >> says("bob", chat(), id="m1") << stored("chat.message", "bob")
    for kind in ("acknowledge", "cancel"):
        for ids in ((), ("m1", "m1")):
            play >> says("bob", about(kind, *ids)) << refused("bob", "correlation_required")
        play >> says("bob", about(kind, "m2")) << refused("bob", "message_unknown")
    play >> says("files", about("acknowledge", "m1")) << stored("chat.acknowledge", "files")
    play >> says("files", about("cancel", "m1")) << refused("files", "not_requester")
    play >> says("bob", about("cancel", "m1")) << stored("chat.cancel", "bob")


@pytest.mark.requirement("chat.acknowledge-and-cancel")
def test_acknowledging_chat_needs_the_right_to_it(stage):
    rights = {**SETTINGS.rights, Role.MEMBER: ("chat.message",)}
    play = stage("alice", "bob", rights=rights)
    play >> says("alice", chat(), id="m1") << stored("chat.message", "alice")
    play >> says("bob", about("acknowledge", "m1")) << refused("bob", "capability_denied")


@pytest.mark.requirement("chat.acknowledge-and-cancel")
def test_whether_a_message_of_before_a_restart_is_there_is_looked_up(play):
    play >> says("bob", chat(), id="m1") << stored("chat.message", "bob")
    play.room = play.rebuilt(last_seq=len(play.stored))
    play >> joins("files") << attached("files")
    play >> says("files", about("acknowledge", "m1")) << stored("chat.acknowledge", "files")
    play >> says("files", about("acknowledge", "m9")) << refused("files", "message_unknown")
    assert play.looked_up == ["m1", "m9"]


@pytest.mark.requirement("chat.say", "chat.say-answer")
def test_the_tool_broadcasts_on_the_callers_behalf_and_answers(play):
    play >> says("alice", say("hi", format="markdown"), id="q1") << stored(REQUEST, "alice")
    play << stored(
        NOTICE,
        "alice",
        correlation_id=["q1"],
        payload={"jsonrpc": "2.0", "params": {"text": "hi", "format": "markdown"}},
    )
    play << stored(ANSWER, to=["alice"], correlation_id=["q1"], payload={"id": 1})
    said = play.stored[-2].id
    result = play.last["payload"]["result"]
    assert result["structuredContent"] == {"status": "broadcasted", "id": said}
    assert result["content"][0]["text"] == f'{{"status":"broadcasted","id":"{said}"}}'


@pytest.mark.requirement("chat.say-validates")
@pytest.mark.parametrize(
    "arguments",
    [
        None,
        {},
        {"text": 7},
        {"text": "hi", "format": "html"},
        {"text": "hi", "loud": True},
        {"text": "hi", "mentions": [7]},
    ],
)
def test_the_tool_refuses_bad_arguments_with_an_error(play, arguments):
    error = {"error": {"code": -32602, "data": {"code": "params_invalid"}}}
    play >> says("alice", call("gateway", "chat.say", arguments)) << stored(REQUEST, "alice")
    play << stored(ANSWER, payload=error)


def test_the_gateway_lists_its_tool_and_knows_no_other(play):
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    envelope = {"kind": "mcp.request.tools/list", "to": ["gateway"], "payload": listing}
    play >> says("alice", envelope) << stored("mcp.request.tools/list", "alice")
    play << stored("mcp.response.tools/list")
    assert [tool["name"] for tool in play.last["payload"]["result"]["tools"]] == ["chat.say"]
    play >> says("alice", call("gateway", "other")) << stored(REQUEST, "alice")
    play << stored(
        "mcp.response.tools/call:other",
        payload={"error": {"code": -32601, "data": {"code": "method_unknown"}}},
    )


def test_the_tool_needs_its_own_capability(play, stage):
    play >> says("bob", say()) << refused("bob", "proposal_required")
    other = stage("bob", account_rights=SAYING)
    other >> says("bob", say()) << stored(REQUEST, "bob") << stored(NOTICE, "bob") << stored(ANSWER)


def test_a_proposal_to_say_something_is_fulfilled_at_the_gateway(play):
    play.proposes("bob", proposal("chat.say", {"text": "hi"}), to=["gateway"])
    play >> says("alice", say("hi"), correlation_id=["p1"]) << stored(REQUEST, "alice")
    play << logged("proposal.fulfilled", "alice", "p1")
    play << stored(NOTICE, "alice") << stored(ANSWER, to=["alice", "bob"])


@pytest.mark.requirement("chat.deny-both")
@pytest.mark.parametrize("deny", ["!chat.message", f"!{NOTICE}", "!chat.*", "!mcp.notification.*"])
def test_a_deny_on_either_spelling_denies_all_of_chat(stage, deny):
    play = stage("alice", "bob", account_rights={"account-bob": ("*", deny)})
    for envelope in (chat(), chat_notice(), say(), {**chat(), "kind": "chat.message.text"}):
        play >> says("bob", envelope) << refused("bob", "capability_denied")
    play >> says("bob", proposal("chat.say", {"text": "x"})) << refused("bob", "capability_denied")


@pytest.mark.requirement("chat.rate-limit", "chat.spellings-equal")
def test_every_way_to_chat_counts_and_who_says_too_much_is_told_when_to_go_on(stage):
    limits = {PrincipalType.PERSON: Limit(3, 60), PrincipalType.AGENT: None}
    play = stage("bob", "files", chat=limits, account_rights=SAYING)
    play >> says("bob", chat()) << stored("chat.message", "bob")
    play >> says("bob", chat_notice()) << stored(NOTICE, "bob")
    play >> says("bob", say()) << stored(REQUEST, "bob") << stored(NOTICE, "bob") << stored(ANSWER)
    play >> waits(10.5)
    for envelope in (chat(), chat_notice(), say(n=2)):
        play >> says("bob", envelope, id="m1")
        play << refused("bob", "rate_limited", "m1", retry_after=10)
    for _ in range(4):
        play >> says("files", chat()) << stored("chat.message", "files")
    play.proposes("bob", proposal())
    play >> waits(9.5)
    play >> says("bob", chat()) << stored("chat.message", "bob")
    play >> says("bob", chat()) << refused("bob", "rate_limited", retry_after=20)
    play >> waits(600)
    for _ in range(3):
        play >> says("bob", chat()) << stored("chat.message", "bob")
    play >> says("bob", chat()) << refused("bob", "rate_limited", retry_after=20)


def test_to_leave_and_come_back_on_any_connection_gains_nothing(stage):
    play = stage("bob", chat={PrincipalType.PERSON: Limit(1, 60)})
    play >> says("bob", chat()) << stored("chat.message", "bob")
    play >> joins("bob", on="bob-2") << attached("bob-2")
    play >> says("bob-2", chat()) << refused("bob-2", "rate_limited")
    play >> leaves("bob") >> leaves("bob-2") << stored("system.presence.leave")
    play >> joins("bob") << attached("bob") << stored("system.presence.join")
    play >> says("bob", chat()) << refused("bob", "rate_limited")


def test_a_clock_that_is_set_back_locks_nobody_out(stage):
    play = stage("bob", chat={PrincipalType.PERSON: Limit(1, 60)})
    play >> says("bob", chat()) << stored("chat.message", "bob")
    play.now -= 3600
    play >> says("bob", chat()) << refused("bob", "rate_limited", retry_after=60)
    play >> waits(60)
    play >> says("bob", chat()) << stored("chat.message", "bob")


@pytest.mark.requirement("chat.rate-limit")
@pytest.mark.parametrize(("name", "most"), [("bob", 60), ("files", 60), ("guest-kim", 10)])
def test_a_burst_passes_by_default_and_then_a_message_now_and_then(stage, name, most):
    play = stage(name)
    play.rebuilds = False
    for _ in range(most):
        play >> says(name, chat()) << stored("chat.message", name)
    play >> says(name, chat()) << refused(name, "rate_limited", retry_after=60 // most)
    for _ in range(3):
        play >> waits(60 // most)
        play >> says(name, chat()) << stored("chat.message", name)
        play >> says(name, chat()) << refused(name, "rate_limited", retry_after=60 // most)
