from __future__ import annotations

import base64

import pytest
from nacl.public import Box, PrivateKey, PublicKey

from folkmoot.accounts.credentials import check_public_key, new_key_pair
from folkmoot.core import errors as e


@pytest.mark.requirement("crypto.key-pair", "crypto.key-format")
def test_a_key_pair_is_one_that_any_nacl_box_can_use():
    ours, theirs = new_key_pair(), PrivateKey.generate()
    assert len(ours.public) == 44
    assert len(ours.private) == 32
    box = Box(theirs, PublicKey(base64.b64decode(ours.public))).encrypt(b"hello")
    assert Box(PrivateKey(ours.private), theirs.public_key).decrypt(box) == b"hello"
    assert new_key_pair().public != ours.public


def test_a_key_pair_prints_no_private_key():
    pair = new_key_pair()
    assert repr(pair) == f"<KeyPair {pair.public}>"


def encoded(key: bytes) -> str:
    return base64.b64encode(key).decode()


NO_KEYS = [
    "", "A" * 44, encoded(bytes(31)), encoded(bytes(33)), encoded(bytes(32)).rstrip("="),
    encoded(bytes(32)) + "\n", base64.urlsafe_b64encode(b"\xff" * 32).decode(), "A" * 42 + "B=",
    "é" * 44, "\ud800", "not base64 at all",
]  # fmt: skip


@pytest.mark.requirement("crypto.bad-field-named")
@pytest.mark.parametrize("text", NO_KEYS)
def test_what_is_no_key_is_an_error_that_names_the_field(text):
    with pytest.raises(e.ArgumentInvalid, match="client_public_key") as refused:
        check_public_key("client_public_key", text)
    assert refused.value.data == {"field": "client_public_key"}


@pytest.mark.requirement("crypto.no-box")
@pytest.mark.parametrize(
    "number",
    [
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        2**255 - 20,
        2**255 - 19,
        2**255 - 18,
    ],
)
@pytest.mark.parametrize("high_bit", [0, 2**255])
def test_a_key_of_low_order_is_refused(number, high_bit):
    key = encoded((number + high_bit).to_bytes(32, "little"))
    with pytest.raises(e.ArgumentInvalid, match="client_public_key must be a public key"):
        check_public_key("client_public_key", key)


def test_a_key_is_kept_as_it_was_given():
    key = encoded(bytes(range(32)))
    assert check_public_key("client_public_key", key) == key
