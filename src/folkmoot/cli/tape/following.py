"""A tape while it is recorded: its lines, and those that come, until it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from folkmoot.core.errors import TapeUnreadable
from folkmoot.proxy.tape.file import HOW, MAGIC, WINDOW
from folkmoot.proxy.tape.lines import EndLine, Header, Line, decode_line
from folkmoot.proxy.tape.reader import CHUNK, LONGEST

PIECE: Final = 1024
"""Bytes that are decompressed at once; they may become thirty thousand times as many."""
LOOK_SECONDS: Final = 0.1
"""How often a file that has nothing new is looked at."""


def followed(path: Path, wait: Callable[[], None] | None = None) -> Iterator[Line | None]:
    """The lines of a tape as they come, up to its end line; None where nothing is new for now."""
    try:
        with path.open("rb") as file:
            yield from _Follower(path, file).lines(wait or (lambda: time.sleep(LOOK_SECONDS)))
    except OSError as error:
        raise TapeUnreadable(f"{path}: cannot be read: {error.strerror}.") from error


class _Follower:
    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._rest = b""
        self._number = 0
        self._unpack: Callable[[bytes], bytes] | None = None

    def lines(self, wait: Callable[[], None]) -> Iterator[Line | None]:
        while True:
            chunk = self._file.read(CHUNK)
            if chunk:
                for raw in self._split(chunk):
                    line = self._decoded(raw)
                    yield line
                    if isinstance(line, EndLine):
                        return
                continue
            yield None
            wait()
            self._take_back()

    def _take_back(self) -> None:
        """Forget a line that was cut off again, because it could not be written whole."""
        size = os.fstat(self._file.fileno()).st_size
        if size < self._file.tell() and self._unpack is _unpacked:
            self._file.seek(size)
            self._rest = b""

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        if self._unpack is None:
            compressed = chunk.startswith(MAGIC)
            self._unpack = self._decompressor() if compressed else _unpacked
        step = len(chunk) if self._unpack is _unpacked else PIECE
        for at in range(0, len(chunk), step):
            *lines, self._rest = (self._rest + self._unpack(chunk[at : at + step])).split(b"\n")
            if len(self._rest) > LONGEST:
                raise self._broken("is longer than a line may be")
            yield from lines

    def _decompressor(self) -> Callable[[bytes], bytes]:
        try:
            import zstandard
        except ImportError:
            raise TapeUnreadable(f"{self._path}: is compressed. {HOW}") from None
        stream: Any = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()

        def unpack(chunk: bytes) -> bytes:
            try:
                return bytes(stream.decompress(chunk))
            except zstandard.ZstdError as error:
                raise self._broken(f"cannot be decompressed: {error}") from None

        return unpack

    def _decoded(self, raw: bytes) -> Line | None:
        self._number += 1
        try:
            line = decode_line(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._broken(f"cannot be read: {error}") from None
        if self._number == 1 and not isinstance(line, Header):
            raise TapeUnreadable(f"{self._path}: is not a tape.")
        return line

    def _broken(self, what: str) -> TapeUnreadable:
        return TapeUnreadable(f"{self._path}: line {self._number} {what}.")


def _unpacked(chunk: bytes) -> bytes:
    return chunk
