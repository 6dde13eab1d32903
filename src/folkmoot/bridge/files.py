"""Files for their owner alone: read only if nobody else can, replaced as a whole or not at all."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Final

from folkmoot.core.errors import DeviceKeyUnusable

MOST_BYTES: Final = 4 * 1024 * 1024
OTHERS: Final = 0o077


def read_private(path: Path) -> bytes | None:
    """What is in a file that only its owner can read; None when there is none."""
    with telling(path):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise DeviceKeyUnusable(f"{path}: is not a file.")
            if stat.S_IMODE(mode) & OTHERS:
                raise DeviceKeyUnusable(f"{path}: other users can read it. Run: chmod 600 {path}")
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DeviceKeyUnusable(f"{path}: is larger than such a file can be.")
    return content


def write_private(path: Path, content: bytes) -> None:
    """Put a whole file in place at once, on the disk when done, readable by its owner alone."""
    with telling(path):
        make_folder(path.parent)
        handle, name = mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
            sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise


def put_new(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet, readable by its owner alone."""
    with telling(path):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let nobody else change a file meanwhile; they wait."""
    with telling(path):
        make_folder(path.parent)
        # Kept beside the file, which is replaced: a lock on it would be one on the old file.
        lock = path.with_name(f"{path.name}.lock").open("wb")
    with lock:
        with telling(path):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turn what the system says of the file into one clear line."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise DeviceKeyUnusable(f"{path}: {reason}.") from None


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter, unless it is there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
