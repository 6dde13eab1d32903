"""The page about the format of tapes says what is so."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec

from folkmoot.proxy.redaction import PLACEHOLDER
from folkmoot.proxy.tape import FORMAT, Line, read_tape
from folkmoot.proxy.tape.lines import (
    KNOWN,
    ConnectionPart,
    Outcome,
    RedactionNote,
    SessionPart,
    TapeSide,
    TransportPart,
    decode_line,
    encode_line,
)
from tests.docs.pages import pages

PAGE = pages()["docs/reference/tape-format.md"]
EXAMPLES = [json.loads(block.text) for block in PAGE.blocks if block.language == "json"]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def test_every_example_is_a_line_and_shows_nothing_else():
    assert {example["type"] for example in EXAMPLES} == KNOWN
    for example in EXAMPLES:
        line = encode_line(decode_line(msgspec.json.encode(example)))
        assert without_nulls(json.loads(line)) == example


def test_the_examples_are_a_tape(tmp_path):
    path = tmp_path / "tape"
    path.write_bytes(b"".join(msgspec.json.encode(example) + b"\n" for example in EXAMPLES))
    tape = read_tape(path)
    assert tape.end.messages == len(tape.entries)
    assert [(tie.request, tie.response) for tie in tape.correlations][:1] == [
        (tape.entries[0].seq, tape.entries[1].seq)
    ]
    for entry, example in zip(tape.entries, EXAMPLES[1:], strict=False):
        assert len(entry.redacted) == len(PLACEHOLDER.findall(json.dumps(example)))


def test_every_member_of_every_line_is_documented():
    said = set(PAGE.code) | {member for example in EXAMPLES for member in example}
    structs = [*get_args(Line), *get_args(TransportPart), TapeSide, SessionPart, ConnectionPart]
    for struct in [*structs, RedactionNote]:
        for field in msgspec.structs.fields(struct):
            assert field.encode_name in said or field.encode_name in PAGE.text, field.name
    assert said >= KNOWN
    assert set(get_args(Outcome)) <= said
    assert f"`format`, which is {FORMAT}" in PAGE.text
