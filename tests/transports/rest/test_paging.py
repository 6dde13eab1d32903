from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.operations.call import fit_on_page, make_cursor, read_cursor
from folkmoot.operations.limits import MAX_PAGE_BYTES


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=32))
def test_a_cursor_is_read_as_the_place_it_was_made_from(place):
    assert read_cursor(make_cursor(place)) == place


@given(st.text(max_size=40))
def test_whatever_is_no_cursor_is_refused(text):
    try:
        place = read_cursor(text)
    except e.ArgumentInvalid:
        return
    assert make_cursor(place) == text


@pytest.mark.parametrize("text", ["", "=", "YQ==", "YR", "_w", "AAAA", "ä", "a b"])
def test_a_cursor_that_we_do_not_write_is_refused(text):
    with pytest.raises(e.ArgumentInvalid) as refused:
        read_cursor(text)
    assert refused.value.data["field"] == "cursor"


@pytest.mark.parametrize(
    ("sizes", "most", "count", "more"),
    [
        ([], 3, 0, False),
        ([0, 0, 0], 3, 3, False),
        ([0, 0, 0, 0], 3, 3, True),
        ([MAX_PAGE_BYTES + 1], 3, 1, False),
        ([MAX_PAGE_BYTES + 1, 1], 3, 1, True),
        ([MAX_PAGE_BYTES - 1, 1, 1], 3, 2, True),
    ],
)
def test_a_page_ends_by_number_or_by_size_and_is_never_empty_while_something_is_left(
    sizes, most, count, more
):
    page, cut = fit_on_page(((number, size) for number, size in enumerate(sizes)), most)
    assert (page, cut) == (list(range(count)), more)
