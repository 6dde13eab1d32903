"""What the recorded client said, as its server heard it."""

from __future__ import annotations

from folkmoot.proxy.replay.playing import RecordedClient, parts_of
from tests.proxy.replay.tapes import (
    HANDSHAKE,
    HELLO,
    MADE,
    WELCOME,
    Said,
    answers,
    asks,
    calls,
    fails,
    tape,
    tells,
)


def part_of(*lines: Said) -> RecordedClient:
    """The only conversation on a tape."""
    (part,) = parts_of(tape(*lines).entries)
    return part


def test_a_step_waits_for_the_answers_that_had_come_before_it():
    part = part_of(
        *HANDSHAKE, calls(1, "a"), calls(2, "b"), answers(2, {}), calls(3, "c"), answers(1, {})
    )
    waits = [(1, ()), (3, (1,)), (4, ()), (5, ()), (7, (5,))]
    assert [(step.seq, step.after) for step in part.steps] == waits
    assert part.steps[-1].answer is None


def test_what_the_client_answered_is_kept_with_what_it_was_asked():
    part = part_of(
        calls(1, "a"),
        asks(1, "roots/list", side="server"),
        answers(1, {"roots": []}, side="client"),
        answers(1, {"done": True}),
    )
    ((asked, answered),) = [(reply.request, reply.response) for reply in part.replies]
    assert (asked.method, answered.result) == ("roots/list", {"roots": []})
    assert part.steps[0].answer.result == {"done": True}


def test_sessions_are_conversations_of_their_own_with_their_handshakes():
    begin = [asks(0, "initialize", HELLO), answers(0, WELCOME)]
    ready = "notifications/initialized"
    parts = parts_of(
        tape(
            *begin,
            tells(ready, side="client", session="a"),
            *begin,
            tells(ready, side="client", session="b"),
            asks(1, "tools/list", session="a"),
            asks(1, "prompts/list", session="b"),
            answers(1, {"of": "b"}, session="b"),
            answers(1, {"of": "a"}, session="a"),
        ).entries
    )
    assert [[step.message.method for step in part.steps] for part in parts] == [
        ["initialize", ready, "tools/list"],
        ["initialize", ready, "prompts/list"],
    ]
    assert [part.steps[-1].answer.result for part in parts] == [{"of": "a"}, {"of": "b"}]


def test_each_handshake_begins_a_conversation_also_where_sessions_have_no_ids():
    parts = parts_of(
        tape(*HANDSHAKE, asks(1, "tools/list"), *HANDSHAKE, asks(1, "prompts/list")).entries
    )
    assert [part.steps[-1].message.method for part in parts] == ["tools/list", "prompts/list"]


def test_what_never_reached_the_server_is_not_said_to_it():
    part = part_of(
        asks(1, "tools/list", verdict="block"),
        fails(1, verdict="block", **MADE),
        calls(2, "a", secret="x"),
        answers(2, {}),
    )
    assert [step.seq for step in part.steps] == [3]


def test_a_rewritten_message_is_said_as_the_server_got_it():
    changed = {"verdict": "modify", "at_server": calls(2, "b")}
    answered = {"verdict": "modify", "at_server": answers(2, {"seen": 2})}
    part = part_of(
        asks(2, "tools/call", {"name": "a"}, **changed), answers(2, {"seen": 1}, **answered)
    )
    assert part.steps[0].message.params["name"] == "b"
    assert part.steps[0].answer.result == {"seen": 2}


def test_progress_of_the_client_is_left_out():
    changed = "notifications/roots/list_changed"
    part = part_of(
        calls(1, "a"),
        tells("notifications/progress", {"progressToken": 1}, side="client"),
        tells(changed, side="client"),
    )
    assert [step.message.method for step in part.steps] == ["tools/call", changed]
