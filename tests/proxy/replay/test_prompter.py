"""Which recorded call a live request gets, and what is said when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.proxy.replay.matching import Index, Mode, Prompter
from folkmoot.proxy.replay.script import Script
from tests.proxy.replay.tapes import Said, answers, asks, calls, message, tape, tells, text

SECRETS = [f"[redacted:password:{digit * 12}]" for digit in "ab"]


def prompter(
    *lines: Said, mode: Mode = Mode.ARGUMENTS, once: bool = False, ignore: Sequence[str] = ()
) -> Prompter:
    return Prompter(Index(Script.of(tape(*lines).entries), mode, ignore), once=once)


def given(found: Prompter, *asked: Said) -> list[Any]:
    return [
        found.call_for(message(each)).beats[0].message.result["content"][0]["text"]
        for each in asked
    ]


def refused(found: Prompter, asked: Said) -> e.TapeExhausted:
    with pytest.raises(e.TapeExhausted) as raised:
        found.call_for(message(asked))
    return raised.value


COUNTER = (
    calls(1, "count", to=1), answers(1, text("1")),
    calls(2, "count", to=1), answers(2, text("2")),
    calls(3, "count", to=9), answers(3, text("9")),
)  # fmt: skip


def test_equal_calls_get_the_answers_one_after_the_other_and_then_the_last_again():
    same = calls(7, "count", to=1)
    assert given(prompter(*COUNTER), same, calls(8, "count", to=9), same, same) == [
        "1", "9", "2", "2",
    ]  # fmt: skip


def test_once_is_once():
    found = prompter(*COUNTER, once=True)
    given(found, calls(7, "count", to=1), calls(8, "count", to=1))
    error = refused(found, calls(9, "count", to=1))
    assert error.message == "tools/call count is on the tape 2 times, and was now asked once more."


def test_in_order_a_call_gets_the_answer_of_its_place():
    found = prompter(*COUNTER, mode=Mode.ORDER)
    assert given(found, *[calls(7, "anything")] * 4) == ["1", "2", "9", "9"]


def test_calls_with_unrecorded_secrets_get_the_answers_in_their_order():
    found = prompter(
        calls(1, "login", password=SECRETS[0]), answers(1, text("first")),
        calls(2, "login", password=SECRETS[1]), answers(2, text("second")),
    )  # fmt: skip
    live = calls(9, "login", password="hunter2")
    assert given(found, live, live, live) == ["first", "second", "second"]


def test_what_differs_from_the_nearest_call_is_said():
    error = refused(prompter(*COUNTER), calls(4, "count", to=2, by="me"))
    assert error.message == (
        "tools/call count is not on the tape. The nearest is message 1, tools/call count, which "
        "differs at $.params.arguments.to (1 on the tape, 2 asked); $.params.arguments.by (nothing "
        'on the tape, "me" asked).'
    )
    assert error.data == {
        "method": "tools/call",
        "name": "count",
        "nearest": 1,
        "differs": ["$.params.arguments.to", "$.params.arguments.by"],
    }


def test_a_method_that_nobody_used_is_said_to_be_missing():
    error = refused(prompter(*COUNTER), asks(1, "prompts/list"))
    assert (
        error.message == "prompts/list is not on the tape, and neither is any other prompts/list."
    )


def test_secrets_stay_out_of_what_is_said():
    found = prompter(calls(1, "login", password="a", note="x"), answers(1, {}))
    error = refused(found, calls(2, "login", password="hunter2", note="sk_0123456789abcdef"))
    assert "$.params.arguments.password" in error.message
    assert "hunter2" not in error.message
    assert "0123456789abcdef" not in error.message


def test_a_placeholder_is_shown_as_it_is():
    found = prompter(calls(1, "login", who=f"ada {SECRETS[0]}"), answers(1, {}))
    error = refused(found, calls(2, "login"))
    assert f'("ada {SECRETS[0]}" on the tape, nothing asked)' in error.message


def test_what_is_ignored_does_not_count():
    lines = calls(1, "log", at=1, tags=["a", 1]), answers(1, text("ok"))
    found = prompter(
        *lines, ignore=["$.params.arguments.at", "$.params.arguments.tags[1]"], mode=Mode.EXACT
    )
    assert given(found, calls(2, "log", at=2, tags=["a", 2])) == ["ok"]
    error = refused(found, calls(3, "log", at=2, tags=["b", 2]))
    assert error.data["differs"] == ["$.params.arguments.tags[0]"]


def test_a_notification_gets_its_turn_by_its_method():
    found = prompter(
        tells("notifications/initialized", side="client"),
        tells("notifications/message", {"data": "up"}),
    )
    live = message(tells("notifications/initialized"))
    first, second = found.cue_for(live), found.cue_for(live)
    assert len(first.beats) == 1
    assert second is None


def test_what_was_asked_for_is_remembered():
    found = prompter(*COUNTER)
    given(found, calls(7, "count", to=9))
    assert found.asked == {5}
