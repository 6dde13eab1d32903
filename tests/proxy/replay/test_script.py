"""What a recorded server says, and to what it says it."""

from __future__ import annotations

from typing import Any

from folkmoot.core.message import Request, Response
from folkmoot.core.session import Era
from folkmoot.proxy.replay.script import RecordedCall, Script
from tests.proxy.replay.tapes import HANDSHAKE, MADE, Said, answers, asks, calls, fails, tape, tells

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
VERSION = "io.modelcontextprotocol/protocolVersion"


def script(*lines: Said) -> Script:
    return Script.of(tape(*lines).entries)


def said(call: RecordedCall) -> list[Any]:
    """The beats in a word each, with their pauses."""
    words = []
    for beat in call.beats:
        message = beat.message
        word = "answer" if isinstance(message, Response) else message.method.rpartition("/")[2]
        words.append((word, beat.pause))
    return words


def test_what_comes_between_a_request_and_its_answer_is_part_of_it():
    call = script(
        calls(1, "slow", _meta={"progressToken": "p"}),
        tells("notifications/progress", {"progressToken": "p", "progress": 1}),
        tells("notifications/message", {"level": "info", "data": "hm"}),
        answers(1, {}),
    ).calls[0]
    assert said(call) == [("progress", 1.0), ("message", 1.0), ("answer", 1.0)]


def test_progress_belongs_to_the_request_with_its_token():
    first, second = script(
        calls(1, "a", _meta={"progressToken": 1}),
        calls(2, "b", _meta={"progressToken": "1"}),
        tells("notifications/progress", {"progressToken": 1, "progress": 1}),
        tells("notifications/message", {"data": "newest"}),
        answers(1, {}),
        answers(2, {}),
    ).calls
    assert [word for word, _ in said(first)] == ["progress", "answer"]
    assert [word for word, _ in said(second)] == ["message", "answer"]


def test_what_comes_unasked_follows_what_the_client_said_last():
    found = script(
        *HANDSHAKE,
        asks(1, "roots/list", side="server"),
        answers(1, {"roots": []}, side="client"),
        calls(1, "a"),
        answers(1, {}),
        tells("notifications/tools/list_changed"),
    )
    assert said(found.cues[0]) == [("list", 1.0)]
    assert found.cues[0].beats[0].answered
    assert said(found.calls[1]) == [("answer", 1.0), ("list_changed", 1.0)]


def test_what_a_server_says_first_opens_the_conversation():
    found = script(tells("notifications/message", {"data": "up"}), *HANDSHAKE)
    assert [beat.message.method for beat in found.opening] == ["notifications/message"]


def test_the_time_a_client_takes_to_answer_is_not_the_servers():
    call = script(
        calls(1, "a"),
        asks("s", "sampling/createMessage", {}, side="server"),
        tells("notifications/progress", {"progressToken": "x"}, side="client"),
        answers("s", {}, side="client"),
        answers(1, {}),
    ).calls[0]
    assert said(call) == [("createMessage", 1.0), ("answer", 1.0)]


def test_a_request_that_was_taken_back_waits_for_nothing():
    found = script(
        calls(1, "a"),
        tells("notifications/cancelled", {"requestId": 1}, side="client"),
        calls(2, "b"),
        answers(2, {}),
    )
    assert [(call.cancelled, call.answered) for call in found.calls] == [
        (True, False),
        (False, True),
    ]


def test_what_follows_a_request_that_was_taken_back_is_not_part_of_it():
    found = script(
        calls(1, "a"),
        tells("notifications/cancelled", {"requestId": 1}, side="client"),
        tells("notifications/roots/list_changed", side="client"),
        tells("notifications/message", {"data": "hm"}),
    )
    assert (found.calls[0].beats, said(found.cues[0])) == ((), [("message", 1.0)])


def test_equal_ids_of_two_sessions_are_two_requests():
    found = script(
        asks(1, "tools/list", session="a"),
        asks(1, "prompts/list", session="b"),
        answers(1, {"of": "b"}, session="b"),
        answers(1, {"of": "a"}, session="a"),
    )
    assert [call.beats[0].message.result for call in found.calls] == [{"of": "a"}, {"of": "b"}]


def test_what_an_interceptor_stopped_is_told_as_the_client_saw_it():
    found = script(
        asks(1, "tools/list", verdict="block"),
        fails(1, verdict="block", **MADE),
        calls(2, "a"),
        answers(2, {"seen": False}, verdict="block"),
        fails(2, message="scrubbed", verdict="block", **MADE),
        asks(9, "sampling/createMessage", {}, side="server", verdict="block"),
        answers(9, {}, side="client", verdict="block", **MADE),
    )
    first, second = found.calls
    assert first.beats[0].message.error.message == "no"
    assert (second.beats[0].message.error.message, len(second.beats)) == ("scrubbed", 1)


def test_messages_of_a_subscription_belong_to_the_request_that_opened_it():
    meta = {VERSION: "2026-07-28"}
    found = script(
        asks("l", "subscriptions/listen", {"_meta": meta}),
        asks(2, "tools/list", {"_meta": meta}),
        tells("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION: "l"}}),
        answers(2, {}),
        tells("notifications/message", {"data": "not of the subscription"}),
    )
    assert said(found.calls[0]) == [("list_changed", 2.0)]
    assert said(found.calls[1]) == [("answer", 2.0), ("message", 1.0)]
    assert found.versions == {Era.STATELESS: "2026-07-28"}


def test_an_era_counts_only_where_the_server_answered_in_it():
    found = script(
        asks("d", "server/discover", {"_meta": {VERSION: "2026-07-28"}}), fails("d"), *HANDSHAKE
    )
    assert (found.versions, found.conversations) == ({Era.HANDSHAKE: "2025-11-25"}, 1)
    assert isinstance(found.calls[0].message, Request)
