"""Requests and answers: who may ask whom, who may answer, and what happens when nobody does."""

from __future__ import annotations

import msgspec
import pytest

from tests.rooms.machine.playbook import (
    Play,
    answer,
    call,
    chat,
    joins,
    leaves,
    notice,
    principal,
    refused,
    says,
    stored,
    waits,
)

REQUEST = "mcp.request.tools/call"
RESPONSE = "mcp.response.tools/call"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"


@pytest.fixture
def asked(play: Play) -> Play:
    """Alice has asked files something."""
    return play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice", to=["files"])


@pytest.mark.requirement("request.response-needs-no-capability")
def test_who_was_asked_may_answer_without_any_capability(asked):
    asked >> says("files", answer("q1")) << stored(RESPONSE, "files", correlation_id=["q1"])


def test_a_request_may_be_answered_with_an_error(asked):
    error = {"code": -32000, "message": "no"}
    asked >> says("files", answer("q1", error=error))
    asked << stored(RESPONSE, payload={"error": error}, from_="files")


@pytest.mark.requirement("request.response-only-from-target")
@pytest.mark.parametrize("name", ["bob", "alice"])
def test_nobody_else_may_answer(asked, name):
    asked >> says(name, answer("q1")) << refused(name, "not_asked")
    asked >> says("files", answer("q1")) << stored(RESPONSE, "files")


@pytest.mark.requirement("request.response-once")
def test_a_request_is_answered_once(asked):
    asked >> says("files", answer("q1")) << stored(RESPONSE, "files")
    asked >> says("files", answer("q1")) << refused("files", "request_not_open")


@pytest.mark.requirement("request.response-needs-open")
def test_an_answer_needs_an_open_request(asked):
    asked >> says("files", answer("q2")) << refused("files", "request_not_open")
    asked >> says("files", chat(), id="c1") << stored("chat.message", "files")
    asked >> says("files", answer("c1")) << refused("files", "request_not_open")


def test_an_answer_answers_one_request(asked):
    asked >> says("alice", call("files", n=2), id="q2") << stored(REQUEST, "alice")
    both = {**answer("q1"), "correlation_id": ["q1", "q2"]}
    asked >> says("files", both) << refused("files", "request_not_open")


@pytest.mark.requirement("request.response-same")
@pytest.mark.parametrize(
    "response",
    [
        answer("q1", n="1"),
        answer("q1", n=2),
        {**answer("q1"), "kind": "mcp.response.tools/list"},
        {**answer("q1"), "kind": "mcp.response.tools/call:write"},
    ],
)
def test_an_answer_has_the_method_context_and_id_of_its_request(asked, response):
    asked >> says("files", response) << refused("files", "response_mismatch")
    exact = {**answer("q1"), "kind": "mcp.response.tools/call:read"}
    asked >> says("files", exact) << stored("mcp.response.tools/call:read", "files")


@pytest.mark.requirement("request.response-to-requester")
@pytest.mark.parametrize("to", [["bob"], ["alice", "bob"], ["files"]])
def test_an_answer_is_for_the_one_who_asked(asked, to):
    asked >> says("files", answer("q1", to=to)) << refused("files", "recipient_invalid")


def test_a_deny_stops_an_answer_also_when_its_context_is_left_out(stage):
    denies = {"account-files": ("!mcp.response.tools/call:read",)}
    play = stage("alice", "files", account_rights=denies)
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    play >> says("files", answer("q1")) << refused("files", "capability_denied")


@pytest.mark.requirement("request.target-present")
def test_a_request_is_to_someone_who_is_here(play):
    play >> says("alice", call("nobody")) << refused("alice", "recipient_unknown")
    play >> leaves("files") << stored("system.presence.leave")
    play >> says("alice", call("files")) << refused("alice", "recipient_unknown")


@pytest.mark.requirement("request.never-broadcast")
@pytest.mark.parametrize(
    ("to", "code"),
    [
        ([], "recipient_required"),
        (["files", "bob"], "recipient_required"),
        (["alice"], "recipient_invalid"),
        (["files", "files"], "recipient_invalid"),
    ],
)
def test_a_request_has_one_recipient_who_is_someone_else(play, to, code):
    play >> says("alice", call(to)) << refused("alice", code)


