"""The quick look misses nothing that the slow one finds."""

from __future__ import annotations

import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.redaction import NAMES, QUERY_NAMES, WHOLE_NAMES, is_secret_name
from folkmoot.proxy.redaction.text import TEXT_FORMS, may_hold_secret
from tests.proxy.redaction.secrets import SOME

FOUND = st.one_of(
    [st.from_regex(re.compile(form.pattern.pattern, re.ASCII), fullmatch=True)
        for form in TEXT_FORMS if "%" not in form.hints and "(?<" not in form.pattern.pattern
    ]
)  # fmt: skip


@SOME
@given(FOUND, st.text(max_size=5))
def test_whatever_a_form_finds_is_suspicious(found: str, around: str) -> None:
    text = f"{around} {found}"
    if any(form.pattern.search(text) for form in TEXT_FORMS):
        assert may_hold_secret(msgspec.json.encode(text.encode("utf-8", "replace").decode()))


def test_whatever_a_name_tells_is_suspicious() -> None:
    names = {*WHOLE_NAMES, *NAMES}
    names |= {name.replace("_", joint) for name in NAMES for joint in ("-", " ", ".", "")}
    for name in names:
        assert is_secret_name(name)
        for spelled in (name, name.upper(), name.title(), f"my_{name}", f"my{name}"):
            assert may_hold_secret(msgspec.json.encode({spelled: "x"})), spelled
    for name in QUERY_NAMES:
        assert may_hold_secret(msgspec.json.encode(f"https://a/?{name}=x")), name


def test_everyday_messages_are_not_suspicious() -> None:
    for body in (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"_meta": {"progressToken": 3}, "key": "b", "date": "2025-11-25", "mail": "a@b.example"},
    ):
        assert not may_hold_secret(msgspec.json.encode(body))
