"""Pages of a tape: flat in its length, both ways, by a filter; and the tapes of proxies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

from folkmoot.core import errors as e
from folkmoot.datafolder.proxies import place_of, recorded, remember
from folkmoot.proxy.tape import pages, reader
from folkmoot.proxy.tape.file import opened
from folkmoot.proxy.tape.folder import TapeFolder, TapeLibrary
from folkmoot.proxy.tape.pages import Filter
from tests.proxy.tape.studio import TO_CLIENT, TO_SERVER, Studio, recording
from tests.proxy.tape.test_folder import NAME, tape

EVERYTHING = Filter()


def busy(path: Path) -> Path:
    """A tape with calls of every outcome."""
    with recording(path) as studio:
        studio.tool(1, "echo", "Hello", took=0.2, word="hello")
        studio.tool(2, "break", "It broke.", failed=True)
        studio.call(3, "tools/call", {"name": "none"}, error={"code": -32602, "message": "Unknown"})
        studio.call(4, "tools/list", result={"tools": [{"name": "echo"}]})
        studio.say(TO_CLIENT, {"method": "notifications/message", "params": {"data": "x"}})
        studio.say(TO_SERVER, {"id": 5, "method": "ping"})
    return path


def large(path: Path, calls: int) -> Path:
    """A tape with so many calls, made of the lines of a recorded one."""
    with recording(path) as studio:
        studio.tool(1, "echo", "Hello")
    header, asked, answer, tied, _ = path.read_bytes().splitlines(keepends=True)
    with path.open("wb") as file:
        file.write(header)
        for number in range(calls):
            one, two = b"%d" % (2 * number + 1), b"%d" % (2 * number + 2)
            file.write(asked.replace(b'"seq":1,', b'"seq":%s,' % one))
            file.write(answer.replace(b'"seq":2,', b'"seq":%s,' % two))
            tie = tied.replace(b'"request":1,', b'"request":%s,' % one)
            file.write(tie.replace(b'"response":2,', b'"response":%s,' % two))
    return path


class Counted:
    """A file that knows how much of it was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.read_bytes += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def counting(path: Path, read: list[int]) -> Iterator[Any]:
    with opened(path) as file:
        counted = Counted(file)
        yield counted
        read.append(counted.read_bytes)


def test_the_first_and_the_last_page_of_a_long_tape_read_as_little_as_those_of_a_short_one(
    tmp_path,
):
    short, long = large(tmp_path / "short.jsonl", 200), large(tmp_path / "long.jsonl", 8_000)
    assert long.stat().st_size > 4_000_000
    read: list[int] = []
    for path in (short, long):
        opening = partial(counting, path, read)
        first = pages.later(opening, "a", 0, 100, EVERYTHING)
        last = pages.earlier(opening, "a", None, 100, EVERYTHING)
        assert [it.seq for it in first.messages] == list(range(1, 101))
        seqs = [it.seq for it in last.messages]
        assert (len(seqs), seqs[-1]) == (100, 400 if path == short else 16_000)
        assert [it.seconds is not None for it in last.messages] == [False, True] * 50
        pages.call_detail(opening, "a", last.messages[0].offset)
        pages.calls(opening, "a", last.begin, "exact")
    assert max(read) <= 2 * reader.WINDOW_CHUNK
    # Whatever is looked for, an answer reads a bounded part and says where it ended.
    rare = pages.later(partial(counting, long, read), "a", 0, 100, Filter(text="nowhere"))
    assert rare.messages == []
    assert reader.SCAN <= rare.end < reader.SCAN + 2 * reader.WINDOW_CHUNK
    assert read[-1] < reader.SCAN + 2 * reader.WINDOW_CHUNK


@pytest.mark.parametrize("suffix", ["", ".zst"])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_every_message_is_on_one_page_forwards_and_backwards(tmp_path, suffix, limit):
    opening = partial(opened, busy(tmp_path / f"a.jsonl{suffix}"))
    forwards, at = [], 0
    while found := pages.later(opening, "a", at, limit, EVERYTHING):
        if found.end == at:
            break
        forwards += found.messages
        at = found.end
    backwards: list[Any] = []
    before: int | None = None
    while before != 0:
        found = pages.earlier(opening, "a", before, limit, EVERYTHING)
        backwards = [*found.messages, *backwards]
        before = found.begin
    assert forwards == backwards
    assert [it.seq for it in forwards] == list(range(1, 11))
    shapes = {it.seq: (it.shape, it.method, it.name, it.failed) for it in forwards}
    assert shapes[2] == ("response", "tools/call", "echo", False)
    assert shapes[4] == ("response", "tools/call", "break", True)
    assert shapes[9] == ("notification", "notifications/message", "", False)
    assert (forwards[1].request, forwards[1].seconds) == (1, pytest.approx(0.2))


