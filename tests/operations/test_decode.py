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
from folkmoot.operations.row import describe

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = sorted({name for tool in CATALOGUE.tools for name in tool.schema["properties"]})
ARGUMENTS = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=10), JSON, max_size=5)


def refused(name: str, arguments: Any) -> str:
    tool = CATALOGUE.find(name)
    with pytest.raises(e.ArgumentInvalid) as error:
        decode(tool.takes, arguments)
    return error.value.message


class Change(Arguments, frozen=True, kw_only=True):
    label: Annotated[str, describe("What it is for.", min_length=1, max_length=3)] | UnsetType = (
        UNSET
    )
    rights: Annotated[list[str], describe("What it may do.")] | UnsetType | None = UNSET
    limit: Annotated[int, describe("How many.", ge=1, le=9)] = 5


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


def test_what_lies_too_deep_or_cannot_be_json_is_refused_however_deep_it_lies():
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    assert refused("msg/send", {"to": deep}) == "to must be a string."
    told = refused("msg/send", {"encrypted_payload": deep, "to": "x"})
    assert told == "Unknown argument: encrypted_payload.a."
    asked = {"room": "tea", "method": "tools/call"}
    assert refused("room/propose", {**asked, "params": deep}) == "params is nested too deeply."
    sentence = "params holds text or a number that is not valid JSON."
    for value in ("\ud800", math.nan, -math.inf, {"\ud800": 1}):
        assert refused("room/propose", {**asked, "params": {"a": [{"b": value}]}}) == sentence


@pytest.mark.requirement("mcp.argument-errors")
def test_a_whole_number_may_be_written_with_a_fraction_as_long_as_it_is_exact():
    tool = CATALOGUE.find("msg/inbox")
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
