from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.jsonschemas import Schema
from folkmoot.plainschemas import MOST_ITEMS, plain_check

NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "boolean", "null", "integer", "number", "array", "object"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    sizes, numbers = st.integers(0, 3), st.integers(-3, 3) | st.floats(-3, 3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "enum": st.lists(st.sampled_from(["", "a", "b"]), min_size=1, unique=True),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "minimum": numbers,
            "maximum": numbers,
            "exclusiveMinimum": numbers,
            "exclusiveMaximum": numbers,
            "minLength": sizes,
            "maxLength": sizes,
            "minItems": sizes,
            "maxItems": sizes,
            "description": st.just("Words."),
        },
    )


SCHEMAS = st.recursive(schemas(st.just(True)), schemas, max_leaves=5)


@given(SCHEMAS, VALUES)
def test_what_surely_fits_a_plain_schema_is_valid(schema: Any, value: Any) -> None:
    check = plain_check(schema)
    if check is not None and check(value):
        assert jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"a": ""}),
        ({"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}, {"a": None}),
        ({"properties": {"a": {"items": {"enum": ["x"]}, "maxItems": 2}}}, {"a": ["x", "x"]}),
        ({"properties": {"a": {"minimum": 0, "default": 5}}, "additionalProperties": False}, {}),
    ],
)
def test_arguments_as_tools_take_them_are_seen_to_fit_at_once(schema: Any, value: Any) -> None:
    check = plain_check(schema)
    assert check is not None
    assert check(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"pattern": "a"},
        {"items": [True]},
        {"items": {"items": {"type": "string"}}},
        {"properties": 5},
        {"type": "strange"},
        {"enum": [1]},
        {"minimum": True},
        False,
        5,
    ],
)
def test_other_schemas_are_not_plain(schema: Any) -> None:
    assert plain_check(schema) is None


def test_a_list_that_takes_long_is_left_to_the_bounded_check() -> None:
    check = plain_check({"items": {"type": "integer"}})
    assert check is not None
    assert not check([1] * (MOST_ITEMS + 1))


def test_what_does_not_fit_is_told_as_before() -> None:
    schema = Schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]})
    assert schema.faults({"a": "x"}) == [
        "a: 'x' is not of type 'integer'",
        "'b' is a required property",
    ]
    assert schema.faults({"a": 1, "b": 2}) == []
