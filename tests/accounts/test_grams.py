from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.accounts.limits import MAX_GRAM, MAX_QUERY_GRAMS
from folkmoot.accounts.queries import (
    fold,
    grams_in_query,
    grams_of,
)

NAMES = st.text(max_size=30) | st.text("aAbB\u00df\u0130\u03a3\u03c2%_\\", max_size=12)


@given(NAMES, st.integers(0, 30), st.integers(1, 30), st.booleans())
def test_whatever_part_of_a_name_is_asked_for_its_grams_are_among_the_names(
    name, start, length, upper
):
    part = name[start : start + length]
    if not part:
        return
    asked = fold(part.swapcase() if upper and fold(part.swapcase()) == fold(part) else part)
    assert asked in fold(name)
    assert set(grams_in_query(asked)) <= grams_of("other", name)


@given(NAMES, NAMES)
def test_a_query_of_up_to_three_characters_is_a_gram_exactly_of_what_contains_it(name, query):
    asked = fold(query)[:MAX_GRAM]
    if asked:
        assert (asked in grams_of(name)) == (asked in fold(name))


@given(st.text(min_size=4, max_size=300))
def test_a_long_query_asks_for_a_few_grams_only(query):
    grams = grams_in_query(fold(query))
    assert 1 <= len(grams) <= MAX_QUERY_GRAMS
    assert len(set(grams)) == len(grams)
