"""What makes a live request the same as a recorded one."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core.message import Request
from folkmoot.proxy.replay.matching import Mode, name_of, subject_of

TOKEN = "[redacted:token:0123456789ab]"


def alike(mode: Mode, method: str, one: Any, other: Any) -> bool:
    recorded, live = (
        subject_of(Request(id=n, method=method, params=params), mode)
        for n, params in enumerate((one, other))
    )
    assert (recorded.key == live.key) <= recorded.fits(live)
    return recorded.fits(live)


def call(**more: Any) -> dict[str, Any]:
    return {"name": "echo", "arguments": {"a": 1, "b": 2}, **more}


def test_arguments_are_compared_whatever_the_order_of_their_members():
    other = {"arguments": {"b": 2, "a": 1}, "name": "echo"}
    assert alike(Mode.ARGUMENTS, "tools/call", call(), other)
    assert alike(Mode.EXACT, "tools/call", call(), other)


def test_a_number_of_another_type_is_another_argument():
    other = {"name": "echo", "arguments": {"a": 1.0, "b": 2}}
    assert not alike(Mode.ARGUMENTS, "tools/call", call(), other)


def test_what_is_said_beside_the_arguments_counts_only_where_all_must_be_equal():
    traced = call(_meta={"trace": "x"})
    assert alike(Mode.ARGUMENTS, "tools/call", call(), traced)
    assert not alike(Mode.EXACT, "tools/call", call(), traced)


def test_a_progress_token_never_counts():
    one, other = call(_meta={"progressToken": 1, "t": 1}), call(_meta={"progressToken": 2, "t": 1})
    assert alike(Mode.EXACT, "tools/call", one, other)
    assert alike(Mode.EXACT, "tools/call", call(_meta={"progressToken": 1}), call())


def test_arguments_that_are_missing_are_none():
    one, other = {"name": "now"}, {"name": "now", "arguments": {}}
    assert alike(Mode.ARGUMENTS, "tools/call", one, other)
    assert alike(Mode.ARGUMENTS, "tools/list", None, {"cursor": None})
    assert not alike(Mode.ARGUMENTS, "tools/list", None, {"cursor": "2"})


@pytest.mark.parametrize("mode", Mode)
def test_one_greeting_is_as_good_as_another(mode):
    one, other = {"clientInfo": {"name": "a"}}, {"clientInfo": {"name": "b"}}
    assert alike(mode, "initialize", one, other)


def test_in_order_only_the_method_counts():
    assert alike(Mode.ORDER, "tools/call", call(), {"name": "other"})


@pytest.mark.parametrize("mode", [Mode.EXACT, Mode.ARGUMENTS])
def test_a_secret_that_was_not_recorded_is_whatever_stands_there(mode):
    recorded = {"name": "login", "arguments": {"user": "ada", "token": f"Bearer {TOKEN}!"}}
    live = {"name": "login", "arguments": {"user": "ada", "token": "Bearer abc!"}}
    assert alike(mode, "tools/call", recorded, live)
    live["arguments"] = {"user": "bob", "token": "Bearer abc!"}
    assert not alike(mode, "tools/call", recorded, live)


def test_of_answers_to_a_server_only_what_they_are_answers_to_counts():
    one = call(inputResponses={"q": {"action": "accept"}}, requestState="s")
    assert alike(
        Mode.ARGUMENTS,
        "tools/call",
        one,
        call(inputResponses={"q": {"action": "decline"}}, requestState="s"),
    )
    assert not alike(Mode.ARGUMENTS, "tools/call", one, call())


def test_a_request_is_named_after_what_it_is_about():
    assert name_of(Request(id=1, method="resources/read", params={"uri": "a://b"})) == "a://b"
    assert name_of(Request(id=1, method="tools/call", params=[])) == ""
    assert name_of(Request(id=1, method="tools/list")) == ""
