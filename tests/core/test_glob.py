"""Globs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.glob import Glob, glob
from tests.core.strategies import FEW, FEW_STARRED

TEXTS = FEW | st.just("")


def reference(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


@given(FEW_STARRED, TEXTS)
def test_it_matches_what_a_regular_expression_would(pattern, text):
    assert glob(pattern).matches(text) is reference(pattern, text)


@given(FEW_STARRED, FEW_STARRED, TEXTS)
def test_what_a_covered_pattern_matches_is_matched(a, b, text):
    if glob(a).covers(glob(b)) and glob(b).matches(text):
        assert glob(a).matches(text)


@given(FEW_STARRED, FEW_STARRED)
def test_what_is_not_covered_has_a_witness(a, b):
    """A letter that is in neither stands for the other's star."""
    if not glob(a).covers(glob(b)):
        assert not glob(a).matches(b.replace("*", "z"))


@given(FEW_STARRED, FEW_STARRED, TEXTS)
def test_patterns_that_match_one_text_intersect(a, b, text):
    if glob(a).matches(text) and glob(b).matches(text):
        assert glob(a).intersects(glob(b))
        assert glob(b).intersects(glob(a))


@pytest.mark.parametrize(
    ("meets", "pairs"),
    [
        (False, [("a*", "b*"), ("*a", "*b"), ("a", "b")]),
        (True, [("a*b", "ab"), ("a*c", "ab*"), ("ab", "a*")]),
    ],
)
def test_patterns_meet_when_their_ends_agree(meets, pairs):
    for a, b in pairs:
        assert glob(a).intersects(glob(b)) is meets, (a, b)


@pytest.mark.requirement("capability.payload-no-regex")
@pytest.mark.parametrize("special", [".", "?", "[a]", "(a)", "\\", "^", "$", "+", "{2}", "|"])
def test_nothing_but_the_star_is_special(special):
    assert glob(special).matches(special)
    assert not glob(special).matches("a")
    assert glob(f"*{special}*").matches(f"x{special}y")


@pytest.mark.requirement("capability.no-backtracking")
def test_many_stars_against_a_near_miss_stay_cheap():
    """The classic bomb: a backtracking matcher would not end within the age of the universe."""
    assert not Glob("*a" * 500 + "*b").matches("a" * 1024)
    assert Glob("*a" * 500 + "*").matches("a" * 1024)


def test_it_says_what_it_is():
    assert repr(glob("a**b")) == "Glob('a*b')"
    assert glob("*").is_any
    assert glob("a").is_literal
    assert not glob("a*").is_literal
