from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.accounts.profiles import check_text, is_plain
from folkmoot.core import errors as e


@pytest.mark.requirement("tool.set-profile.lengths")
@pytest.mark.parametrize(
    ("field", "least", "most"),
    [("display_name", 1, 100), ("bio", 0, 500), ("status", 0, 100), ("nickname", 0, 100)],
)
def test_a_text_is_as_long_as_its_field_allows(field, least, most):
    for length in (least, most):
        for character in "a\U0001f600":
            assert check_text(field, character * length) == character * length
    for length in {least - 1, most + 1} - {-1}:
        with pytest.raises(e.ArgumentInvalid, match=field) as refused:
            check_text(field, "a" * length)
        assert refused.value.data == {"field": field}


@pytest.mark.parametrize(
    "bad", ["\0", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\ud800"]
)
@pytest.mark.parametrize("field", ["display_name", "bio", "status", "nickname"])
def test_no_text_holds_a_control_character(field, bad):
    with pytest.raises(e.ArgumentInvalid, match=f"{field} must not have control characters"):
        check_text(field, f"a{bad}b")


def test_only_a_bio_has_several_lines():
    assert check_text("bio", "one\r\n\ttwo\n") == "one\r\n\ttwo\n"
    for field in ("display_name", "status", "nickname"):
        with pytest.raises(e.ArgumentInvalid):
            check_text(field, "one\ntwo")


@pytest.mark.parametrize("blank", [" ", "  ", "\u3000", "\u00a0", "\u200b"])
def test_a_display_name_can_be_seen(blank):
    with pytest.raises(e.ArgumentInvalid, match="display_name must not be blank"):
        check_text("display_name", blank)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=100))
def test_every_plane_of_unicode_may_be_written(text):
    turning = {*map(chr, range(0x2028, 0x202F)), *map(chr, range(0x2066, 0x206A))}
    assert is_plain(text) == turning.isdisjoint(text)
