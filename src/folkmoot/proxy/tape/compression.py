"""Tapes that are compressed with Zstandard, block by block, so that they can be read meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from folkmoot.core.errors import TapeUnreadable, TapeUnwritable

SUFFIX: Final = ".zst"
MAGIC: Final = b"\x28\xb5\x2f\xfd"
LEVEL: Final = 3
WINDOW: Final = 128 * 1024 * 1024
"""The most memory that a compressed tape may ask of its reader."""
HOW: Final = "Compressed tapes need the package zstandard: install folkmoot[zstd]."


class BrokenStream(Exception):
    """What is compressed cannot be decompressed."""


class Plain:
    """Writes lines as they are."""

    def pack(self, lines: bytes) -> bytes:
        """The bytes to write for these lines."""
        return lines

    def end(self) -> bytes:
        """The bytes that end the tape."""
        return b""


class Zstandard:
    """Writes lines compressed; each pack can be read without those that follow."""

    def __init__(self) -> None:
        try:
            import zstandard
        except ImportError:
            raise TapeUnwritable(HOW) from None
        self._flush: int = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        self._stream: Any = zstandard.ZstdCompressor(level=LEVEL).compressobj()

    def pack(self, lines: bytes) -> bytes:
        """The bytes to write for these lines."""
        head: bytes = self._stream.compress(lines)
        tail: bytes = self._stream.flush(self._flush)
        return head + tail

    def end(self) -> bytes:
        """The bytes that end the tape."""
        tail: bytes = self._stream.flush()
        return tail


def open_at_once(path: str, flags: int) -> int:
    """Open without waiting: nobody may ever write to what is no file."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextmanager
def opened(path: Path, opener: Callable[[str, int], int] = open_at_once) -> Iterator[IO[bytes]]:
    """A tape to read, decompressed where its first bytes say that it is compressed."""
    with open(path, "rb", opener=opener) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise TapeUnreadable(f"{path}: is not a file.")
        first = file.read(len(MAGIC))
        file.seek(0)
        if not first or not MAGIC.startswith(first):
            yield file
            return
        try:
            import zstandard
        except ImportError:
            raise TapeUnreadable(f"{path}: is compressed. {HOW}") from None
        reader = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(
            file, read_across_frames=True
        )
        try:
            yield reader
        except zstandard.ZstdError as error:
            raise BrokenStream(f"cannot be decompressed: {error}.") from None
