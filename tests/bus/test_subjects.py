from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.bus.subjects import SubjectIndex

TOKENS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5)
PATTERNS = st.builds(
    lambda tokens, rest: [*tokens, ">"] if rest else tokens,
    st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4),
    st.booleans(),
)


def plainly(pattern: list[str], subject: list[str]) -> bool:
    """The rule, spelled as a regular expression."""
    parts = [{"*": "[^.]+", ">": ".+"}.get(token, re.escape(token)) for token in pattern]
    return re.fullmatch(r"\.".join(parts), ".".join(subject)) is not None


@given(st.lists(PATTERNS, max_size=12), TOKENS)
def test_the_index_finds_exactly_the_patterns_that_match(patterns, subject):
    index: SubjectIndex[int] = SubjectIndex()
    for number, pattern in enumerate(patterns):
        index.add(pattern, number)
    expected = [number for number, pattern in enumerate(patterns) if plainly(pattern, subject)]
    assert sorted(index.match(subject)) == expected


@given(st.lists(PATTERNS, min_size=1, max_size=12))
def test_an_index_from_which_everything_was_removed_keeps_nothing(patterns):
    index: SubjectIndex[int] = SubjectIndex()
    for number, pattern in enumerate(patterns):
        index.add(pattern, number)
    for number, pattern in enumerate(patterns):
        assert index
        index.remove(pattern, number)
    assert not index
