"""Marks of forwarded requests: only a node's own, for one process, and once."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.cluster import forwarding
from folkmoot.cluster.forwarding import LENGTH, ForwardedRequest, Marks, decode, digest_of, encode
from folkmoot.cluster.limits import (
    MARK_SECONDS,
    MAX_FORWARDED_HEADERS,
    MAX_FORWARDERS,
    MAX_MARKS_OUT_OF_ORDER,
)

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
ONE, TWO, THREE = "11" * 16, "22" * 16, "33" * 16
NOW = 1_000_000.0


def many(sender: Marks, count: int) -> list[bytes]:
    return [sender.make(TWO, b"", NOW).encode() for _ in range(count)]


def made(body: bytes = b"body", *, key: bytes = KEY, to: str = TWO, now: float = NOW) -> bytes:
    return Marks(key, ONE).make(to, body, now).encode()


def test_a_mark_is_accepted_once_and_tells_the_body():
    receiver, mark = Marks(KEY, TWO), made()
    assert len(mark) == LENGTH
    assert receiver.check(mark, NOW) == (True, digest_of(b"body"))
    assert receiver.check(mark, NOW) is None


def test_whoever_has_the_key_alone_proves_that_a_mark_was_accepted():
    sender = Marks(KEY, ONE)
    mark, other = (sender.make(TWO, b"body", NOW) for _ in range(2))
    proof = Marks(KEY, TWO).prove(mark.encode())
    assert sender.is_proven(mark, proof)
    for wrong in ("", "\xff", Marks(OTHER_KEY, TWO).prove(mark.encode()), mark):
        assert not sender.is_proven(mark, wrong)
    assert not sender.is_proven(other, proof)


def test_a_mark_for_another_process_says_so_and_is_worth_nothing():
    receiver = Marks(KEY, THREE)
    assert receiver.check(made(), NOW) == (False, digest_of(b"body"))


@pytest.mark.parametrize("late", [-MARK_SECONDS - 1, MARK_SECONDS + 1])
def test_a_mark_of_another_time_or_key_is_refused(late):
    receiver = Marks(KEY, TWO)
    assert receiver.check(made(), NOW + late) is None
    assert receiver.check(made(key=OTHER_KEY), NOW) is None


def test_a_mark_of_another_release_is_refused(monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(forwarding, "VERSION", forwarding.VERSION + 1)
        mark = made()
        assert Marks(KEY, TWO).check(mark, NOW) is not None
    assert Marks(KEY, TWO).check(mark, NOW) is None


@given(st.integers(0, 112), st.integers(1, 255))
def test_a_mark_with_one_byte_changed_is_refused(place, change):
    written = bytearray(base64.urlsafe_b64decode(made()))
    written[place] ^= change
    assert Marks(KEY, TWO).check(base64.urlsafe_b64encode(bytes(written)), NOW) is None


@given(st.one_of(st.binary(max_size=200), st.binary(min_size=LENGTH, max_size=LENGTH)))
def test_whatever_is_no_mark_is_refused(mark):
    assert Marks(KEY, TWO).check(mark, NOW) is None


def test_marks_come_in_any_order_and_each_once():
    sender, receiver = Marks(KEY, ONE), Marks(KEY, TWO)
    marks = many(sender, 500)
    random.Random(7).shuffle(marks)
    assert all(receiver.check(mark, NOW) for mark in marks)
    assert not any(receiver.check(mark, NOW) for mark in marks)


def test_a_mark_that_comes_too_late_behind_others_is_refused():
    sender, receiver = Marks(KEY, ONE), Marks(KEY, TWO)
    first, second, *_, last, behind = many(sender, MAX_MARKS_OUT_OF_ORDER + 1)
    assert all(receiver.check(mark, NOW) for mark in (last, first, behind, second))
    assert receiver.check(first, NOW) is None
    sender._counter += 2**40
    assert all(receiver.check(mark, NOW) for mark in many(sender, 2))


def test_senders_are_bounded():
    receiver = Marks(KEY, TWO)
    for number in range(MAX_FORWARDERS + 10):
        assert receiver.check(Marks(KEY, f"{number:032x}").make(TWO, b"", NOW).encode(), NOW)
    assert len(receiver._senders) == MAX_FORWARDERS


def test_a_request_is_read_as_it_was_written():
    headers = (b"host", b"hub.example"), (b"x", b"\xff")
    ends = ("192.0.2.1", 1), ("10.0.0.1", None)
    request = ForwardedRequest("POST", "/mcp", b"token=x", headers, "https", *ends, b"{}")
    assert decode(encode(request)) == request
    assert decode(b"\x93no") is None
    many = ForwardedRequest("GET", headers=((b"x", b"y"),) * (MAX_FORWARDED_HEADERS + 1))
    assert decode(encode(many)) is None
