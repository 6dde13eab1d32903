from __future__ import annotations

import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.accounts.credentials import (
    CODE_ALPHABET,
    INVITE,
    TOKEN,
    hash_of,
    hash_recovery_code,
    new_invite_code,
    new_recovery_code,
    new_secret,
)

LETTERS = st.text(CODE_ALPHABET, min_size=12, max_size=12)


@pytest.mark.requirement("auth.token-format")
def test_a_token_is_sk_and_64_lower_case_hexadecimal_digits():
    tokens = {new_secret("sk") for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch("sk_[0-9a-f]{64}", token) and len(token) == 67 for token in tokens)


NO_TOKENS = [
    "", "sk_", "sk_" + "a" * 63, "sk_" + "a" * 65, "sk_" + "A" * 64, "sk_" + "g" * 64,
    "SK_" + "a" * 64, " sk_" + "a" * 64, "sk_" + "a" * 64 + "\n", "sk_" + "\uff11" * 64, "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_TOKENS)
def test_what_is_no_token_has_no_hash(text):
    assert hash_of(TOKEN, text) is None


@pytest.mark.requirement("auth.token-hashed")
def test_a_token_is_hashed_by_sha256():
    token = new_secret("sk")
    assert hash_of(TOKEN, token) == sha256(token.encode()).hexdigest()


@pytest.mark.requirement("recovery.code-format")
def test_a_recovery_code_is_three_groups_of_four_unmistakable_characters():
    codes = {new_recovery_code() for _ in range(200)}
    assert len(codes) == 200
    assert CODE_ALPHABET == "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    form = f"[{CODE_ALPHABET}]{{4}}(-[{CODE_ALPHABET}]{{4}}){{2}}"
    assert all(re.fullmatch(form, code) and len(code) == 14 for code in codes)
    assert set("".join(codes)) == {*CODE_ALPHABET, "-"}


@pytest.mark.requirement("recovery.lenient-input")
@given(LETTERS, st.randoms(use_true_random=False), st.lists(st.integers(0, 12), max_size=6))
def test_a_recovery_code_is_the_same_in_any_case_with_or_without_dashes(letters, random, dashes):
    canonical = f"{letters[:4]}-{letters[4:8]}-{letters[8:]}"
    written = [random.choice((c, c.lower())) for c in letters]
    for place in dashes:
        written.insert(place, "-")
    expected = sha256(canonical.encode()).hexdigest()
    assert hash_recovery_code("".join(written)) == expected
    assert hash_recovery_code(canonical) == expected


@given(st.text(max_size=20) | st.text(CODE_ALPHABET + "01IOabi-\u017f\u0131", max_size=16))
def test_only_twelve_letters_of_the_alphabet_are_a_recovery_code(text):
    letters = text.strip().replace("-", "").upper()
    expected = text.isascii() and len(letters) == 12 and set(letters) <= set(CODE_ALPHABET)
    assert (hash_recovery_code(text) is not None) == expected


def test_a_recovery_code_of_a_million_characters_is_refused_unread():
    assert hash_recovery_code("-" * 1_000_000 + "A" * 12) is None


@pytest.mark.requirement("invite.code-entropy")
def test_an_invite_code_has_128_bits_in_characters_that_need_no_escape():
    codes = {new_invite_code() for _ in range(100)}
    assert len(codes) == 100
    assert all(re.fullmatch("ic_[0-9a-f]{32}", code) for code in codes)
    assert all(hash_of(INVITE, code) == sha256(code.encode()).hexdigest() for code in codes)
    for wrong in ("", "a" * 32, "ic_" + "a" * 31, "ic_" + "g" * 32):
        assert hash_of(INVITE, wrong) is None