@pytest.mark.parametrize(
    ("wanted", "seqs"),
    [
        (Filter(errors=True), [4, 6]),
        (Filter(name="ech"), [1, 2]),
        (Filter(name="e*"), [1, 2]),
        (Filter(method="list"), [7, 8]),
        (Filter(method="tools/call", direction="server_to_client"), [2, 4, 6]),
        (Filter(text="HELLO"), [1, 2]),
        (Filter(text="hello", errors=True), []),
    ],
)
def test_a_filter_chooses_messages_both_ways(tmp_path, wanted, seqs):
    opening = partial(opened, busy(tmp_path / NAME))
    for found in (
        pages.later(opening, "a", 0, 100, wanted),
        pages.earlier(opening, "a", None, 100, wanted),
    ):
        assert [it.seq for it in found.messages] == seqs


@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_a_message_is_shown_with_the_other_half_of_its_call(tmp_path, suffix):
    opening = partial(opened, busy(tmp_path / f"a.jsonl{suffix}"))
    rows = {it.seq: it for it in pages.later(opening, "a", 0, 100, EVERYTHING).messages}
    for one, other in ((3, 4), (4, 3)):
        half = pages.call_detail(opening, "a", rows[one].offset)
        lines = [json.loads(bytes(it)) for it in (half.line, half.other)]
        assert [it["seq"] for it in lines] == [one, other]
        assert (half.outcome, half.ended) == ("tool_error", True)
    for alone in (9, 10):
        half = pages.call_detail(opening, "a", rows[alone].offset)
        assert (half.other, half.ended) == (None, True)
    for wrong in (0, rows[3].offset + 1, 10**9):
        with pytest.raises(e.ArgumentInvalid):
            pages.call_detail(opening, "a", wrong)


def test_calls_are_given_with_digests_that_are_equal_for_equal_calls(tmp_path):
    def record(studio: Studio, secret: str) -> None:
        studio.tool(1, "echo", "Hello", b=1, a=2)
        studio.tool(2, "echo", "Hello", a=2, b=1)
        studio.tool(3, "echo", "Other", a=3)
        studio.tool(4, "login", "in", password=f"[redacted:secret:{secret}]")

    paths = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for path, secret in zip(paths, ("0a" * 6, "0b" * 6), strict=True):
        with recording(path) as studio:
            record(studio, secret)
    found = pages.calls(partial(opened, paths[0]), "a", 0, "exact")
    one, two, three, _ = found.calls
    assert one.asked == two.asked != three.asked
    assert [it.request for it in found.answers] == [1, 3, 5, 7]
    assert found.answers[0].said == found.answers[1].said != found.answers[2].said
    assert (found.messages, found.end) == (8, paths[0].stat().st_size)
    for compared, same in (("exact", False), ("kinds", True)):
        one, two = (pages.calls(partial(opened, path), "a", 0, compared) for path in paths)
        assert (one.calls[3].asked == two.calls[3].asked) is same
    plain = pages.calls(partial(opened, paths[0]), "a", 0, None)
    assert {it.asked for it in plain.calls} == {""}
    rest = pages.calls(partial(opened, paths[0]), "a", three.offset, None)
    assert [it.seq for it in rest.calls] == [5, 7]


def test_a_damaged_tape_says_where_and_a_torn_off_one_is_read_to_its_last_line(
    tmp_path, monkeypatch
):
    path = busy(tmp_path / NAME)
    lines = path.read_bytes().splitlines(keepends=True)
    opening = partial(opened, path)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    assert [it.seq for it in pages.later(opening, "a", 0, 9, EVERYTHING).messages] == [1, 2]
    last = pages.earlier(opening, "a", None, 9, EVERYTHING)
    assert [it.seq for it in last.messages] == [1, 2]
    assert pages.later(opening, "a", last.end, 9, EVERYTHING).end == last.end
    assert pages.calls(opening, "a", 0, None).end == last.end
    path.write_bytes(b"".join(lines[:4]) + b"rubbish\n" + b"".join(lines[4:]))
    damaged = f"damaged at byte {sum(map(len, lines[:4])):,}"
    for read in (
        partial(pages.later, opening, "a", 0, 100, EVERYTHING),
        partial(pages.earlier, opening, "a", None, 100, EVERYTHING),
        partial(pages.calls, opening, "a", 0, None),
    ):
        with pytest.raises(e.TapeUnreadable, match=damaged):
            read()
    assert [it.seq for it in pages.later(opening, "a", 0, 1, EVERYTHING).messages] == [1]
    # A line that is too long is named, and passed over in pieces.
    path.write_bytes(b"".join(lines))
    monkeypatch.setattr(reader, "MOST_LINE", len(lines[1]) - 2)
    monkeypatch.setattr(reader, "WINDOW_CHUNK", 64)
    first = pages.later(opening, "a", 0, 1, EVERYTHING).messages[0]
    assert (first.shape, first.seq, first.bytes) == ("too_long", None, len(lines[1]))
    half = pages.call_detail(opening, "a", first.offset)
    assert json.loads(bytes(half.line)) == {"type": "too_long", "bytes": len(lines[1])}
    shapes = [it.shape for it in pages.earlier(opening, "a", None, 100, EVERYTHING).messages]
    assert shapes[0] == "too_long"


