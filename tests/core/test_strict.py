"""Strict JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.strict import Limits, same
from tests.core.strategies import JSON, TEXT


@given(JSON)
def test_whatever_is_encoded_decodes_to_itself(value):
    assert same(strict.decode(strict.encode(value)), value)


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_white_space_and_escapes_do_not_matter(value, indent, ascii_only):
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert same(strict.decode(raw), value)


@pytest.mark.requirement("json.own-errors-only")
@given(st.binary(max_size=60))
@example(b'{"a":"\\u')
@example(b"\xef\xbb\xbf{}")
def test_no_bytes_make_it_raise_anything_but_its_own_errors(raw):
    try:
        strict.decode(raw)
    except e.MessageError:
        return


@given(JSON, st.data())
def test_a_broken_copy_of_valid_json_raises_only_its_own_errors(value, data):
    raw = bytearray(json.dumps(value).encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    try:
        decoded = strict.decode(bytes(raw))
    except e.MessageError:
        return
    assert same(decoded, json.loads(raw))


@pytest.mark.requirement("json.duplicate-keys", "json.duplicate-keys-decoded")
@pytest.mark.parametrize(
    "raw",
    [
        rb'{"a":1,"a":1}',
        rb'{"a":1,"a":2}',
        rb'{"a": 1, "b": {"c": [1, {"d": 2, "d": 3}]}}',
        rb'[[{"":1,"":2}]]',
        rb'{"seq":1,"\u0073eq":2}',
        rb'{"a":1e5,"a":100000.0}',
        rb'{"a":"\u0022","a":"b"}',
        rb'{"a":"\u0022\u0022\u0022\u0022","a":""}',
        rb'{"a":10000000000000000000000.0,"b":1E5,"a":3}',
        '{"ä":1,"\\u00e4":2}'.encode(),
    ],
)
def test_a_duplicate_key_is_refused_at_any_depth_and_in_any_spelling(raw):
    with pytest.raises(e.DuplicateKey, match="occurs twice"):
        strict.decode(raw)


@given(st.dictionaries(TEXT, JSON, min_size=1, max_size=4), JSON, st.booleans())
def test_a_planted_duplicate_is_always_found(members, value, ascii_only):
    planted = next(iter(members))
    inside = json.dumps(members, ensure_ascii=ascii_only)[1:-1]
    raw = f"{{{inside},{json.dumps(planted)}:{json.dumps(value)}}}".encode()
    with pytest.raises(e.DuplicateKey):
        strict.decode(raw)


def test_a_long_duplicate_is_named_in_part_only():
    name = "k" * 500
    with pytest.raises(e.DuplicateKey) as caught:
        strict.decode(json.dumps({name: 1})[:-1].encode() + f',"{name}":2}}'.encode())
    assert len(str(caught.value)) < 150


def test_a_quote_written_as_an_escape_is_no_duplicate():
    assert strict.decode(rb'{"a":"\u0022","b":"x"}') == {"a": '"', "b": "x"}


@pytest.mark.requirement("json.utf8")
@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]
)
def test_bytes_that_are_not_utf8_are_refused_anywhere(bad):
    for raw in (
        bad,
        b'{"a":"' + bad + b'"}',
        b'{"' + bad + b'":1}',
        b'{"payload":{"params":["' + bad + b'"]}}',
    ):
        with pytest.raises(e.InvalidUtf8, match="not valid UTF-8"):
            strict.decode(raw)


@pytest.mark.requirement("json.no-nan")
@pytest.mark.parametrize(
    "number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000]
)
def test_numbers_that_are_not_finite_or_too_long_are_refused(number):
    for raw in number, b'{"a":[' + number + b"]}":
        with pytest.raises(e.NumberOutOfRange):
            strict.decode(raw)


@pytest.mark.requirement("json.no-lone-surrogate")
@pytest.mark.parametrize(
    "raw",
    [rb'"\ud800"', rb'{"a":["\udc00"]}', rb'{"\uD83D":1}', rb'{"a":"\ud83dx"}', rb'"\ude00\ud83d"'],
)
def test_a_lone_surrogate_is_refused_and_a_pair_is_one_letter(raw):
    with pytest.raises(e.LoneSurrogate):
        strict.decode(raw)
    assert strict.decode(rb'"\ud83d\ude00"') == "😀"


def test_big_integers_keep_their_value():
    for number in (2**64, -123456789012345678901234567890):
        assert strict.decode(str(number).encode()) == number


@pytest.mark.requirement("json.one-object", "json.batch-refused")
@pytest.mark.parametrize(
    ("error", "raws"),
    [
        (e.InvalidJson, [b"", b" ", b"{} {}", b'{"a":1}x', b'{"a":01}', b'{"a"}', b'"\x00"']),
        (e.NotAnObject, [b"1", b'"x"', b"null", b"true"]),
        (e.BatchRefused, [b"[]", b'[{"jsonrpc":"2.0","method":"x"}]']),
    ],
)
def test_what_is_not_one_json_object_is_refused(error, raws):
    for raw in raws:
        with pytest.raises(error):
            strict.decode_object(raw)
    assert strict.decode_object(b' {"a" : 1}\n') == {"a": 1}


@pytest.mark.requirement("json.size-limit")
def test_the_size_limit_passes_and_one_byte_more_does_not():
    limits = Limits(message_bytes=10)
    assert strict.decode(b'"12345678"', limits) == "12345678"
    with pytest.raises(e.MessageTooLarge, match="11 bytes; at most 10"):
        strict.decode(b'"123456789"', limits)
    assert strict.DEFAULT_LIMITS.message_bytes == 1024 * 1024


@pytest.mark.requirement("json.depth-limit")
@pytest.mark.parametrize(
    ("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")]
)
def test_the_depth_limit_passes_and_one_level_more_does_not(opening, closing):
    levels = 6 if opening != b'[{"a":' else 3
    limits = Limits(nesting=6)
    strict.decode(opening * levels + b"1" + closing * levels, limits)
    with pytest.raises(e.NestingTooDeep, match="more than 6 levels"):
        strict.decode(opening * (levels + 1) + b"1" + closing * (levels + 1), limits)


def test_many_brackets_side_by_side_are_not_deep():
    assert strict.decode(b"[" + b",".join([b"[]", b"{}"] * 500) + b"]", Limits(nesting=2))


@pytest.mark.requirement("json.nesting-bomb")
@pytest.mark.parametrize("unit", [b"[", b'{"a":', b"[{"])
def test_a_nesting_bomb_is_refused_like_any_deep_message(unit):
    with pytest.raises(e.NestingTooDeep if unit != b"[{" else e.MessageError):
        strict.decode(unit * (1024 * 1024 // len(unit)))


def test_a_bomb_the_fast_reader_does_not_reach_is_refused_by_the_slow_one():
    """An unfinished escape stops the first reading early; the second meets the depth."""
    with pytest.raises(e.MessageError):
        strict.decode(b'["\\ud800",' + b"[" * 200_000)


@pytest.mark.requirement("json.own-errors-only")
@pytest.mark.parametrize("depth", [*range(60, 70), 500, *range(940, 1010, 3)])
def test_a_fault_deep_inside_is_still_one_of_its_own_errors(depth):
    with pytest.raises((e.LoneSurrogate, e.NestingTooDeep)):
        strict.decode(b"[" * depth + rb'"\ud800"' + b"]" * depth)


def test_every_refusal_can_be_written_down():
    with pytest.raises(e.DuplicateKey) as caught:
        strict.decode(rb'{"\ud800":1,"\ud800":2}')
    assert strict.encode([caught.value.as_jsonrpc(), caught.value.as_http()])


@pytest.mark.parametrize(
    ("raw", "setting"),
    [
        (b'"%s"' % (b"x" * 40), "limits.message_bytes"),
        (b"[[[[]]]]", "limits.nesting"),
        (b"[1,2,3,4,5]", "http.max_body_values"),
    ],
)
def test_limits_that_come_from_settings_name_them(raw, setting):
    names = ("limits.message_bytes", "limits.nesting", "http.max_body_values")
    with pytest.raises(e.FolkmootError) as named:
        strict.decode(raw, Limits(message_bytes=32, nesting=3, values=4, settings=names))
    assert named.value.data["setting"] == setting
    assert setting not in named.value.message
    with pytest.raises(e.FolkmootError) as caught:
        strict.decode(raw, Limits(message_bytes=32, nesting=3, values=4))
    assert "setting" not in caught.value.data
