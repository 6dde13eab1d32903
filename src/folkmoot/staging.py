"""Writes a file atomically: a reader sees the old one or the new one, never a part of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp

PRIVATE = 0o600


@contextmanager
def file_errors(path: Path, error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise an error of ours, in one line, for what the system says of a file."""
    try:
        yield
    except OSError as failed:
        reason = (failed.strerror or type(failed).__name__).lower()
        raise error(f"{path}: {reason}.") from None


@contextmanager
def staged(path: Path, data: bytes, mode: int = PRIVATE) -> Iterator[Path]:
    """A whole new file beside the old one, on the disk; what is not put in its place is removed.

    Whoever entered puts it there with `replace`.
    """
    part = stage(path, data, mode)
    try:
        yield part
    finally:
        with suppress(OSError):
            part.unlink()


def stage(path: Path, data: bytes, mode: int = PRIVATE) -> Path:
    """The whole new file beside the old one, for its caller to put in place or to remove."""
    handle, name = mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return Path(name)
