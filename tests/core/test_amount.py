"""How much some JSON holds is told without reading it."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import process_time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.amount import is_too_much
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.strict import (
    Limits,
    ShallowObject,
    decode,
    decode_whole,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**6) | st.text(alphabet='a,"\\{[é', max_size=9),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=40,
)


def count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


@given(VALUES, st.booleans())
def test_no_value_escapes_the_count_and_no_text_is_taken_for_values(value, ascii_only):
    raw = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode()
    there_are = count(value)
    assert not is_too_much(raw, 2 * there_are)
    assert there_are < 3 or is_too_much(raw, there_are - 2)


@pytest.mark.parametrize("digits", [399, 400, 401, 799, 4_000])
@pytest.mark.parametrize("place", [0, 1, 397, 398, 399, 400, 1_001])
def test_a_number_of_hundreds_of_digits_is_too_much_and_a_text_of_them_is_not(digits, place):
    number = b"[" + b" " * place + b"7" * digits + b"]"
    assert is_too_much(number, 10**6) is (digits >= 400)
    assert not is_too_much(b'["' + b" " * place + b"7" * digits + b'"]', 10**6)


@pytest.mark.parametrize(
    "raw", [b"[" + b"{}," * 2_000 + b"1]", b'["' + b"a" * 9 + b'",' + b"9" * 900 + b"]"]
)
def test_what_is_too_much_is_not_read(raw):
    with pytest.raises(e.MessageTooLarge, match="1,000 values"):
        decode(raw, Limits(values=1_000))
    assert isinstance(decode(raw), list)


def test_many_texts_are_many_values():
    raw = b"[" + b",".join([b'""'] * 100) + b"]"
    assert is_too_much(raw, 10)
    assert not is_too_much(raw, 200)


class Envelope(msgspec.Struct, omit_defaults=True):
    payload: ShallowObject


def test_a_struct_is_not_read_from_more_values_than_are_accepted():
    read = msgspec.json.Decoder(Envelope).decode
    for count, known in ((4, True), (12, False)):
        raw = json.dumps({"payload": {"x": [0] * count}}, separators=(",", ":")).encode()
        assert (decode_whole(raw, Limits(values=10), read) is not None) is known


def test_the_values_of_a_message_are_counted_once(monkeypatch):
    counted: list[int] = []

    def count(raw: bytes, most: int) -> bool:
        counted.append(len(raw))
        return is_too_much(raw, most)

    monkeypatch.setattr(strict, "is_too_much", count)
    for fraction in ("1", "1.5"):
        raw = b'{"protocol":"mcpx/v1","kind":"a.b","payload":{"x":[%s]}}' % (
            ",".join([fraction] * 200).encode()
        )
        counted.clear()
        decode_mcpx(raw, Limits(values=300))
        assert counted == [len(raw)]
        with pytest.raises(e.MessageTooLarge, match="100 values"):
            decode_mcpx(raw, Limits(values=100))
    with pytest.raises(e.BatchRefused):
        decode_mcpx(b"[" + raw + b"]", Limits(values=100))
    with pytest.raises(e.MessageTooLarge, match="bytes"):
        decode_mcpx(raw, Limits(message_bytes=100, values=100))


def test_to_refuse_a_crafted_message_costs_a_fraction_of_reading_it():
    raw = json.dumps({f"{number:06x}": {} for number in range(300_000)}).encode()

    def cost(work: Callable[[], object]) -> float:
        started = process_time()
        work()
        return process_time() - started

    assert is_too_much(raw, 20_000)
    read = min(cost(lambda: decode(raw, Limits(message_bytes=len(raw)))) for _ in range(2))
    refused = min(cost(lambda: is_too_much(raw, 20_000)) for _ in range(3))
    assert 4 * refused < read
