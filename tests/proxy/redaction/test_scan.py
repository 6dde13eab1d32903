"""The quick look misses nothing that the slow one finds."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from folkmoot.core.message import decode_message
from folkmoot.core.redaction import (
    LAST_WORDS,
    NAMES,
    QUERY_NAMES,
    is_secret_name,
)
from folkmoot.proxy.redaction import redactor as of_messages
from folkmoot.proxy.redaction import text as of_text
from folkmoot.proxy.redaction.search import MOST_SLOWLY, Pieces
from folkmoot.proxy.redaction.text import TEXT_FORMS, may_hold_secret
from folkmoot.telemetry import redaction as of_logs
from tests.proxy.redaction.secrets import SOME, redactor

LOOK_BEHIND = re.compile(re.escape(r"(?<!\bprogress)") + r"|\(\?<[!=][^()|]*\)(?!\|)")
FOUND = st.one_of(
    [st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)
        for form in TEXT_FORMS
        if "%" not in form.hints
        and "(?<" not in (pattern := LOOK_BEHIND.sub("", form.pattern.pattern))
    ]
)  # fmt: skip
# Of which names of secrets are made, and what looks like them.
PIECES = st.sampled_from(
    [
        *(word for name in (*NAMES, *LAST_WORDS) for word in name.split("_")),
        *("progress", "to", "ken", "se", "cret", "co", "okie", "Pass", "word", "in", "my", "s"),
        *("_", "-", ".", " ", '"', "\\", "/", "é", "\u200b", "\ud83d", "1"),
    ]
)


@SOME
@given(FOUND, st.text(max_size=5))
def test_whatever_a_form_finds_is_suspicious(found, around):
    text = f"{around} {found}"
    if any(form.pattern.search(text) for form in TEXT_FORMS):
        assert may_hold_secret(msgspec.json.encode(text.encode("utf-8", "replace").decode()))


def test_whatever_a_name_tells_is_suspicious():
    names = {*LAST_WORDS, *NAMES}
    names |= {name.replace("_", joint) for name in NAMES for joint in ("-", " ", ".", "")}
    for name in names:
        assert is_secret_name(name)
        for spelled in (name, name.upper(), name.title(), f"my_{name}", f"my{name}"):
            assert may_hold_secret(msgspec.json.encode({spelled: "x"})), spelled
    for name in QUERY_NAMES:
        assert may_hold_secret(msgspec.json.encode(f"https://a/?{name}=x")), name


@SOME
@given(st.lists(PIECES, min_size=1, max_size=6).map("".join))
@example("inProgressToken")
@example("in_progressToken")
@example('in"progressToken')
@example("to_ken")
@example('api"key')
def test_a_name_that_tells_a_secret_is_suspicious_in_a_message(name):
    body = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {name: "hunter22"}}
    raw = json.dumps(body).encode("utf-8", "surrogatepass")
    if is_secret_name(name):
        assert may_hold_secret(raw)
    if not may_hold_secret(raw):
        assert "redacted" not in of_logs.Redactor().redact(f'{{"{name}": "hunter22"}}')


def test_the_token_of_progress_is_shown_and_no_other():
    redact = of_logs.Redactor().redact
    for harmless in ('{"progressToken": "abc"}', "a progressToken=abc"):
        assert redact(f"token=x {harmless}") == f"token=[redacted] {harmless}"
    assert redact("an inProgressToken=abc") == "an inProgressToken=[redacted]"


def test_everyday_messages_are_not_suspicious():
    for body in (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"_meta": {"progressToken": 3}, "key": "b", "date": "2025-11-25", "mail": "a@b.example"},
    ):
        assert not may_hold_secret(msgspec.json.encode(body))


KNOWN = 'ab/cd"efà€ghij'
# Texts with what JSON spells in ways of its own, and with what some take for a space.
TEXTS = st.lists(
    st.sampled_from(
        [
            *("https:", "/", "//", r"\/", r"\/\/", r"\\/", "bob", ":", "hunter22", "@", "host"),
            *("à", "\u00a0", "\ufeff", "\u20ac", "\x1f", " ", "\n", '"', r"\"", "{", "}", "invite"),
            *("https://bob:huntà22@h", "https://bob:hunt\ufeffer22@h", r"https:\/\/bob:hunter22@h"),
            *(KNOWN, json.dumps(KNOWN), json.dumps(KNOWN, ensure_ascii=False)),
        ]
    ),
    max_size=8,
).map("".join)


def _written(text: str, raw: bytes) -> list[Any]:
    """What is on a tape and in a log of a text, and of a message that holds it."""
    by = redactor()
    by.recall(((KNOWN, "secret"),))
    return [by.message(decode_message(raw)), by.text(text), of_logs.Redactor().redact(text)]


@SOME
@given(text=TEXTS, in_ascii=st.booleans(), slashes=st.booleans())
@example(text="https://bob:hunter22@h", in_ascii=True, slashes=True)
@example(text=r"see https:\/\/bob:hunter22@h", in_ascii=True, slashes=False)
@example(text="https://bob:huntà22@h", in_ascii=False, slashes=False)
@example(text="https://bob:hunt\ufeffer22@h", in_ascii=False, slashes=False)
@example(text=KNOWN, in_ascii=False, slashes=True)
@example(text=f"see {KNOWN}", in_ascii=True, slashes=False)
def test_what_is_written_is_the_same_without_the_quick_look(text, in_ascii, slashes):
    body = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": text}}
    spelled = json.dumps(body, ensure_ascii=in_ascii)
    raw = (spelled.replace("/", r"\/") if slashes else spelled).encode()
    quickly = _written(text, raw)
    with pytest.MonkeyPatch.context() as patched:
        for module in (of_messages, of_text, of_logs):
            patched.setattr(module, "may_hold_secret", lambda *_: True)
        assert quickly == _written(text, raw)


SOME_PIECES = st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=9))
TEXT = st.text(st.characters(max_codepoint=255), max_size=40)


@SOME
@given(SOME_PIECES, TEXT, TEXT)
@example([], "", "")
@example(["", "a"], "b", "c")
@example(["a|b", "\\x2d.*"], "a", "b")
def test_known_pieces_are_found_by_a_pattern_as_one_by_one(known, before, behind):
    for text in (before + behind, before + "".join(known[-1:]) + behind):
        pieces = Pieces(known)
        slowly = pieces.any_in
        found = [pieces.any_in(text) for _ in range(MOST_SLOWLY + 1)]
        assert (pieces.any_in is not slowly) == bool(known)
        assert set(found) == {any(piece in text for piece in known)}


def test_a_known_credential_is_found_also_after_many_messages_without_it():
    by = redactor()

    def hides(credential: str) -> bool:
        said = {"jsonrpc": "2.0", "method": "say", "params": {"a": f"It was {credential} then."}}
        redacted, _ = by.message(decode_message(msgspec.json.encode(said)))
        return redacted is not None and credential.encode() not in redacted

    by.session_id("first-session")
    assert not any(hides("first-sessio") for _ in range(MOST_SLOWLY + 1))
    assert hides("first-session")
    by.session_id("second-session")
    assert hides("second-session")
    assert hides("first-session")
