"""The fuzzer itself: it runs, and it would notice."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import strict
from tests.fuzz.decoders import SEEDS, fuzz, reference, try_one


@pytest.mark.parametrize("raw", SEEDS)
def test_every_seed_is_read(raw):
    assert try_one(raw)


@pytest.mark.long
def test_a_short_run_finds_nothing():
    tried, read = fuzz(seconds=3, seed=20261115)
    assert tried > 50
    assert 0 < read < tried


def test_a_decoder_that_overlooks_duplicates_would_be_caught(monkeypatch):
    def careless(raw: bytes, limits: Any = None) -> Any:
        return strict._decode(raw)

    monkeypatch.setattr(strict, "decode", careless)
    with pytest.raises(AssertionError, match="the reference refuses it"):
        try_one(b'{"a":1,"a":2}')


@pytest.mark.parametrize(
    "raw", [b'{"a":1,"a":1}', b"NaN", b"1e999", rb'"\ud800"', b"[" * 40 + b"]" * 40]
)
def test_the_reference_refuses_what_strict_json_refuses(raw):
    with pytest.raises(ValueError):  # noqa: PT011 - the reference has no errors of its own
        reference(raw)
