"""Wishes for input are tied to whom and for what they were told."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.gateway.requests import Inputs

INPUTS = Inputs(b"k" * 32)
WISH = {"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s.1"}


def test_what_was_told_is_taken_again_from_the_same_person_for_the_same_thing():
    told = INPUTS.mark(WISH, "anna", "files:move")
    assert told["requestState"] != "s.1"
    assert told["inputRequests"] is WISH["inputRequests"]
    params = {"name": "move", "requestState": told["requestState"]}
    assert INPUTS.taken(params, "anna", "files:move") == {"name": "move", "requestState": "s.1"}


@pytest.mark.requirement("gateway.shared-link")
@pytest.mark.parametrize(
    ("person", "what"), [("bert", "files:move"), ("anna", "files:remove"), ("", "files:move")]
)
def test_nobody_takes_up_the_call_of_another_or_another_call(person, what):
    told = INPUTS.mark(WISH, "anna", "files:move")
    with pytest.raises(e.InputStateInvalid):
        INPUTS.taken({"requestState": told["requestState"]}, person, what)


@pytest.mark.parametrize("state", ["s.1", "", ".", "0.s.1", 7, None, ["s.1"], {"a": 1}, "é.s.1"])
def test_a_state_that_was_never_told_is_refused(state):
    with pytest.raises(e.InputStateInvalid):
        INPUTS.taken({"requestState": state}, "anna", "files:move")


def test_a_mark_of_another_hub_is_refused():
    told = Inputs(b"x" * 32).mark(WISH, "anna", "files:move")
    with pytest.raises(e.InputStateInvalid):
        INPUTS.taken({"requestState": told["requestState"]}, "anna", "files:move")


def test_results_and_params_without_a_state_are_left_as_they_are():
    done: dict[str, Any] = {"content": [], "requestState": "not a wish"}
    assert INPUTS.mark(done, "anna", "files:move") is done
    wish = {"resultType": "input_required", "inputRequests": {}}
    assert INPUTS.mark(wish, "anna", "files:move") is wish
    params = {"name": "move"}
    assert INPUTS.taken(params, "anna", "files:move") is params
