"""The tapes of a folder by name, and all tapes that a hub can show. Nothing outside can be named.

A name is a plain one, a link is not followed, and what is not a file is not opened. Reading is done
in a thread, a page at a time: a tape may be larger than the memory.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.proxy.tape import pages
from folkmoot.proxy.tape.file import MAGIC, BrokenStream, is_recorded, opened
from folkmoot.proxy.tape.lines import EndLine, Header, Line, MessageLine, decode_line
from folkmoot.proxy.tape.pages import WRONG_CURSOR
from folkmoot.proxy.tape.reader import skip
from folkmoot.proxy.tape_views import TapeRow

T = TypeVar("T")

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,117}\.jsonl(\.zst)?")
CHUNK: Final = 256 * 1024
TAIL: Final = 4_096
"""Bytes at the end of a tape in which its last line is looked for."""
COUNTED: Final = 1024 * 1024
"""A compressed tape up to this size is read to the end for its last line."""
PAGE_BYTES: Final = 1024 * 1024
"""How much of a tape one page holds; a line that is longer is only named."""
MOST_LISTED: Final = 20_000
AT_ONCE: Final = 2
"""How many tapes are read at the same time."""


class StoredTape(Struct, frozen=True):
    """A tape as a file."""

    bytes: int
    modified_at: float
    compressed: bool
    recording: bool


class TapePage(Struct, frozen=True, kw_only=True):
    """Some lines of a tape."""

    entries: list[Raw]
    next_cursor: str | None
    """Where the next page begins; also at the end of a tape that is still being recorded."""


class TapeFolder(Entity):
    """The tapes of a folder; of none where the hub does not record."""

    folder: Path | None
    place: str = ""
    """Empty for the hub's own folder; what is in another must belong to the hub's user."""
    only: str | None = None
    """The one file of the folder that counts."""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    def names(self) -> list[tuple[int, str]]:
        """The names of what may be tapes, each with when it was written last."""
        found: list[tuple[int, str]] = []
        try:
            if self.folder is None:
                return []
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if self._may_be(entry.name) and entry.is_file(follow_symlinks=False):
                        found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
                        if len(found) == MOST_LISTED:
                            break
        except OSError:
            # The folder, or one of the files, was removed meanwhile.
            return found
        return found

    def info(self, name: str) -> TapeRow | None:
        """A summary of a tape; None for another file with such a name."""
        try:
            return self._info(name)
        except (e.TapeNotFound, e.TapeUnreadable):
            return None

    async def about(self, name: str) -> TapeRow:
        """A summary of a tape."""
        return await self.in_thread(self._info, name)

    async def timeline(
        self,
        name: str,
        limit: int,
        *,
        cursor: str | None,
        before: str | None,
        last: bool,
        wanted: pages.Filter,
    ) -> tuple[pages.Timeline, StoredTape]:
        """Messages from a place on, before a place, or the last ones; and how the file was."""
        after, until = offset_of(cursor), None if before is None else offset_of(before)

        def read() -> tuple[pages.Timeline, StoredTape]:
            # Looked at first: what is written while it is read is read the next time.
            stored, opening = self._stored(name), partial(self._opened, name)
            if last or until is not None:
                return pages.earlier(opening, name, until, limit, wanted), stored
            return pages.later(opening, name, after, limit, wanted), stored

        return await self.in_thread(read)

    async def message(self, name: str, offset: int) -> pages.CallDetail:
        """One message, with the other half of its call."""
        return await self.in_thread(pages.call_detail, partial(self._opened, name), name, offset)

    async def calls(
        self, name: str, cursor: str | None, compared: pages.Compared | None
    ) -> tuple[pages.CallPage, StoredTape]:
        """Requests and answers from a place on; and how the file was."""

        def read() -> tuple[pages.CallPage, StoredTape]:
            stored, opening = self._stored(name), partial(self._opened, name)
            return pages.calls(opening, name, offset_of(cursor), compared), stored

        return await self.in_thread(read)

    async def read(self, name: str, cursor: str | None, limit: int) -> TapePage:
        """A page of the lines of a tape."""
        return await self.in_thread(self._read, name, offset_of(cursor), limit)

    async def open(self, name: str) -> tuple[int, IO[bytes]]:
        """The size of a tape, and its file, which the caller closes."""
        return await self.in_thread(self._whole, name)

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Read something without holding up the loop, and not too much at once."""
        async with self.turns:
            return await asyncio.to_thread(work, *arguments)

    @contextmanager
    def _opener(self, name: str) -> Iterator[Callable[[str, int], int]]:
        """What opens a file of the folder, and nothing else."""
        if self.folder is None or not self._may_be(name):
            raise e.TapeNotFound(f"There is no tape {name[:200]!r}.")
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            raise e.TapeNotFound(f"There is no tape {name!r}.") from None
        try:
            yield partial(self._open_in, folder)
        except OSError:
            # Not there, or a link, or a folder: nobody is told which.
            raise e.TapeNotFound(f"There is no tape {name!r}.") from None
        finally:
            os.close(folder)

    def _open_in(self, folder: int, name: str, mode: int) -> int:
        flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened_as = os.open(name, mode | flags, dir_fd=folder)
        if self.place and os.fstat(opened_as).st_uid != os.geteuid():
            os.close(opened_as)
            raise PermissionError
        return opened_as

    def _may_be(self, name: str) -> bool:
        return NAME.fullmatch(name) is not None and self.only in (None, name)

    def _stored(self, name: str) -> StoredTape:
        with self._opener(name) as opener, open(name, "rb", opener=opener) as stored:
            about = os.fstat(stored.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise e.TapeNotFound(f"There is no tape {name!r}.")
            compressed = stored.read(len(MAGIC)) == MAGIC
            return StoredTape(
                about.st_size, about.st_mtime, compressed, is_recorded(stored.fileno())
            )

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with self._opener(name) as opener:
            try:
                with opened(Path(name), opener) as file:
                    yield file
            except BrokenStream as error:
                raise e.TapeUnreadable(f"{name}: {error}") from None

    def _info(self, name: str) -> TapeRow:
        stored = self._stored(name)
        with self._opened(name) as file:
            lines = _lines(file, 0)
            _, first = next(lines, (0, b""))
            header = _decoded(name, first)
            if not isinstance(header, Header):
                raise e.TapeUnreadable(f"{name}: is not a tape.")
            last = b""
            if not stored.compressed:
                file.seek(max(0, stored.bytes - TAIL))
                last = file.read(TAIL).rstrip(b"\n").rpartition(b"\n")[2]
            elif stored.bytes <= COUNTED:
                for _, line in lines:
                    last = line
        try:
            end: Line | None = decode_line(last)
        except (msgspec.DecodeError, UnicodeDecodeError):
            end = None
        ended = end if isinstance(end, EndLine) else None
        messages = None if ended is None else ended.messages
        if ended is None and not stored.compressed:
            messages = pages.last_seq(partial(self._opened, name))
        return TapeRow(
            name=name,
            place=self.place,
            path=str((self.folder or Path()).absolute() / name),
            bytes=stored.bytes,
            modified_at=stored.modified_at,
            recording=stored.recording,
            started=header.started,
            ended=None if ended is None else ended.ended,
            messages=messages,
            client=f"{header.client.transport} {header.client.target}".strip(),
            server=f"{header.server.transport} {header.server.target}".strip(),
            compressed=stored.compressed,
            redaction_key="" if header.redaction is None else header.redaction.key,
        )

    def _read(self, name: str, offset: int, limit: int) -> TapePage:
        entries: list[Raw] = []
        size, at, ended = 0, offset, False
        with self._opened(name) as file:
            skip(file, offset)
            lines = _lines(file, offset)
            for following, raw in lines:
                if len(entries) == limit or (entries and size + len(raw) > PAGE_BYTES):
                    break
                try:
                    line = _decoded(name, raw)
                except e.TapeUnreadable:
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
                raise e.TapeNotFound(f"There is no tape {name!r}.")
            return about.st_size, file


def offset_of(cursor: str | None) -> int:
    """Where a page begins, by the cursor that an earlier one gave."""
    if cursor is None:
        return 0
    if re.fullmatch("[0-9]{1,15}", cursor) is None:
        raise e.ArgumentInvalid(pages.WRONG_CURSOR, field="cursor")
    return int(cursor)


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
        raise e.TapeUnreadable(f"{name}: a line cannot be read: {error}.") from None


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


CURSOR: Final = re.compile(r"([0-9]{1,20}):([0-9a-f]{0,12}):(.{1,128})")
NOTED_SECONDS: Final = 600.0
MOST_NOTED: Final = 1_000


class TapeLibrary:
    """The hub's folder, and the places where proxies of its user have recorded, by short names.

    `recorded` finds those places. Each time it is asked for tapes of proxies, it looks again.
    """

    def __init__(
        self, folder: Path | None, recorded: Callable[[], Mapping[str, Path]] = dict
    ) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.own = TapeFolder(folder, turns=self._turns)
        self._recorded = recorded
        self._noted: dict[tuple[str, str, str], float] = {}

    async def page(
        self, cursor: str | None, limit: int, *, proxies: bool
    ) -> tuple[list[TapeRow], str | None]:
        """Tapes, the last written first, and where the next page begins."""
        return await self.own.in_thread(self._page, cursor, limit, proxies)

    async def find(self, place: str, *, proxies: bool) -> TapeFolder:
        if not place:
            return self.own
        found = await self.own.in_thread(self._places) if proxies else {}
        if place not in found:
            raise e.TapeNotFound("There are no tapes at this place.")
        return found[place]

    def is_new_reader(self, who: str, place: str, name: str, now: float) -> bool:
        """Whether someone has not read a tape for some minutes: reading it page by page is once."""
        key = (who, place, name)
        before = self._noted.pop(key, None)
        while len(self._noted) >= MOST_NOTED:
            del self._noted[next(iter(self._noted))]
        is_new = before is None or now - before >= NOTED_SECONDS
        self._noted[key] = now if before is None or is_new else before
        return is_new

    def _places(self) -> dict[str, TapeFolder]:
        found: dict[str, TapeFolder] = {}
        folders = {self.own.folder.resolve()} if self.own.folder is not None else set()
        files: list[tuple[str, Path]] = []
        for place, path in self._recorded().items():
            if not path.is_dir():
                files.append((place, path))
            elif path.resolve() not in folders:
                folders.add(path.resolve())
                found[place] = TapeFolder(path, place=place, turns=self._turns)
        for place, path in files:
            if path.parent.resolve() not in folders:
                found[place] = TapeFolder(
                    path.parent, place=place, only=path.name, turns=self._turns
                )
        return found

    def _page(
        self,
        cursor: str | None,
        limit: int,
        proxies: bool,  # noqa: FBT001 - of one caller
    ) -> tuple[list[TapeRow], str | None]:
        places = {"": self.own, **(self._places() if proxies else {})}
        known = [
            (written, place, name)
            for place, folder in places.items()
            for written, name in folder.names()
        ]
        if cursor is not None:
            given = CURSOR.fullmatch(cursor)
            if given is None:
                raise e.ArgumentInvalid(WRONG_CURSOR, field="cursor")
            last = (int(given[1]), given[2], given[3])
            known = [each for each in known if each < last]
        found: list[TapeRow] = []
        for key in sorted(known, reverse=True):
            info = places[key[1]].info(key[2])
            if info is not None:
                found.append(info)
            if len(found) == limit:
                return found, "{}:{}:{}".format(*key)
        return found, None
