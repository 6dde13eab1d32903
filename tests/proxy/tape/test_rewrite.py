"""Redacting a tape that was written before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from folkmoot.core import errors
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.transport import Headers, HttpMetadata, TransportContext
from folkmoot.core.verdict import Block
from folkmoot.proxy.redaction import TapeRedactor
from folkmoot.proxy.tape import Tape, read_tape, redact_tape
from tests.proxy.tape.strategies import record
from tests.proxy.tape.talk import TO_CLIENT, answer, call, said, words

SECRET = "sk_0123456789abcdef0123456789abcdef"
BODY = "The boat is ready."
HEADERS = Headers.of([("authorization", f"Bearer {SECRET}"), ("mcp-session-id", "5e551045e55104")])
TALK = [
    said(
        {"id": 0, "method": "initialize"},
        session=SessionContext.with_id(SessionId("5e551045e55104")),
        transport=TransportContext(HttpMetadata(HEADERS, "POST", f"/mcp?token={SECRET}")),
    ),
    call(1, "msg/send", to="bob", body=BODY),
    answer(1, words(json.dumps({"body": BODY, "token": SECRET}))),
    said(
        f'{{"jsonrpc":"2.0",\n"method":"x","params":{{"secret":"{SECRET}"}}}}'.encode(), TO_CLIENT
    ),
    said(
        {"id": 2, "method": "y"},
        verdict=Block(errors.BlockedByInterceptor(f"{SECRET} is not allowed.")),
        by="guard",
        at_server=said({"id": 2, "method": "y", "params": {"token": SECRET}}).envelope.message,
    ),
    call(3, "echo", text="plain"),
]


def redactor() -> TapeRedactor:
    return TapeRedactor(b"k" * 32)


@pytest.mark.requirement("proxy.record-no-secrets")
@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.zst"])
def test_a_redacted_tape_is_the_one_that_would_have_been_recorded(tmp_path, name):
    plain = record(tmp_path / "plain", TALK)
    assert SECRET.encode() in plain.read_bytes()
    counts = redact_tape(plain, tmp_path / name, redactor())
    after = read_tape(tmp_path / name)
    wanted = read_tape(record(tmp_path / "wanted", TALK, redactor=redactor()))

    def told(tape: Tape) -> list[Any]:
        entries = [(it.envelope, it.at_server, it.error, set(it.redacted)) for it in tape.entries]
        return [entries, tape.correlations, tape.header.redaction, tape.end]

    assert (told(after), after.header.tape) == (told(wanted), read_tape(plain).header.tape)
    places = [len(entry.redacted) for entry in wanted.entries]
    found = (counts.messages, counts.redacted, counts.places)
    assert found == (6, sum(map(bool, places)), sum(places))
    text = (tmp_path / "wanted").read_text()
    assert SECRET not in text
    assert BODY not in text


def test_a_tape_that_was_redacted_stays_as_it_is(tmp_path):
    once = record(tmp_path / "once", TALK, redactor=redactor())
    counts = redact_tape(once, tmp_path / "twice", redactor())
    assert read_tape(tmp_path / "twice").entries == read_tape(once).entries
    assert (counts.messages, counts.redacted, counts.places) == (6, 0, 0)


def test_a_tape_that_is_still_written_can_be_redacted(tmp_path):
    path = record(tmp_path / "plain", TALK)
    path.write_bytes(path.read_bytes()[:-40])
    redact_tape(path, tmp_path / "out", redactor())
    after = read_tape(tmp_path / "out")
    assert len(after.entries) == len(TALK)
    assert after.end is None


def test_what_is_no_tape_leaves_nothing_and_nothing_is_written_over(tmp_path):
    path = tmp_path / "other"
    path.write_text("hello\n")
    with pytest.raises(errors.TapeUnreadable):
        redact_tape(path, tmp_path / "out", redactor())
    assert not (tmp_path / "out").exists()
    with pytest.raises(errors.TapeUnwritable, match="already exists"):
        redact_tape(record(tmp_path / "tape", []), path, redactor())
    assert path.read_text() == "hello\n"


@pytest.mark.requirement("proxy.record-no-secrets")
def test_what_a_path_leaves_out_is_not_in_the_correlation_either(tmp_path):
    uri = "file:///home/alice/078-05-1120"
    talk = [
        said({"id": 1, "method": "resources/read", "params": {"uri": uri}}),
        answer(1, {"contents": []}),
    ]
    by = TapeRedactor(b"k" * 32, paths=["$.params.uri"])
    recorded = record(tmp_path / "recorded", talk, redactor=by)
    plain = record(tmp_path / "plain", talk)
    assert read_tape(plain).correlations[0].name == uri
    redact_tape(plain, tmp_path / "out", by)
    for path in (recorded, tmp_path / "out"):
        assert b"078-05-1120" not in path.read_bytes()
        (tie,) = read_tape(path).correlations
        assert tie.method == "resources/read"
        assert tie.name.startswith("[redacted:")
