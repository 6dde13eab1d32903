"""A disk for tests that forgets what was not synced when its power fails, and can refuse to work.

A process that is killed leaves its writes in the system's cache, so killing proves nothing about
syncing. This file system keeps, beside the real files, what a disk would hold for certain.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import TypeAlias
from uuid import uuid4

import apsw

# An offset and what was written there; nothing if the file was cut off there.
Change: TypeAlias = tuple[int, bytes | None]

SECTOR = 512


class Content:
    """A file as the disk has it, and the changes it may yet lose."""

    def __init__(self, path: Path) -> None:
        self.durable = path.read_bytes() if path.exists() else b""
        self.pending: list[Change] = []

    def sync(self) -> None:
        self.durable = apply(self.durable, self.pending)
        self.pending = []

    def after_power_loss(self, chance: random.Random | None) -> bytes:
        """The durable part; with chance, also any of the changes since, whole or torn."""
        if chance is None:
            return self.durable
        kept: list[Change] = []
        for offset, data in self.pending:
            fate = chance.random()
            if fate < 0.4:
                kept.append((offset, data))
            elif fate < 0.6 and data is not None and len(data) > SECTOR:
                kept.append((offset, data[: chance.randrange(SECTOR, len(data), SECTOR)]))
        return apply(self.durable, kept)


def apply(content: bytes, changes: list[Change]) -> bytes:
    result = bytearray(content)
    for offset, data in changes:
        if data is None:
            del result[offset:]
        else:
            result.extend(bytes(max(0, offset - len(result))))
            result[offset : offset + len(data)] = data
    return bytes(result)


class Disk(apsw.VFS):
    """A virtual file system; open a store on it with `vfs=disk.name`."""

    def __init__(self) -> None:
        self.name = f"disk-{uuid4().hex}"
        self.lock = RLock()
        self.contents: dict[Path, Content] = {}
        self.failing = False
        self.full = False
        self.before_sync: Callable[[], None] = lambda: None
        self.before_read: Callable[[], None] = lambda: None
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if name is None:
            return apsw.VFSFile("", name, flags)
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        with self.lock:
            content = self.contents.setdefault(path, Content(path))
            return DiskFile(self, content, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self.lock:
            super().xDelete(filename, syncdir)
            self.contents.pop(Path(filename), None)

    def lose_power(self, folder: Path, chance: random.Random | None = None) -> None:
        """Put what the disk would hold if power failed now into another folder."""
        with self.lock:
            for path, content in self.contents.items():
                (folder / path.name).write_bytes(content.after_power_loss(chance))


class DiskFile(apsw.VFSFile):
    def __init__(
        self, disk: Disk, content: Content, name: str | apsw.URIFilename, flags: list[int]
    ) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._content = content

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self._disk.lock:
            if self._disk.full:
                raise apsw.FullError
            super().xWrite(data, offset)
            self._content.pending.append((offset, bytes(data)))

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.before_read()
        return super().xRead(amount, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self._disk.lock:
            super().xTruncate(newsize)
            self._content.pending.append((newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.before_sync()
        with self._disk.lock:
            if self._disk.failing:
                raise apsw.IOError
            self._content.sync()
