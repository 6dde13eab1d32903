from __future__ import annotations

import math
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from folkmoot.core import errors as e
from folkmoot.operations import CATALOGUE, Arguments
from folkmoot.operations.arguments import decode
from folkmoot.operations.row import says

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = sorted({name for tool in CATALOGUE.tools for name in tool.schema["properties"]})
ARGUMENTS = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=10), JSON, max_size=5)


def refused(name: str, arguments: Any) -> str:
    tool = CATALOGUE.find(name)
    assert tool is not None
    with pytest.raises(e.ArgumentInvalid) as error:
        decode(tool.takes, arguments)
    return error.value.message


@pytest.mark.parametrize("arguments", [[], "x", 7, True, [["to", "bob"]]])
def test_arguments_that_are_no_object_are_refused(arguments):
    assert refused("msg/send", arguments) == "The arguments must be an object."


class Change(Arguments, frozen=True, kw_only=True):
    label: Annotated[str, says("What it is for.", min_length=1, max_length=3)] | UnsetType = UNSET
    rights: Annotated[list[str], says("What it may do.")] | UnsetType | None = UNSET
    limit: Annotated[int, says("How many.", ge=1, le=9)] = 5


def test_null_is_a_value_where_the_struct_tells_it_from_nothing():
    assert decode(Change, {}) == Change()
    assert decode(Change, {"rights": None, "limit": None}) == Change(rights=None)
    for wrong, sentence in (
        ({"label": None}, "label must be a string of 1 to 3 characters."),
        ({"label": "", "rights": None}, "label must be a string of 1 to 3 characters."),
        ({"label": "long"}, "label must be a string of 1 to 3 characters."),
        ({"rights": [None]}, "rights must be a list, each a string."),
    ):
        with pytest.raises(e.ArgumentInvalid) as error:
            decode(Change, wrong)
        assert error.value.message == sentence


def test_null_is_the_same_as_nothing():
    assert refused("msg/send", {"to": None}) == "Missing argument: to."
    tool = CATALOGUE.find("msg/inbox")
    assert tool is not None
    assert decode(tool.takes, {"limit": None}) == decode(tool.takes, None)


def test_names_are_repeated_in_a_readable_length_and_number():
    assert refused("msg/digest", {"x" * 100: 1}) == f"Unknown argument: {'x' * 40}…."
    assert refused("msg/digest", {"a\n\x1b": 1}) == "Unknown argument: a��."
    many = dict.fromkeys("abcdefg", 1)
    assert refused("msg/digest", many) == "Unknown arguments: a, b, c, d, e, …."


def test_half_of_a_surrogate_pair_is_refused_wherever_it_stands():
    payload = {"ciphertext": "\ud800", "nonce": "", "sender_public_key": ""}
    assert "is not valid Unicode text" in refused("msg/send", {"to": "\ud800"})
    assert "is not valid Unicode text" in refused(
        "msg/send", {"to": "x", "encrypted_payload": payload}
    )
    assert refused("msg/send", {"to": "x", "\ud800": 1}) == "Unknown argument: �."
    payload = {"\ud800": 1}
    sentence = refused("msg/send", {"to": "x", "encrypted_payload": payload})
    assert sentence == "Unknown argument: encrypted_payload.�."


def test_arguments_that_lie_deep_inside_each_other_are_refused_like_any_other():
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    assert refused("msg/send", {"to": deep}) == "to must be a string."
    assert refused("msg/send", {"encrypted_payload": deep, "to": "x"}) == (
        "Unknown argument: encrypted_payload.a."
    )


def test_what_is_wrong_in_a_list_or_an_object_is_told_of_the_argument_it_is_in():
    say = {"room": "tea", "text": "hello"}
    assert refused("room/say", {**say, "mentions": "bob"}) == (
        "mentions must be a list of at most 64, each a string."
    )
    assert refused("room/say", {**say, "mentions": ["bob", 7]}) == (
        "mentions must be a list of at most 64, each a string."
    )
    assert refused("room/read", {"room": "tea", "kinds": ["chat", "gossip"]}) == (
        "kinds must be a list of at most 7, each chat, proposal, request, response, presence, "
        "reasoning or other."
    )
    assert refused("room/create", {"name": "tea", "grants": {"bob": "*"}}) == (
        "grants must be an object in which each member is a list, each a string."
    )
    assert refused("room/create", {"name": "tea", "policy": {"quorums": 2}}) == (
        "Unknown argument: policy.quorums."
    )


def test_what_json_cannot_hold_is_refused_however_deep_it_lies():
    asked = {"room": "tea", "method": "tools/call"}
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    assert refused("room/propose", {**asked, "params": deep}) == "params is nested too deeply."
    sentence = "params holds text or a number that is not valid JSON."
    for value in ("\ud800", math.nan, -math.inf, {"\ud800": 1}):
        assert refused("room/propose", {**asked, "params": {"a": [{"b": value}]}}) == sentence
    tool = CATALOGUE.find("room/propose")
    assert tool is not None
    fine = {"a": [{"b": [1, 1.5, None, True, 2**70, "🦉"]}]}
    decoded: Any = decode(tool.takes, {**asked, "params": fine})
    assert decoded.params == fine


@pytest.mark.requirement("mcp.argument-errors")
def test_a_whole_number_may_be_written_with_a_fraction_as_long_as_it_is_exact():
    tool = CATALOGUE.find("msg/inbox")
    assert tool is not None
    assert decode(tool.takes, {"before": 50.0, "limit": 2.0}) == decode(
        tool.takes, {"before": 50, "limit": 2}
    )
    for value in (1e300, -1e300, 2.0**53 + 2, 0.5):
        assert refused("msg/inbox", {"before": value}) == "before must be an integer."


@pytest.mark.requirement("mcp.argument-errors")
@given(st.sampled_from(CATALOGUE.tools), ARGUMENTS)
def test_any_arguments_are_decoded_or_refused_with_a_sentence(tool, arguments):
    sentence, decoded = "", None
    try:
        decoded = decode(tool.takes, arguments)
    except e.ArgumentInvalid as error:
        sentence = error.message
    assert isinstance(decoded, tool.takes) or sentence.endswith(".")
    assert sentence.encode().decode() == sentence
    assert len(sentence) < 400
