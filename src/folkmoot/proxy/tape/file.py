"""The file of a tape: its name, its compression, and how it is kept whole to its last line."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

SUFFIX = ".jsonl"
PACKED = ".zst"


def new_name(folder: Path, clock: Clock, suffix: str = SUFFIX) -> Path:
    """A name in a folder that no other tape has: the time, and something random."""
    moment = datetime.fromtimestamp(clock.now(), UTC)
    return folder / f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}{suffix}"


def numbered(path: Path, number: int) -> Path:
    """The name of the n-th tape beside `path`: `talk.jsonl`, then `talk.2.jsonl`."""
    if number == 1:
        return path
    packed = PACKED if path.name.endswith(PACKED) else ""
    plain = Path(path.name.removesuffix(packed))
    return path.with_name(f"{plain.stem}.{number}{plain.suffix}{packed}")


def new_id() -> str:
    return str(uuid.uuid4())


def rfc3339(seconds: float) -> str:
    """A time in RFC 3339."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


COMPRESSED_SUFFIX: Final = ".zst"
MAGIC: Final = b"\x28\xb5\x2f\xfd"
LEVEL: Final = 3
WINDOW: Final = 128 * 1024 * 1024
"""The most memory that a compressed tape may ask of its reader."""
HOW: Final = "Compressed tapes need the package zstandard: install folkmoot[zstd]."


class BrokenStream(Exception):
    """What is compressed cannot be decompressed."""


class PlainFile:
    """Writes lines uncompressed."""

    def pack(self, lines: bytes) -> bytes:
        """The bytes to write for these lines."""
        return lines

    def end(self) -> bytes:
        """The bytes that end the tape."""
        return b""


class Zstandard:
    """Writes lines compressed, in packs that can be read one by one."""

    def __init__(self) -> None:
        try:
            import zstandard
        except ImportError:
            raise e.TapeUnwritable(HOW) from None
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
            raise e.TapeUnreadable(f"{path}: is not a file.")
        first = file.read(len(MAGIC))
        file.seek(0)
        if not first or not MAGIC.startswith(first):
            yield file
            return
        try:
            import zstandard
        except ImportError:
            raise e.TapeUnreadable(f"{path}: is compressed. {HOW}") from None
        reader = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(
            file, read_across_frames=True
        )
        try:
            yield reader
        except zstandard.ZstdError as error:
            raise BrokenStream(f"cannot be decompressed: {error}.") from None


LOOK_SECONDS: Final = 0.5
"""How long a tape may be written on before it is noticed that someone removed it."""
MODE: Final = 0o600
REMOVED: Final = "The file was removed"
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC


class Unwritten(Exception):
    """Something could not be written; the file ends with what was whole."""

    def __init__(self, why: str, kept: int = 0) -> None:
        super().__init__(why)
        self.kept = kept
        """How many of the pieces are on the tape, or will be before anything else is."""


class TapeFile:
    """A new file that pieces are added to; no piece is there in part."""

    def __init__(self, path: Path, *, compress: bool | None = None) -> None:
        if compress is None:
            compress = path.suffix == COMPRESSED_SUFFIX
        self.path = path
        self._codec: PlainFile | Zstandard = Zstandard() if compress else PlainFile()
        self._plain = not compress
        self.size = 0
        self._look_at = 0.0
        self._owed = b""
        try:
            self._descriptor = os.open(path, NEW, MODE)
        except FileExistsError:
            raise e.TapeUnwritable(
                f"{path}: already exists, and a tape is never overwritten. Choose another name."
            ) from None
        except OSError as error:
            raise e.TapeUnwritable(f"{path}: cannot be created: {error.strerror}.") from error
        # Held until the file is closed, or its writer killed: so a reader knows that more comes.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def owes(self) -> bool:
        """Whether something has to be written before anything else can be."""
        return bool(self._owed)

    def owe(self, piece: bytes) -> None:
        """Have a piece written before all others, whenever that becomes possible."""
        self._owed += self._codec.pack(piece)

    def write(self, pieces: Sequence[bytes]) -> None:
        """Add pieces. Raises `Unwritten` if not all of them could be added."""
        if self._owed:
            self._settle()
        if not pieces:
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not self._plain:
            data = self._codec.pack(data)
        written, why = self._put(data)
        if not why:
            return
        if self._plain:
            kept, end = _whole(pieces, written)
            self._cut(end)
            raise Unwritten(why, kept)
        # What was compressed before stands on what it was compressed after: it cannot be left out.
        self._cut(0)
        self._owed = data
        raise Unwritten(why, len(pieces))

    def end(self, piece: bytes) -> None:
        """Add the last piece, and make sure that all of it is on the disk."""
        self.write([piece])
        self.finish()

    def finish(self) -> None:
        """Make sure that all of it is on the disk; nothing can be added afterwards."""
        tail = self._codec.end()
        if tail:
            written, why = self._put(tail)
            if why:
                self.size += written
                raise Unwritten(why)
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise Unwritten(error.strerror or str(error)) from error

    def close(self) -> None:
        """Let go of the file. May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def abandon(self) -> None:
        """Remove the file, which nothing was written to."""
        self.close()
        with suppress(OSError):
            self.path.unlink()

    def _settle(self) -> None:
        _, why = self._put(self._owed)
        if why:
            self._cut(0)
            raise Unwritten(why)
        self._owed = b""

    def _put(self, data: bytes) -> tuple[int, str]:
        """Write all of it; answer how much was written and, if not all, why."""
        written = 0
        try:
            if time.monotonic() >= self._look_at and self._removed():
                # It could be written, and nobody could ever read it.
                return 0, REMOVED
            written = os.write(self._descriptor, data)
            while written < len(data):
                written += os.write(self._descriptor, memoryview(data)[written:])
        except OSError as error:
            return written, error.strerror or str(error)
        self.size += written
        return written, ""

    def _removed(self) -> bool:
        """Whether the file has no name any more; asked now and then, since it takes a while."""
        self._look_at = time.monotonic() + LOOK_SECONDS
        return not os.fstat(self._descriptor).st_nlink

    def _cut(self, kept: int) -> None:
        """Let the file end so many bytes behind where it ended before."""
        self.size += kept
        with suppress(OSError):
            os.ftruncate(self._descriptor, self.size)


def is_recorded(descriptor: int) -> bool:
    """Whether someone records on an opened tape now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def _whole(pieces: Sequence[bytes], written: int) -> tuple[int, int]:
    """How many pieces were written whole, and how many bytes they are."""
    count = end = 0
    for piece in pieces:
        if end + len(piece) > written:
            break
        end += len(piece)
        count += 1
    return count, end
