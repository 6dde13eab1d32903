"""Payload constraints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.constraint import Constraint
from folkmoot.core.limits import (
    MAX_CONSTRAINT_DEPTH,
    MAX_CONSTRAINT_STRING,
    MAX_CONSTRAINT_VALUES,
    MAX_SEARCHED,
)
from tests.core.strategies import FEW_STARRED, JSON, OBJECTS

SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | FEW_STARRED,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
    ),
    max_leaves=5,
)
SMALL_OBJECTS = st.dictionaries(st.sampled_from("xy"), SMALL, max_size=2)


@pytest.mark.requirement(
    "capability.payload-exact", "capability.payload-star", "capability.payload-alternatives"
)
@pytest.mark.parametrize(
    ("constraint", "payload", "matches"),
    [
        ({}, {}, True),
        ({}, {"a": 1}, True),
        ({}, None, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {}, False),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": "x"}, {"a": "x"}, True),
        ({"a": "read_*"}, {"a": "read_file"}, True),
        ({"a": "read_*"}, {"a": "write_file"}, False),
        ({"a": "*"}, {"a": 1}, False),
        ({"a": ["x", 1, "read_*"]}, {"a": "read_x"}, True),
        ({"a": ["x", 1]}, {"a": 1}, True),
        ({"a": ["x", 1]}, {"a": "y"}, False),
        ({"a": ["x"]}, {"a": ["x"]}, False),
        ({"a": [["x"]]}, {"a": ["x"]}, True),
        ({"a": [{"b": 1}, 2]}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": []}, {"a": []}, False),
        (
            {"params": {"name": "read_*", "dry": True}},
            {"params": {"name": "read_x", "dry": True}},
            True,
        ),
        ({"params": {"name": "read_*", "dry": True}}, {"params": {"name": "read_x"}}, False),
        ({"params": {"name": "x"}}, {"params": ["name"]}, False),
        ({"a": "x.z"}, {"a": "xyz"}, False),
    ],
)
def test_a_payload_must_say_what_is_asked(constraint, payload, matches):
    assert Constraint(constraint).matches(payload) is matches


@pytest.mark.requirement("capability.syntax")
@pytest.mark.parametrize("source", [None, [], "x", 1])
def test_a_constraint_is_an_object(source):
    with pytest.raises(e.ConstraintSyntax):
        Constraint(source)


def test_a_constraint_has_limits():
    deep: Any = 1
    for _ in range(MAX_CONSTRAINT_DEPTH):
        deep = {"a": deep}
    long = "x" * (MAX_CONSTRAINT_STRING + 1)
    for source in (
        deep,
        {"a": list(range(MAX_CONSTRAINT_VALUES))},
        {"a": long},
        {long: 1},
        {"a": [long]},
    ):
        with pytest.raises(e.ConstraintSyntax, match="at most"):
            Constraint(source)
    assert Constraint(deep["a"]).matches(deep["a"])


@given(OBJECTS, JSON)
def test_matching_always_answers(source, payload):
    try:
        constraint = Constraint(source)
    except e.ConstraintSyntax:
        return
    assert constraint.matches(payload) in (True, False)
    assert constraint.covers(constraint)


@given(SMALL_OBJECTS, SMALL_OBJECTS, SMALL_OBJECTS)
def test_what_a_covered_constraint_lets_through_is_let_through(a, b, payload):
    if Constraint(a).covers(Constraint(b)) and Constraint(b).matches(payload):
        assert Constraint(a).matches(payload)


@pytest.mark.parametrize(
    ("wide", "narrow", "covers"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {}, False),
        ({"a": "r*"}, {"a": "read"}, True),
        ({"a": "r*"}, {"a": "re*"}, True),
        ({"a": "re*"}, {"a": "r*"}, False),
        ({"a": ["x", "y"]}, {"a": "x"}, True),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}, True),
        ({"a": ["x"]}, {"a": ["x", "y"]}, False),
        ({"a": "*"}, {"a": ["x", 1]}, False),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": {"b": 1}}, {"a": 1}, False),
        ({"a": 1}, {"a": {"b": 1}}, False),
        ({"a": [[1]]}, {"a": [[1]]}, True),
        ({"a": 1}, {"a": True}, False),
    ],
)
def test_a_constraint_covers_a_narrower_one(wide, narrow, covers):
    assert Constraint(wide).covers(Constraint(narrow)) is covers


@pytest.mark.parametrize("if_unclear", [True, False])
def test_a_text_too_long_to_be_searched_is_answered_as_asked(if_unclear):
    constraint = Constraint({"text": "*x*"})
    assert (
        constraint.matches({"text": "y" * MAX_SEARCHED + "x"}, if_unclear=if_unclear) is if_unclear
    )
    assert not constraint.matches({"text": "y" * MAX_SEARCHED}, if_unclear=if_unclear)


def test_a_constraint_keeps_what_it_was_given():
    source = {"a": {"b": "x"}}
    constraint = Constraint(source)
    source["a"]["b"] = "*"
    assert not constraint.covers(Constraint({"a": {"b": "y"}}))