@pytest.mark.requirement("request.never-broadcast")
def test_a_call_without_an_id_is_no_way_to_broadcast_it(play):
    bare = call([])
    del bare["payload"]["id"]
    play >> says("alice", bare) << refused("alice", "payload_id_invalid")
    bare["kind"] = "mcp.notification.tools/call"
    play >> says("alice", bare) << refused("alice", "wrong_operation")
    with_signature_of = {"kind": "chat.message", "payload": {**bare["payload"], "text": "hi"}}
    play >> says("alice", with_signature_of) << refused("alice", "payload_invalid")


def test_a_recipient_is_named_once_in_any_message(play):
    play >> says("bob", chat(), to=["alice", "alice"]) << refused("bob", "recipient_invalid")


def test_open_requests_are_told_apart_by_requester_target_and_typed_id(asked):
    asked >> says("alice", call("files")) << refused("alice", "request_id_open")
    asked >> says("alice", call("files", n="1")) << stored(REQUEST, "alice")
    asked >> says("alice", call("bob")) << stored(REQUEST, "alice")
    asked >> says("files", answer("q1")) << stored(RESPONSE, "files")
    asked >> says("alice", call("files")) << stored(REQUEST, "alice")


def test_when_who_was_asked_leaves_the_gateway_answers(asked):
    asked >> leaves("files")
    asked << stored("system.presence.leave", payload={"participant": {"id": "files"}})
    asked << stored(
        "mcp.response.tools/call:read",
        to=["alice"],
        correlation_id=["q1"],
        payload={"id": 1, "error": {"code": -32010, "data": {"code": "target_left"}}},
    )
    asked.ignore(joins("files"))
    asked >> says("files", answer("q1")) << refused("files", "request_not_open")


def test_when_one_of_several_connections_ends_the_request_stays_open(asked):
    asked.ignore(joins("files", on="files-2"))
    asked >> leaves("files")
    asked >> says("files-2", answer("q1")) << stored(RESPONSE, "files")


def test_who_asked_may_leave_and_still_be_answered(asked):
    asked >> leaves("alice") << stored("system.presence.leave")
    asked >> says("files", answer("q1")) << stored(RESPONSE, "files")


TIMED_OUT = {"id": 1, "error": {"code": -32011, "data": {"code": "request_timed_out"}}}


def times_out(play: Play) -> None:
    kind = "mcp.response.tools/call:read"
    play << stored(kind, correlation_id=["q1"], payload=TIMED_OUT)


def test_a_request_times_out(stage):
    play = stage("alice", "files", request_seconds=20.0)
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    play >> waits(19)
    assert play.room.due == play.now + 1
    times_out(play >> waits(1))
    play >> says("files", answer("q1")) << refused("files", "request_not_open")


def test_progress_keeps_a_request_open_up_to_a_bound(stage):
    play = stage("alice", "files", request_seconds=20.0, progress_seconds=50.0)
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    asked_at = play.now
    for _ in range(3):
        play >> waits(15)
        play >> says("files", notice(PROGRESS, {"progress": 1}, "q1"))
        play << stored(f"mcp.notification.{PROGRESS}", "files")
    assert play.room.due == asked_at + 50
    play >> waits(4.5)
    times_out(play >> waits(0.5))


def test_where_the_bound_is_shorter_progress_changes_nothing(stage):
    play = stage("alice", "files", request_seconds=20.0, progress_seconds=10.0)
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    play >> waits(15)
    play >> says("files", notice(PROGRESS, {"progress": 1}, "q1"))
    play << stored(f"mcp.notification.{PROGRESS}", "files")
    times_out(play >> waits(5))


def test_what_is_due_happens_before_the_next_message_also_without_a_tick(stage):
    play = stage("alice", "files", request_seconds=20.0)
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    play.now += 20
    times_out(play >> says("files", answer("q1")))
    play << refused("files", "request_not_open")


