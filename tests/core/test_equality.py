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
    ("a", "b"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (1, "1"),
        (None, False),
        ([1], [True]),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {"b": 1}),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        (2**60, 2**60 + 1),
    ],
)
def test_values_that_json_tells_apart_are_not_the_same(a, b):
    assert not same(a, b)
    assert not same(b, a)


def test_the_order_of_members_does_not_matter():
    assert same({"a": [1], "b": {}}, {"b": {}, "a": [1]})
