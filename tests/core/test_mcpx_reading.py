"""Most messages are read once; the rest slowly, and that must make no difference.

A member that nobody knows makes any message one that is read slowly, and means nothing itself.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.strict import SHALLOW, Limits, same
from tests.core.strategies import JSON, TEXT

UNKNOWN = b'"unknown-to-all":0,'
COMMON = b'{"protocol":"mcpx/v1","id":"m1","kind":"chat.message","payload":{"text":"hello"}}'

SPELLINGS = st.sampled_from(
    [
        *("null", "true", "0", "-0", "1", "1.0", "-0.0", "1e2", "1E400", "0.5", "01"),
        *("123456789012345678.0", "18446744073709551616", "9" * 5000),
        *('""', '"a"', r'"\u0061"', r'"\u0022"', r'"\""', r'"\/"', r'"\ud800"', r'"\ud83d\ude00"'),
        *("[]", "{}", '[""]', '["a","a"]', '{"a":1,"a":2}', r'{"a":1,"\u0061":2}', '{"":0.5}'),
        *("[" * n + "]" * n for n in range(2, 12)),
        *('{"a":' * n + "1" + "}" * n for n in range(2, 12)),
        *("[" * 70 + "]" * 70, "\x01", '"\x01"', '"\udcff"'),
    ]
)
WRITTEN = JSON.map(lambda value: json.dumps(value, ensure_ascii=False)) | JSON.map(json.dumps)
VALUES = SPELLINGS | WRITTEN
NAMES = ["id", "from", "to", "correlation_id", "context", "kind", "protocol", "payload", "seq"]
FITTING = {
    "protocol": st.just('"mcpx/v1"'),
    "kind": st.sampled_from(['"chat.message"', r'"chat\u002emessage"', '"mcp.request.a:b"', '"x"']),
    "to": st.sampled_from(['["a"]', "[]", '["a","b"]', "null"]),
    "correlation_id": st.sampled_from(['["a"]', '"a"', "[]", "null"]),
    "payload": st.dictionaries(TEXT, VALUES, max_size=3).map(
        lambda members: "{" + ",".join(f"{json.dumps(n)}:{v}" for n, v in members.items()) + "}"
    ),
}
SPACE = st.sampled_from(["", "", "", " ", "\n\t"])


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A message, or nearly one: members in any order, of any value, some of them twice."""
    names = ["protocol", "kind", *draw(st.lists(st.sampled_from(NAMES), max_size=5))]
    members = [
        f"{json.dumps(name)}:{draw(SPACE)}{draw(FITTING.get(name, VALUES) | VALUES)}"
        for name in draw(st.permutations(names))
    ]
    text = "{" + f",{draw(SPACE)}".join(members) + "}"
    return text.encode("utf-8", "surrogateescape")


def read(raw: bytes, **how: Any) -> McpxMessage | e.FolkmootError:
    try:
        return decode_mcpx(raw, **how)
    except e.FolkmootError as error:
        return error


def check_same(raw: bytes, **how: Any) -> None:
    common, slow = read(raw, **how), read(raw[:1] + UNKNOWN + raw[1:], **how)
    assert type(common) is type(slow)
    if isinstance(common, e.FolkmootError) or isinstance(slow, e.FolkmootError):
        return
    for name in ("id", "sender", "to", "correlation_id", "context", "kind"):
        assert getattr(common, name) == getattr(slow, name)
    assert same(common.payload, slow.payload)
    assert common.claims == slow.claims
    assert not slow.verbatim


@given(texts(), st.booleans())
def test_what_is_read_once_means_what_it_means_when_read_slowly(raw, old):
    check_same(raw, accept_old_spellings=old)


@pytest.mark.parametrize(
    "more",
    [
        b',"payload":{"n":1.0}',
        b',"payload":{"n":1e2,"n":1e2}',
        b',"payload":{"n":123456789012345678.0,"m":123456789012345678.0,"":0}',
        b',"id":null',
        b',"to":null,"to":[]',
        b',"seq":7',
        rb',"\u0073eq":7',
        b',"correlation_id":"p1"',
    ],
)
def test_what_looks_common_and_is_not_is_read_slowly(more):
    raw = b'{"protocol":"mcpx/v1","kind":"chat.message"' + more + b"}"
    check_same(raw)
    found = read(raw)
    assert isinstance(found, e.DuplicateKey) or (
        isinstance(found, McpxMessage) and (not found.verbatim or b"payload" in more)
    )


@pytest.mark.requirement("json.duplicate-keys-decoded")
def test_a_duplicate_is_found_though_longer_numbers_make_up_for_its_length():
    # Written again each of these numbers is one character longer, together as long as the member.
    grown = b",".join(b'"%c":123456789012345678.0' % name for name in b"abcde")
    raw = b'{"protocol":"mcpx/v1","kind":"chat.message","payload":{"":0,"":0,%b}}' % grown
    with pytest.raises(e.DuplicateKey):
        decode_mcpx(raw)


def test_a_common_message_is_known_to_need_no_change():
    assert decode_mcpx(COMMON).verbatim
    assert decode_mcpx(COMMON.replace(b":", b": ")).verbatim
    assert not decode_mcpx(COMMON.replace(b'"m1"', b"null")).verbatim
    old = COMMON.replace(b"chat.message", b"chat")
    assert not decode_mcpx(old, accept_old_spellings=True).verbatim


def test_a_hub_that_accepts_only_shallow_messages_is_obeyed():
    deep = COMMON.replace(b'"hello"', b'"hello","more":[[[]]]')
    assert decode_mcpx(deep, Limits(nesting=5)).verbatim is False
    with pytest.raises(e.FolkmootError, match="nested"):
        decode_mcpx(deep, Limits(nesting=4))
    assert Limits().nesting >= SHALLOW
