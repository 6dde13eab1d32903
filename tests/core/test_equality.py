"""Typed equality."""

from __future__ import annotations

import pytest
from hypothesis import given

from folkmoot.core.strict import same
from tests.core.strategies import JSON


@given(JSON)
def test_everything_is_the_same_as_itself(value):
    assert same(value, value)


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (1, [True, 1.0, "1"]),
        (False, [0, None]),
        ([1], [[True]]),
        ({"a": 1}, [{"a": 1.0}, {"a": 1, "b": 2}, {"b": 1}]),
        ([1, 2], [[1], [2, 1]]),
        (2**60, [2**60 + 1]),
    ],
)
def test_values_that_json_tells_apart_are_not_the_same(value, others):
    for other in others:
        assert not same(value, other)
        assert not same(other, value)


def test_the_order_of_members_does_not_matter():
    assert same({"a": [1], "b": {}}, {"b": {}, "a": [1]})
