"""What an app can be allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.oauth.scopes import DEFAULT, GRANTABLE, asked, chosen, narrowed, offers
from folkmoot.core.scopes import SCOPES, row_of, scope

WORDS = st.sampled_from([*(row.name for row in SCOPES), "*", "rooms:square", "tools:git", "openid"])


def test_an_app_can_have_what_the_table_says():
    first = ("mail.read", "mail.send", "contacts", "account.read", "rooms", "ask", "tools")
    assert first == DEFAULT
    assert set(GRANTABLE) == {*first, "mail.delete", "rooms.manage", "decide"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", DEFAULT),
        ("  ", DEFAULT),
        ("openid profile email offline_access", DEFAULT),
        ("tools offline_access unknown mail.read tools", ("tools", "mail.read")),
        ("rooms:square decide account operate *", ("rooms:square", "decide")),
        ("rooms:../x mail.read:me rooms", ("rooms",)),
        *((text, None) for text in ("unknown", "account", "operate", "*", "openid *", "rooms:")),
        ("tools " * 500, None),
    ],
)
def test_of_what_an_app_asks_for_the_known_is_kept(text, kept):
    if kept is not None:
        assert asked(text) == kept
        return
    with pytest.raises(e.OAuthError) as refusal:
        asked(text)
    assert refusal.value.error == "invalid_scope"


def test_to_decide_is_offered_and_what_is_not_usual_must_be_chosen():
    lines = offers(("tools:git", "mail.delete", "mail.read"))
    assert [(word, row.app) for word, row in lines] == [
        ("mail.read", "default"),
        ("mail.delete", "asked"),
        ("decide", "offered"),
        ("tools:git", "default"),
    ]


def test_a_person_gives_what_was_offered_or_less():
    assert chosen(("mail.read", "rooms"), ("rooms", "mail.read")) == "mail.read rooms"
    assert chosen(("mail.read", "rooms"), ("rooms:square", "decide")) == "decide rooms:square"


@pytest.mark.parametrize(
    ("words", "attacks"),
    [
        (("mail.read",), [("mail.send",), ("mail.read", "mail.delete"), ("mail.read unknown",)]),
        (("mail.read",), [("account",), ("operate",), ("*",), ("*", "mail.read"), ()]),
        (("rooms:square",), [("rooms",), ("rooms:kitchen",)]),
    ],
)
def test_a_scope_added_in_the_page_is_refused(words, attacks):
    for ticked in attacks:
        with pytest.raises(e.OAuthError):
            chosen(words, ticked)


def test_a_scope_of_a_page_that_is_too_long_is_not_even_compiled():
    for number in range(4):
        compiled = scope.cache_info().misses
        with pytest.raises(e.OAuthError):
            chosen(("mail.read",), (f"mail.read {number} {'x ' * 2048}",))
    assert scope.cache_info().misses == compiled


def test_a_refresh_can_only_narrow():
    for granted, text, left in (
        ("mail.read rooms", "", "mail.read rooms"),
        ("mail.read rooms", "openid offline_access", "mail.read rooms"),
        ("mail.read rooms", "rooms:square offline_access", "rooms:square"),
        ("mail.read rooms", "mail.read mail.send operate *", "mail.read"),
    ):
        assert narrowed(granted, text) == left
    for granted, more in (("rooms:square", "rooms"), ("mail.read", "mail.send"), ("tools", "*")):
        with pytest.raises(e.OAuthError) as refusal:
            narrowed(granted, more)
        assert refusal.value.error == "invalid_scope"


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=5))
def test_no_app_ever_gets_what_none_can_have(wanted, ticked, later):
    try:
        given_ = chosen(asked(" ".join(wanted)), ticked)
        left = narrowed(given_, " ".join(later))
    except e.OAuthError:
        return
    assert scope(given_).covers(scope(left))
    for word in scope(left).words:
        row = row_of(word)
        assert row is not None
        assert row.name in GRANTABLE
