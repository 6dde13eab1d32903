"""Where two answers differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.core.strict import same
from folkmoot.proxy.redaction.placeholders import Placeholders
from folkmoot.proxy.tape.diff import MOST, Difference, differences

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "[1]"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def text(words: str) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": words}]}}


@given(VALUES, VALUES)
def test_there_is_a_difference_exactly_where_values_are_not_the_same(a, b):
    assert (differences(a, b) == []) is same(a, b)


def test_each_place_that_differs_is_named_with_both_sides():
    a = {"result": {"a": 1, "gone": True, "list": [1, 2]}}
    assert differences(a, {"result": {"a": 2, "list": [1, 2, 3], "new": None}}) == [
        Difference("$.result.a", 1, 2),
        Difference("$.result.gone", True, UNSET),
        Difference("$.result.list[2]", UNSET, 3),
        Difference("$.result.new", UNSET, None),
    ]


ECHO, ADD, X = {"name": "echo"}, {"name": "add"}, {"name": "x", "n": 1}


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        # Numbers of another type differ.
        ({"a": 1}, {"a": 1.0}, [Difference("$.a", 1, 1.0)]),
        ({"a": 1}, {"a": True}, [Difference("$.a", 1, True)]),
        # Items that have names are compared by name, and another order is one difference.
        ([ECHO, {**ADD, "n": 1}], [ECHO, {**ADD, "n": 2}], [Difference('$["add"].n', 1, 2)]),
        ([ECHO], [ADD, ECHO], [Difference('$["add"]', UNSET, ADD)]),
        ([ECHO, ADD], [ADD, ECHO], [Difference("$", ("echo", "add"), ("add", "echo"))]),
        # Where a name is not of one alone, they are compared by their place.
        ([X, {**X, "n": 2}], [X, {**X, "n": 3}], [Difference("$[1].n", 2, 3)]),
        # Text that is the same JSON written otherwise differs as text.
        ("[1,2]", "[1, 2]", [Difference("$", "[1,2]", "[1, 2]")]),
    ],
)
def test_values_are_compared_by_type_name_and_place(a, b, found):
    assert differences(a, b) == found


def test_text_that_is_json_is_looked_into():
    a, b = text('{"time": 1, "rows": [1]}'), text('{"rows":[1],"time":2}')
    assert differences(a, b) == [Difference("$.result.content[0].text.time", 1, 2)]
    assert differences(a, b, ["$..time"]) == []


def test_places_that_are_ignored_do_not_count():
    a, b = {"result": {"id": 1, "x": 1}}, {"result": {"id": 2, "x": 2}}
    assert differences(a, b, ["$.result.id"]) == [Difference("$.result.x", 1, 2)]
    assert differences(a, b, ["$.result"]) == []
    with pytest.raises(e.PathSyntax):
        differences(a, b, ["result.id"])


def test_a_secret_that_is_not_on_the_tape_is_taken_to_be_the_same():
    hidden = Placeholders(b"k" * 32).of("sk_abc", "token")
    recorded = {"a": f"key {hidden}!", "b": hidden, "c": hidden}
    assert differences(recorded, {"a": "key sk_xyz!", "b": 7, "c": "x"}) == []
    assert differences(recorded, {"a": "lock sk_xyz!", "b": 7}) == [
        Difference("$.a", recorded["a"], "lock sk_xyz!"),
        Difference("$.c", hidden, UNSET),
    ]


def test_secrets_of_one_key_are_compared_and_those_of_two_only_in_kind():
    key, other = Placeholders(b"k" * 32), Placeholders(b"o" * 32)
    one, two = key.of("sk_one", "token"), key.of("sk_two", "token")
    assert differences(one, two) == [Difference("$", one, two)]
    assert differences(one, other.of("sk_one", "token"), one_key=False) == []
    assert differences(one, other.of("sk_one", "mail"), one_key=False) != []


def test_values_that_differ_everywhere_are_told_in_a_bounded_list():
    assert len(differences([1] * (MOST + 5), [2] * (MOST + 5))) == MOST


def test_values_nested_deeper_than_python_recurses_are_compared():
    a: Any = 1
    b: Any = 2
    for _ in range(5_000):
        a, b = [a], [b]
    (found,) = differences(a, b)
    assert (found.recorded, found.live) == (1, 2)
