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
def test_nobody_takes_up_the_call_of_another_or_another_call_or_what_was_never_told():
    told, others = (
        inputs.mark(WISH, "anna", "files:move")["requestState"]
        for inputs in (INPUTS, Inputs(b"x" * 32))
    )
    never = (others, "s.1", "", ".", "0.s.1", 7, None, ["s.1"], {"a": 1}, "é.s.1")
    for state, person, what in (
        (told, "bert", "files:move"),
        (told, "anna", "files:remove"),
        (told, "", "files:move"),
        *((state, "anna", "files:move") for state in never),
    ):
        with pytest.raises(e.InputStateInvalid):
            INPUTS.taken({"requestState": state}, person, what)


def test_results_and_params_without_a_state_are_left_as_they_are():
    done: dict[str, Any] = {"content": [], "requestState": "not a wish"}
    assert INPUTS.mark(done, "anna", "files:move") is done
    wish = {"resultType": "input_required", "inputRequests": {}}
    assert INPUTS.mark(wish, "anna", "files:move") is wish
    params = {"name": "move"}
    assert INPUTS.taken(params, "anna", "files:move") is params