@pytest.mark.requirement("request.progress-from-target")
def test_progress_is_believed_from_the_one_who_was_asked(asked):
    progress = notice(PROGRESS, {"progressToken": "t", "progress": 1}, "q1")
    kind = f"mcp.notification.{PROGRESS}"
    asked >> says("files", progress) << stored(kind, "files", to=["alice"])
    asked >> says("files", progress, to=["alice"]) << stored(kind, "files", to=["alice"])
    asked >> says("alice", progress) << refused("alice", "not_asked")
    asked >> says("bob", progress) << refused("bob", "not_asked")
    asked >> says("files", progress, to=["bob"]) << refused("files", "recipient_invalid")
    asked >> says("files", answer("q1")) << stored(RESPONSE, "files")
    asked >> says("files", progress) << refused("files", "request_not_open")


def test_progress_has_the_token_its_request_gave(play):
    request = call("files")
    request["payload"]["params"]["_meta"] = {"progressToken": 7}
    play >> says("alice", request, id="q1") << stored(REQUEST, "alice")
    for token in ("7", 7.0, None):
        progress = notice(PROGRESS, {"progressToken": token}, "q1")
        play >> says("files", progress) << refused("files", "response_mismatch")
    progress = notice(PROGRESS, {"progressToken": 7}, "q1")
    play >> says("files", progress) << stored(f"mcp.notification.{PROGRESS}", "files")


@pytest.mark.requirement("request.cancelled-from-requester")
def test_a_cancellation_is_believed_from_the_one_who_asked(asked):
    cancel = notice(CANCELLED, {"requestId": 1}, "q1")
    for name in ("files", "bob"):
        asked >> says(name, cancel) << refused(name, "not_requester")
    other = notice(CANCELLED, {"requestId": "1"}, "q1")
    asked >> says("alice", other) << refused("alice", "response_mismatch")
    asked >> says("alice", cancel, to=["bob"]) << refused("alice", "recipient_invalid")
    asked >> says("alice", cancel) << stored(f"mcp.notification.{CANCELLED}", "alice", to=["files"])
    asked >> says("files", answer("q1")) << refused("files", "request_not_open")


def test_an_open_request_is_the_right_to_cancel_it_and_a_deny_still_stops_that(stage):
    asks = "mcp.request.*"
    rights = {"account-bob": (asks,), "account-carol": (asks, "!mcp.notification.*")}
    play = stage("bob", "carol", "files", account_rights=rights)
    for name, id_ in (("bob", "q1"), ("carol", "q2")):
        play >> says(name, call("files"), id=id_) << stored(REQUEST, name)
    cancel = f"mcp.notification.{CANCELLED}"
    play >> says("bob", notice(CANCELLED, about="q1")) << stored(cancel, "bob")
    play >> says("carol", notice(CANCELLED, about="q2")) << refused("carol", "capability_denied")


def test_the_number_of_open_requests_is_bounded(stage):
    bounds = {"open_requests": 3, "open_requests_each": 2}
    rights = {"account-bob": ("*",)}
    play = stage("alice", "bob", "files", bounds=bounds, account_rights=rights)
    for n in (1, 2):
        play >> says("alice", call("files", n=n), id=f"q{n}") << stored(REQUEST, "alice")
    play >> says("alice", call("files", n=3)) << refused("alice", "too_many_open")
    play >> says("bob", call("files", n=1)) << stored(REQUEST, "bob")
    play >> says("bob", call("files", n=2)) << refused("bob", "too_many_open")
    play >> says("files", answer("q1")) << stored(RESPONSE, "files")
    play >> says("bob", call("files", n=2)) << stored(REQUEST, "bob")


def test_an_account_answers_whatever_it_is_called_by_then(asked):
    renamed = msgspec.structs.replace(principal("files"), name="archive")
    asked.ignore(joins("archive", who=renamed))
    asked >> says("archive", answer("q1")) << stored(RESPONSE, "archive")


def test_an_open_request_keeps_nothing_large(play):
    asked = call("files", n="x" * 1_025)
    play >> says("alice", asked) << refused("alice", "payload_id_invalid")
    for token in ("x" * 1_025, ["x"], {"x": 1}, True, 1.5):
        asked = call("files")
        asked["payload"]["params"]["_meta"] = {"progressToken": token}
        play >> says("alice", asked) << refused("alice", "payload_invalid")
