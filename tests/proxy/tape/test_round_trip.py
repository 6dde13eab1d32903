"""Whatever is carried comes back from the tape as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folkmoot.core.message import encode_message
from folkmoot.core.ports import Carried
from folkmoot.core.verdict import Block
from folkmoot.proxy.tape import TapeEntry, read_tape
from tests.proxy.tape.strategies import conversations, plain, record

pytestmark = pytest.mark.requirement("proxy.record")

SHARES = st.floats(0, 1)
SOME = settings(max_examples=settings().max_examples // 2)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def check(entry: TapeEntry, carried: Carried) -> None:
    assert entry.envelope == carried.envelope
    assert encode_message(entry.message) == encode_message(carried.envelope.message)
    assert entry.at_server == carried.at_server
    if carried.at_server is not None and entry.at_server is not None:
        assert encode_message(entry.at_server) == encode_message(carried.at_server)
    verdict = carried.verdict
    assert entry.verdict == (None if verdict is None else type(verdict).__name__.lower())
    assert entry.by == ("" if verdict is None else carried.by)
    assert entry.error == (verdict.error.as_jsonrpc() if isinstance(verdict, Block) else None)
    assert entry.redacted == ()


@given(said=conversations, compress=st.booleans())
def test_any_conversation_survives_being_recorded(folder, said, compress):
    tape = read_tape(record(folder / "tape", said, compress=compress, reason="done"))
    assert [entry.seq for entry in tape.entries] == list(range(1, len(said) + 1))
    for entry, carried in zip(tape.entries, said, strict=True):
        check(entry, carried)
    assert (tape.end.reason, tape.end.messages) == ("done", len(said))
    assert not tape.cut


@SOME
@given(said=plain, share=SHARES)
def test_a_tape_cut_at_any_byte_opens_with_all_whole_lines(folder, said, share):
    path = record(folder / "tape", said)
    whole = path.read_bytes()
    at = int(len(whole) * share)
    path.write_bytes(whole[:at])
    tape = read_tape(path)
    left = whole[:at].count(b"\n") + (whole[at : at + 1] == b"\n")
    read = (
        len(tape.entries) + len(tape.correlations) + bool(tape.header.tape) + (tape.end is not None)
    )
    assert read == left
    assert tape.cut == (at == 0 or (whole[at - 1 : at + 1].count(b"\n") == 0 and at < len(whole)))
    for entry, carried in zip(tape.entries, said, strict=False):
        check(entry, carried)


@SOME
@given(said=plain, share=SHARES)
def test_a_compressed_tape_cut_at_any_byte_opens_with_all_lines_of_its_whole_blocks(
    folder, said, share
):
    path = folder / "tape.zst"
    sizes: list[int] = []
    whole = record(path, said, sizes=sizes).read_bytes()
    at = int(len(whole) * share)
    path.write_bytes(whole[:at])
    tape = read_tape(path)
    assert len(tape.entries) >= sum(size <= at for size in sizes)
    for entry, carried in zip(tape.entries, said, strict=False):
        check(entry, carried)
