"""What a message may hold."""

from __future__ import annotations

import base64

import pytest

from folkmoot.core import errors as e
from folkmoot.mail.sending import check_content
from tests.mail.support import payload

LONGEST = 1_000


def encoded(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


@pytest.mark.requirement("tool.send.neither")
def test_a_message_needs_a_body_or_a_payload():
    with pytest.raises(e.ContentMissing, match=r"^Either body or encrypted_payload is required\.$"):
        check_content(None, None, LONGEST)


@pytest.mark.requirement("tool.send.both")
def test_a_message_has_not_both():
    with pytest.raises(e.ContentTwice) as caught:
        check_content("hello", payload(), LONGEST)
    assert caught.value.message == "Provide either body or encrypted_payload, not both."


@pytest.mark.parametrize("body", ["x", "\0", " ", "é" * LONGEST, "\U0010ffff" * LONGEST])
def test_any_text_within_the_limit_is_a_body(body):
    assert check_content(body, None, LONGEST) == body


@pytest.mark.parametrize("body", ["", "x" * (LONGEST + 1), "\ud800", "x\udfff"])
def test_a_body_that_is_empty_too_long_or_no_text_is_refused_by_name(body):
    with pytest.raises(e.ArgumentInvalid) as caught:
        check_content(body, None, LONGEST)
    assert caught.value.message.startswith("body ")
    longer = {"setting": "mail.max_body_characters"} if len(body) > LONGEST else {}
    assert caught.value.data == {"field": "body", **longer}


LONG = encoded(4 * LONGEST + 17)
BAD_PARTS = {
    "ciphertext": ["", "AA==", encoded(15), "***", "AAA", "AAAA\n", "\N{SNOWMAN}", LONG],
    "nonce": ["", "!", encoded(23), encoded(25)],
    "sender_public_key": ["", "?" * 44, encoded(31), encoded(32), encoded(33)],
}


@pytest.mark.requirement("crypto.bad-field-named", "crypto.no-box")
@pytest.mark.parametrize(("field", "value"), [(k, it) for k in BAD_PARTS for it in BAD_PARTS[k]])
def test_a_bad_part_of_a_payload_is_refused_by_name(field, value):
    with pytest.raises(e.ArgumentInvalid) as caught:
        check_content(None, payload(**{field: value}), LONGEST)
    assert caught.value.message.startswith(f"encrypted_payload.{field} ")
    longer = {"setting": "mail.max_body_characters"} if len(value) > 4 * LONGEST else {}
    assert caught.value.data == {"field": f"encrypted_payload.{field}", **longer}


@pytest.mark.parametrize("size", [16, 17, 4 * LONGEST + 16])
def test_a_payload_is_taken_as_it_is(size):
    given = payload(ciphertext=encoded(size))
    assert check_content(None, given, LONGEST) == given
