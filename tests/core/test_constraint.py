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
    ("source", "yes", "no"),
    [
        ({}, [{}, {"a": 1}], [None]),
        ({"a": 1}, [{"a": 1, "b": 2}], [{"a": True}, {"a": 1.0}, {"a": "1"}, {}]),
        ({"a": None}, [{"a": None}], [{}]),
        ({"a": "x"}, [{"a": "x"}], []),
        ({"a": "read_*"}, [{"a": "read_file"}], [{"a": "write_file"}]),
        ({"a": "*"}, [], [{"a": 1}]),
        ({"a": ["x", 1, "read_*"]}, [{"a": "read_x"}], []),
        ({"a": ["x", 1]}, [{"a": 1}], [{"a": "y"}]),
        ({"a": ["x"]}, [], [{"a": ["x"]}]),
        ({"a": [["x"]]}, [{"a": ["x"]}], []),
        ({"a": [{"b": 1}, 2]}, [{"a": {"b": 1, "c": 2}}], []),
        ({"a": []}, [], [{"a": []}]),
        (
            {"params": {"name": "read_*", "dry": True}},
            [{"params": {"name": "read_x", "dry": True}}],
            [{"params": {"name": "read_x"}}],
        ),
        ({"params": {"name": "x"}}, [], [{"params": ["name"]}]),
        ({"a": "x.z"}, [], [{"a": "xyz"}]),
    ],
)
def test_a_payload_must_say_what_is_asked(source, yes, no):
    assert all(map(Constraint(source).matches, yes))
    assert not any(map(Constraint(source).matches, no))


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
    ("wide", "narrower", "others"),
    [
        ({}, [{"a": 1}], []),
        ({"a": 1}, [], [{}, {"a": {"b": 1}}, {"a": True}]),
        ({"a": "r*"}, [{"a": "read"}, {"a": "re*"}], []),
        ({"a": "re*"}, [], [{"a": "r*"}]),
        ({"a": ["x", "y"]}, [{"a": "x"}, {"a": ["y", "x"]}], []),
        ({"a": ["x"]}, [], [{"a": ["x", "y"]}]),
        ({"a": "*"}, [], [{"a": ["x", 1]}]),
        ({"a": {"b": 1}}, [{"a": {"b": 1, "c": 2}}], [{"a": 1}]),
        ({"a": [[1]]}, [{"a": [[1]]}], []),
    ],
)
def test_a_constraint_covers_a_narrower_one(wide, narrower, others):
    assert all(Constraint(wide).covers(Constraint(each)) for each in narrower)
    assert not any(Constraint(wide).covers(Constraint(each)) for each in others)


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
