"""Erasure: what was deleted cannot be found in the files of the database.

SQLite overwrites what is deleted (`secure_delete`, see `sqlite.py`), and the writer empties the
write-ahead log soon after. Here is what is left: copies of rows in the unused middle of pages,
where SQLite leaves them when it moves rows to a neighbour.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

INDEX_LAST = 16
"""Where the index of the write-ahead log has the number of its last committed frame."""
INDEX_SALT = 32
"""Where it has two numbers that change when the log begins anew."""
INDEX_HEADER = 34
INDEX_BLOCK = 32_768
INDEX_NUMBERS = 4096
"""The index is made of blocks, each of which begins with so many numbers of four bytes: after those
of the header, the pages of the log in their order.
"""
FILE_HEADER = 100
"""Bytes at the beginning of the first page that belong to the file as a whole."""
INNER_PAGES = (2, 5)
LEAF_PAGES = (10, 13)
"""The first byte of a page that holds rows, or a part of an index."""
READ_AT_ONCE = 64
"""Pages read with one call: it is made beside a busy loop, which makes each call wait."""
MOST_PAGES = 0x0200_0000
"""In a file of so many pages (128 GiB) other pages may begin with such a byte too."""


class PageCleaner:
    """Zeroes the unused middle of pages in the database file; for the writer's thread alone.

    Only bytes that belong to nothing are written, so whoever reads the page meanwhile, or finds it
    after a power cut, has the same rows. Files stay open for as long as SQLite has them: closing
    one would end SQLite's locks on it, which are the process's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._index: int | None = None
        """The file of the log's index, which SQLite makes when it first needs it."""
        self._generation = b""
        self._frames = 0
        self._changed: set[int] = set()
        """Pages in the log; not all need be in the database file yet."""
        self._due: deque[Iterator[int]] = deque()

    @property
    def is_due(self) -> bool:
        """Whether there are pages to clean."""
        return bool(self._due)

    def note_log(self, frames: int) -> None:
        """Note which pages are in the log, which has so many frames; before each checkpoint.

        It has fewer if a unit that was undone had begun it anew.
        """
        if self._index is None:
            index = self._path.with_name(self._path.name + "-shm")
            self._index = os.open(index, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        generation = os.pread(self._index, 8, INDEX_SALT)
        frames = min(frames, int.from_bytes(os.pread(self._index, 4, INDEX_LAST), sys.byteorder))
        if generation != self._generation:
            self._generation, self._frames = generation, 0
        while self._frames < frames:
            block, first = divmod(INDEX_HEADER + self._frames, INDEX_NUMBERS)
            count = min(frames - self._frames, INDEX_NUMBERS - first)
            read = os.pread(self._index, 4 * count, block * INDEX_BLOCK + 4 * first)
            self._changed.update(memoryview(read).cast("I"))
            self._frames += count

    def log_is_empty(self) -> None:
        """All that was in the log is in the database file now, and can be cleaned there."""
        if self._changed:
            self._due.append(iter(sorted(self._changed)))
            self._changed = set()

    def all_pages(self) -> None:
        """Have the whole file cleaned, since after a kill nobody knows what has changed."""
        pages = os.fstat(self._file).st_size // (self._page_size() or 1)
        self._due = deque([iter(range(1, pages + 1))])

    def clean(self) -> None:
        """Clean some of the pages that are due."""
        size = self._page_size()
        numbers = list(islice(self._due[0], READ_AT_ONCE)) if self._due else []
        if len(numbers) < READ_AT_ONCE and self._due:
            self._due.popleft()
        if self._is_known(size):
            while numbers:
                run = 1
                while run < len(numbers) and numbers[run] == numbers[0] + run:
                    run += 1
                self._clean_run(numbers[0], run, size)
                del numbers[:run]
        if not self._due:
            os.fdatasync(self._file)

    def _clean_run(self, number: int, count: int, size: int) -> None:
        """Clean a run of pages; each system call yields to other threads."""
        start = (number - 1) * size
        read = os.pread(self._file, count * size, start)
        for at in range(0, len(read), size):
            header = FILE_HEADER if start + at == 0 else 0
            unused = unused_middle(read[at : at + size], header)
            if unused is not None:
                first, end = unused
                os.pwrite(self._file, bytes(end - first), start + at + first)

    def _is_known(self, size: int) -> bool:
        """Whether a page's first byte tells for certain what it is."""
        auto_vacuum = os.pread(self._file, 4, 52) != bytes(4)
        return not auto_vacuum and os.fstat(self._file).st_size < MOST_PAGES * size

    def _page_size(self) -> int:
        size = int.from_bytes(os.pread(self._file, 2, 16))
        return 65_536 if size == 1 else size

    def close(self) -> None:
        """Let go of the files, once SQLite has."""
        os.close(self._file)
        if self._index is not None:
            os.close(self._index)


def unused_middle(page: bytes, header: int) -> tuple[int, int] | None:
    """Where a page that holds rows has bytes that are nothing's and not zero, between its pointers
    and its cells.
    """
    kind = page[header] if len(page) > header else 0
    if kind not in INNER_PAGES and kind not in LEAF_PAGES:
        return None
    cells = int.from_bytes(page[header + 3 : header + 5])
    first = header + (12 if kind in INNER_PAGES else 8) + 2 * cells
    end = int.from_bytes(page[header + 5 : header + 7]) or 65_536
    if not first < end <= len(page) or not page[first:end].strip(b"\0"):
        return None
    return first, end
