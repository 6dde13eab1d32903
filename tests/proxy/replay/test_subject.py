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


ARGUMENTS, EXACT, ORDER = Mode.ARGUMENTS, Mode.EXACT, Mode.ORDER
TRACED = call(_meta={"trace": "x"})
ACCEPTS, DECLINES = (
    call(inputResponses={"q": {"action": action}}, requestState="s")
    for action in ("accept", "decline")
)


@pytest.mark.parametrize(
    ("modes", "one", "other", "same"),
    [
        ((ARGUMENTS, EXACT), call(), {"arguments": {"b": 2, "a": 1}, "name": "echo"}, True),
        # A number of another type is another argument.
        ((ARGUMENTS,), call(), call(arguments={"a": 1.0, "b": 2}), False),
        # What is said beside the arguments counts only where all must be equal.
        ((ARGUMENTS,), call(), TRACED, True),
        ((EXACT,), call(), TRACED, False),
        # A progress token never counts.
        ((EXACT,), call(_meta={"progressToken": 1, "t": 1}), call(_meta={"t": 1}), True),
        ((EXACT,), call(_meta={"progressToken": 1}), call(), True),
        # Arguments that are missing are none.
        ((ARGUMENTS,), {"name": "now"}, {"name": "now", "arguments": {}}, True),
        ((ARGUMENTS,), {}, {"cursor": None}, True),
        ((ARGUMENTS,), {}, {"cursor": "2"}, False),
        # In order, only the method counts.
        ((ORDER,), call(), {"name": "other"}, True),
        # Of answers to a server only what they are answers to counts.
        ((ARGUMENTS,), ACCEPTS, DECLINES, True),
        ((ARGUMENTS,), ACCEPTS, call(), False),
    ],
)
def test_a_call_is_the_same_by_what_its_mode_compares(modes, one, other, same):
    method = "tools/call" if one else "tools/list"
    assert [alike(mode, method, one or None, other) for mode in modes] == [same] * len(modes)


@pytest.mark.parametrize("mode", Mode)
def test_one_greeting_is_as_good_as_another(mode):
    one, other = {"clientInfo": {"name": "a"}}, {"clientInfo": {"name": "b"}}
    assert alike(mode, "initialize", one, other)


@pytest.mark.parametrize("mode", [Mode.EXACT, Mode.ARGUMENTS])
def test_a_secret_that_was_not_recorded_is_whatever_stands_there(mode):
    recorded = {"name": "login", "arguments": {"user": "ada", "token": f"Bearer {TOKEN}!"}}
    live = {"name": "login", "arguments": {"user": "ada", "token": "Bearer abc!"}}
    assert alike(mode, "tools/call", recorded, live)
    live["arguments"] = {"user": "bob", "token": "Bearer abc!"}
    assert not alike(mode, "tools/call", recorded, live)


def test_a_request_is_named_after_what_it_is_about():
    assert name_of(Request(id=1, method="resources/read", params={"uri": "a://b"})) == "a://b"
    assert name_of(Request(id=1, method="tools/call", params=[])) == ""
    assert name_of(Request(id=1, method="tools/list")) == ""
