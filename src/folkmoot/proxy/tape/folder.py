"""The tapes of one folder, by name. Nothing outside of the folder can be named.

A name is a plain one, a link is not followed, and what is not a file is not opened. Reading is done
in a thread, a page at a time: a tape may be larger than the memory.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from folkmoot.core.errors import ArgumentInvalid, TapeNotFound, TapeUnreadable
from folkmoot.proxy.tape.compression import MAGIC, BrokenStream, opened
from folkmoot.proxy.tape.lines import EndLine, Header, Line, MessageLine, decode_line

T = TypeVar("T")

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,117}\.jsonl(\.zst)?")
CHUNK: Final = 256 * 1024
TAIL: Final = 4_096
"""Bytes at the end of a tape in which its last line is looked for."""
COUNTED: Final = 1024 * 1024
"""A compressed tape up to this size is read to the end for its last line."""
PAGE_BYTES: Final = 1024 * 1024
"""How much of a tape one page holds; a line that is longer is only named."""
AT_ONCE: Final = 2
"""How many tapes are read at the same time."""


class TapeInfo(Struct, frozen=True, kw_only=True):
    """One tape."""

    name: str
    bytes: int
    modified_at: float
    started: str
    ended: str | None
    """None while it is being recorded, or if its recorder was killed."""
    messages: int | None
    """None where `ended` is; the tape must be read to know."""
    client: str
    server: str
    compressed: bool


class TapePage(Struct, frozen=True, kw_only=True):
    """Some lines of a tape."""

    entries: list[Raw]
    next_cursor: str | None
    """Where the next page begins; also at the end of a tape that is still being recorded."""


class TapeFolder:
    """The tapes of a folder; of none where the hub does not record."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def page(self, after: str, limit: int) -> list[TapeInfo]:
        """Tapes by name; the time is in the name of those that a hub records."""
        return await self._in_thread(self._page, after, limit)

    async def read(self, name: str, cursor: str | None, limit: int) -> TapePage:
        """A page of the lines of a tape."""
        offset = 0
        if cursor is not None:
            if re.fullmatch("[0-9]{1,15}", cursor) is None:
                raise ArgumentInvalid(
                    "cursor must be one that an earlier page gave.", field="cursor"
                )
            offset = int(cursor)
        return await self._in_thread(self._read, name, offset, limit)

    async def open(self, name: str) -> tuple[int, IO[bytes]]:
        """The size of a tape, and its file as it is stored; whoever takes it closes it."""
        return await self._in_thread(self._whole, name)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        async with self._turns:
            return await asyncio.to_thread(work, *arguments)

    @contextmanager
    def _opener(self, name: str) -> Iterator[Callable[[str, int], int]]:
        """What opens a file of the folder, and nothing else."""
        if self._folder is None or NAME.fullmatch(name) is None:
            raise TapeNotFound(f"There is no tape {name[:200]!r}.")
        try:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            raise TapeNotFound(f"There is no tape {name!r}.") from None
        try:
            flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            yield lambda path, mode: os.open(path, mode | flags, dir_fd=folder)
        except OSError:
            # Not there, or a link, or a folder: nobody is told which.
            raise TapeNotFound(f"There is no tape {name!r}.") from None
        finally:
            os.close(folder)

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with self._opener(name) as opener:
            try:
                with opened(Path(name), opener) as file:
                    yield file
            except BrokenStream as error:
                raise TapeUnreadable(f"{name}: {error}") from None

    def _page(self, after: str, limit: int) -> list[TapeInfo]:
        try:
            names = [] if self._folder is None else [it.name for it in self._folder.iterdir()]
        except OSError:
            names = []
        found: list[TapeInfo] = []
        for name in sorted(each for each in names if each > after and NAME.fullmatch(each)):
            if len(found) == limit:
                break
            try:
                found.append(self._info(name))
            except (TapeNotFound, TapeUnreadable):
                # Something else with the name of a tape.
                continue
        return found

    def _info(self, name: str) -> TapeInfo:
        with self._opener(name) as opener, open(name, "rb", opener=opener) as stored:
            about = os.fstat(stored.fileno())
            compressed = stored.read(len(MAGIC)) == MAGIC
        with self._opened(name) as file:
            lines = _lines(file, 0)
            _, first = next(lines, (0, b""))
            header = _decoded(name, first)
            if not isinstance(header, Header):
                raise TapeUnreadable(f"{name}: is not a tape.")
            last = b""
            if not compressed:
                file.seek(max(0, about.st_size - TAIL))
                last = file.read(TAIL).rstrip(b"\n").rpartition(b"\n")[2]
            elif about.st_size <= COUNTED:
                for _, line in lines:
                    last = line
        try:
            end: Line | None = decode_line(last)
        except (msgspec.DecodeError, UnicodeDecodeError):
            end = None
        ended = end if isinstance(end, EndLine) else None
        return TapeInfo(
            name=name,
            bytes=about.st_size,
            modified_at=about.st_mtime,
            started=header.started,
            ended=None if ended is None else ended.ended,
            messages=None if ended is None else ended.messages,
            client=f"{header.client.transport} {header.client.target}".strip(),
            server=f"{header.server.transport} {header.server.target}".strip(),
            compressed=compressed,
        )

    def _read(self, name: str, offset: int, limit: int) -> TapePage:
        entries: list[Raw] = []
        size, at, ended = 0, offset, False
        with self._opened(name) as file:
            _skip(file, offset)
            lines = _lines(file, offset)
            for following, raw in lines:
                if len(entries) == limit or (entries and size + len(raw) > PAGE_BYTES):
                    break
                try:
                    line = _decoded(name, raw)
                except TapeUnreadable:
                    if next(lines, None) is None:
                        # The last line is being written, or its writer was killed.
                        break
                    raise
                at, size = following, size + len(raw)
                ended = isinstance(line, EndLine)
                entries.append(_shown(line, raw))
        return TapePage(entries=entries, next_cursor=None if ended else str(at))

    def _whole(self, name: str) -> tuple[int, IO[bytes]]:
        with self._opener(name) as opener:
            file = open(name, "rb", opener=opener)  # noqa: SIM115 - handed on
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                file.close()
                raise TapeNotFound(f"There is no tape {name!r}.")
            return about.st_size, file


def _shown(line: Line | None, raw: bytes) -> Raw:
    if len(raw) <= PAGE_BYTES:
        return Raw(raw)
    seq = line.seq if isinstance(line, MessageLine) else None
    told = {"type": "too_long", "seq": seq, "bytes": len(raw)}
    return Raw(msgspec.json.encode(told))


def _decoded(name: str, raw: bytes) -> Line | None:
    try:
        return decode_line(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TapeUnreadable(f"{name}: a line cannot be read: {error}.") from None


def _skip(file: IO[bytes], offset: int) -> None:
    if file.seekable():
        file.seek(offset)
        return
    while offset > 0 and (passed := len(file.read(min(offset, CHUNK)))):
        offset -= passed


def _lines(file: IO[bytes], offset: int) -> Iterator[tuple[int, bytes]]:
    """Each line without its end, and where the next one begins; the last also where it has none."""
    rest: list[bytes] = []
    for chunk in iter(partial(file.read, CHUNK), b""):
        *whole, left = chunk.split(b"\n")
        for part in whole:
            rest.append(part)
            line = b"".join(rest)
            rest = []
            offset += len(line) + 1
            if line:
                yield offset, line
        rest.append(left)
    if line := b"".join(rest):
        yield offset + len(line), line
