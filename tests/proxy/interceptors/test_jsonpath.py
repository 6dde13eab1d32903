"""Paths into JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.proxy.interceptors.jsonpath import MISSING, Path, PathSyntax

DATA = {"a": {"b c": [{"x": 1}, {"x": 2}, 3], "d": None}, "e": []}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$", [DATA]),
        ("$.a.d", [None]),
        ("$.a['b c'][0].x", [1]),
        ('$["a"]["b c"][*].x', [1, 2]),
        ("$.a.*", [DATA["a"]["b c"], None]),  # type: ignore[index]
        ("$.e[*]", []),
        ("$.a[0]", []),
        ("$.e.x", []),
        ("$.a['b c'][9]", []),
    ],
)
def test_a_path_leads_to_values(text: str, expected: list[Any]) -> None:
    assert Path(text).select(DATA) == expected


@pytest.mark.parametrize(
    "text", ["", "a", "$.", "$..a", "$.a b", "$[a]", "$[-1]", "$.a[", "$x", "$." + "a" * 300]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(PathSyntax):
        Path(text)


def test_an_edit_shares_what_it_does_not_change_and_leaves_the_original_alone() -> None:
    changed = Path("$.a['b c'][*].x").edit(DATA, lambda _: 9)
    assert changed["a"]["b c"] == [{"x": 9}, {"x": 9}, 3]
    assert changed["e"] is DATA["e"]
    assert Path("$.a['b c'][0].x").select(DATA) == [1]
    assert Path("$.a.nowhere").edit(DATA, lambda value: value) is DATA
    assert Path("$.new.deep").edit({}, lambda _: 1) == {"new": {"deep": 1}}
    assert Path("$.new[0]").edit({}, lambda _: 1) == {}
    assert Path("$.a['b c'][1]").edit(DATA, lambda _: MISSING)["a"]["b c"] == [{"x": 1}, 3]
    assert Path("$.a.d").edit(DATA, lambda _: MISSING)["a"] == {"b c": DATA["a"]["b c"]}  # type: ignore[index]


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    ),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from([".a", ".b", "[0]", "[1]", "[*]", ".*"]), max_size=4)


@given(VALUES, STEPS)
def test_what_is_put_at_a_path_that_leads_somewhere_is_found_there(
    value: Any, steps: list[str]
) -> None:
    path = Path("$" + "".join(steps))
    before = len(path.select(value))
    put = path.edit(value, lambda old: old if old is MISSING else "put")
    assert path.select(put) == ["put"] * before
    gone = path.edit(value, lambda _: MISSING)
    assert gone is MISSING or "." not in steps[-1:] or not path.select(gone)