async def test_tapes_of_proxies_are_found_again_and_nothing_else_is(tmp_path):
    marks, own, folder = tmp_path / "marks", tmp_path / "own", tmp_path / "folder"
    for each in (own, folder):
        each.mkdir()
    tape(own, "hub.jsonl")
    single = tape(tmp_path, "single.jsonl")
    tape(tmp_path, "private.jsonl")
    tape(folder, "one.jsonl")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "private.jsonl")
    (tmp_path / "id_rsa").write_text("a key")
    (tmp_path / "notes.jsonl").write_text('{"a": "secret"}\n')
    others = ("gone.jsonl", "link.jsonl", "id_rsa", "notes.jsonl")
    for path in (single, folder, own, *(tmp_path / name for name in others)):
        remember(path, marks)
    (marks / "0123456789ab").write_text(str(tmp_path / "private.jsonl"))
    (marks / place_of(Path("/etc"))).symlink_to("/etc/passwd")
    library = TapeLibrary(own, partial(recorded, marks))
    found, _ = await library.page(None, 100, proxies=True)
    assert {(it.name, it.place) for it in found} == {
        ("hub.jsonl", ""),
        ("single.jsonl", place_of(single)),
        ("one.jsonl", place_of(folder)),
    }
    assert {it.path for it in found} >= {str(single)}
    hidden, _ = await library.page(None, 100, proxies=False)
    assert [it.name for it in hidden] == ["hub.jsonl"]
    there = await library.find(place_of(single), proxies=True)
    assert (await there.about("single.jsonl")).messages == 6
    with pytest.raises(e.TapeNotFound):
        await there.about("private.jsonl")
    for place, proxies in ((place_of(single), False), ("0123456789ab", True), ("..", True)):
        with pytest.raises(e.TapeNotFound):
            await library.find(place, proxies=proxies)
    for cursor in ("x", "1:2", "1:zz:a.jsonl"):
        with pytest.raises(e.ArgumentInvalid):
            await library.page(cursor, 1, proxies=True)
    # A folder that others can write to says nothing.
    marks.chmod(0o777)
    assert recorded(marks) == {}
    assert recorded(tmp_path / "missing") == {}


def test_only_so_many_places_are_remembered_and_one_is_remembered_once(tmp_path, monkeypatch):
    monkeypatch.setattr("folkmoot.datafolder.proxies.MAX_RECORDINGS", 2)
    marks = tmp_path / "marks"
    for number, name in enumerate(("a", "b", "a", "c")):
        remember(tmp_path / name, marks)
        os.utime(marks / place_of(tmp_path / name), (number, number))
    assert [it.name for it in recorded(marks).values()] == ["c", "a"]
    remember(tmp_path / "d", tmp_path / "a" / "file")
    (tmp_path / "plain").write_text("")
    remember(tmp_path / "d", tmp_path / "plain")


async def test_a_tape_is_known_to_be_recorded_while_its_recorder_has_it_open(tmp_path):
    folder = TapeFolder(tmp_path)
    with recording(tmp_path / NAME) as studio:
        assert (await folder.about(NAME)).messages == 0
        studio.call(1, "ping")
        studio.recorder.commit()
        about = await folder.about(NAME)
        assert (about.recording, about.messages, about.ended) == (True, 2, None)
        ways: Any = {"cursor": None, "before": None, "last": False, "wanted": EVERYTHING}
        page, stored = await folder.timeline(NAME, 10, **ways)
        assert (len(page.messages), stored.recording) == (2, True)
        studio.call(2, "ping")
        studio.recorder.commit()
        ways["cursor"] = str(page.end)
        page, _ = await folder.timeline(NAME, 10, **ways)
        assert [it.seq for it in page.messages] == [3, 4]
    assert (await folder.about(NAME)).recording is False
    library = TapeLibrary(tmp_path)
    noted = [library.is_new_reader("u", "", NAME, at) for at in (0.0, 10.0, 601.0)]
    assert noted == [True, False, True]
