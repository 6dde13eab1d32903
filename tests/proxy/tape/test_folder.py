"""The tapes of a folder: listed, read a page at a time, and nothing outside of it reached."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.proxy.tape import folder as folders
from folkmoot.proxy.tape.folder import TapeFolder, TapeLibrary, TapePage
from tests.proxy.tape.studio import recording

NAME = "20260101-000000-00000000.jsonl"


def tape(folder: Path, name: str = NAME, calls: int = 3) -> Path:
    """A tape with some calls, recorded by the real recorder."""
    path = folder / name
    with recording(path) as studio:
        for number in range(calls):
            studio.call(number, "tools/list", result={"tools": []})
    return path


def entries(page: TapePage) -> list[Any]:
    return [json.loads(bytes(each)) for each in page.entries]


async def whole(tapes: TapeFolder, name: str, limit: int) -> list[Any]:
    """Everything on a tape, page by page."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await tapes.read(name, cursor, limit)
        assert len(page.entries) <= limit
        found += entries(page)
        if page.next_cursor is None or not page.entries:
            return found
        cursor = page.next_cursor


@pytest.mark.parametrize("suffix", ["", ".zst"])
async def test_tapes_are_listed_with_size_times_and_counts_and_read_by_pages(tmp_path, suffix):
    for number in range(3):
        tape(tmp_path, f"{number}.jsonl{suffix}", calls=number)
    (tmp_path / "notes.txt").write_text("no tape")
    (tmp_path / "other.jsonl").write_text('{"some": "JSON"}\n')
    tapes, library = TapeFolder(tmp_path), TapeLibrary(tmp_path)
    found, rest = await library.page(None, 10, proxies=False)
    told = [(f"{number}.jsonl{suffix}", 2 * number, bool(suffix)) for number in (2, 1, 0)]
    assert ([(it.name, it.messages, it.compressed) for it in found], rest) == (told, None)
    assert all(it.ended and it.started and it.bytes and it.modified_at for it in found)
    cursor, names = None, []
    for _ in found:
        page, cursor = await library.page(cursor, 1, proxies=True)
        names += [it.name for it in page]
    assert names == [it.name for it in found]
    name = names[0]
    kinds = [each["type"] for each in await whole(tapes, name, 100)]
    assert (kinds[0], kinds[-1], kinds.count("message")) == ("header", "end", 4)
    assert await whole(tapes, name, 1) == await whole(tapes, name, 100)


ATTACKS = [
    "../secret.jsonl",
    "..",
    ".",
    "",
    "/etc/passwd",
    "sub/inner.jsonl",
    "link.jsonl",
    "loop.jsonl",
    "folder.jsonl",
    "pipe.jsonl",
    ".hidden.jsonl",
    "a\x00.jsonl",
    "..%2fsecret.jsonl",
    "x" * 5_000 + ".jsonl",
    "nothing.jsonl",
    "notes.txt",
]


async def test_no_name_leads_out_of_the_folder(tmp_path):
    inside = tmp_path / "tapes"
    (inside / "sub").mkdir(parents=True)
    tape(tmp_path, "secret.jsonl")
    tape(inside / "sub", "inner.jsonl")
    tape(inside, ".hidden.jsonl")
    (inside / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (inside / "loop.jsonl").symlink_to("loop.jsonl")
    (inside / "folder.jsonl").mkdir()
    (inside / "notes.txt").write_text("no tape")
    os.mkfifo(inside / "pipe.jsonl")
    tapes = TapeFolder(inside)
    assert await TapeLibrary(inside).page(None, 100, proxies=True) == ([], None)
    for name in ATTACKS:
        with pytest.raises(e.TapeNotFound):
            await tapes.open(name)
        for asked in (tapes.read(name, None, 10), tapes.about(name), tapes.message(name, 0)):
            with pytest.raises((e.TapeNotFound, e.TapeUnreadable)):
                await asked
    for nowhere in (None, tmp_path / "missing"):
        assert await TapeLibrary(nowhere).page(None, 10, proxies=True) == ([], None)
        with pytest.raises(e.TapeNotFound):
            await TapeFolder(nowhere).read(NAME, None, 10)


async def test_a_tape_that_is_being_recorded_is_read_on_from_where_it_ended(tmp_path):
    path = tape(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    tapes = TapeFolder(tmp_path)
    page = await tapes.read(NAME, None, 100)
    assert len(page.entries) == 3
    about = await tapes.about(NAME)
    assert (about.messages, about.ended, about.recording) == (2, None, False)
    again = await tapes.read(NAME, page.next_cursor, 100)
    assert (again.entries, again.next_cursor) == ([], page.next_cursor)
    path.write_bytes(b"".join(lines))
    rest = await tapes.read(NAME, page.next_cursor, 100)
    assert [bytes(each) + b"\n" for each in rest.entries] == lines[3:]
    assert rest.next_cursor is None


async def test_what_is_broken_or_too_long_is_told(tmp_path, monkeypatch):
    path = tape(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    tapes = TapeFolder(tmp_path)
    for cursor in ("-1", "x", "9" * 30, ""):
        with pytest.raises(e.ArgumentInvalid):
            await tapes.read(NAME, cursor, 10)
    assert (await tapes.read(NAME, "99999999", 10)).entries == []
    monkeypatch.setattr(folders, "PAGE_BYTES", len(lines[1]) - 2)
    (told,) = entries(await tapes.read(NAME, str(len(lines[0])), 10))
    assert (told["type"], told["seq"]) == ("too_long", 1)
    path.write_bytes(lines[0] + b"rubbish\n" + b"".join(lines[1:]))
    with pytest.raises(e.TapeUnreadable):
        await tapes.read(NAME, str(len(lines[0])), 10)
