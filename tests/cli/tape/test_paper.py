"""What the output can take."""

from __future__ import annotations

import io
import sys

import pytest

from folkmoot.cli.show import (
    ASCII,
    UNICODE,
    Terminal,
    cells,
    cut,
    lapse,
)


@pytest.mark.parametrize(("encoding", "glyphs"), [("utf-8", UNICODE), ("ascii", ASCII)])
def test_signs_that_the_output_has_not_are_spelled_in_plain_letters(monkeypatch, encoding, glyphs):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert Terminal().glyphs == glyphs
    assert "".join(ASCII).isascii()


@pytest.mark.parametrize("width", range(1, 12))
@pytest.mark.parametrize("text", ["abcdefghijkl", "日本語日本語", "a日b本c語"])
def test_a_text_is_cut_to_the_columns_there_are(text, width):
    short = cut(text, width, "…")
    assert cells(short) <= width
    assert short == text or short.endswith("…")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0.00 ms"), (0.00042, "0.42 ms"), (0.0051, "5.10 ms"), (0.01234, "12.3 ms"),
        (0.0996, "100 ms"), (0.25, "250 ms"), (0.9999, "1.00 s"), (9.996, "10.0 s"),
        (59.9, "59.9 s"), (75, "1 min 15 s"), (7_260, "2 h 1 min"),
    ],
)  # fmt: skip
def test_a_span_is_told_in_as_many_digits_as_matter(seconds, said):
    assert lapse(seconds) == said
