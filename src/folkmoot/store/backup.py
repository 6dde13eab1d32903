"""A copy of the database taken while it is in use.

The copy is one view of the database, held by a reading transaction of its own: the writer never
waits for it, and never makes it begin again. Meanwhile the write-ahead log cannot begin anew.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import TypeAlias

import apsw
from msgspec import Struct

from folkmoot.core.errors import BackupFailed, FolkmootError
from folkmoot.store.inspection import find_faults
from folkmoot.store.meta import COPIED_AT
from folkmoot.store.sqlite import SIDE_FILES, connect, run, translate

PAGES_A_STEP = 1_024

NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many pages are copied, and how many there are."""


class Backup(Struct, frozen=True):
    """A backup that was made. It never holds the master key, without which it cannot be read."""

    path: str
    size: int
    master_key_id: str | None


async def back_up(
    source: Path,
    target: Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    vfs: str | None = None,
) -> Backup:
    """Copy a database in a thread; whoever is cancelled leaves nothing behind."""
    loop = asyncio.get_running_loop()
    stop = Event()

    def tell(copied: int, pages: int) -> None:
        if stop.is_set():
            raise BackupFailed("The backup was stopped.")
        if progress is not None:
            loop.call_soon_threadsafe(progress, copied, pages)

    def work() -> Backup:
        return copy_database(source, target, overwrite=overwrite, progress=tell, vfs=vfs)

    copying = loop.run_in_executor(None, work)
    try:
        await asyncio.wait([copying])
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([copying])
        copying.exception()
        raise
    return copying.result()


def copy_database(
    source: Path,
    target: Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    vfs: str | None = None,
) -> Backup:
    """Copy a database into one checked file, which has another name until it is whole; blocks."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        check_target(source, target, overwrite=overwrite)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        copy_pages(source, part, progress, vfs)
        key_id = finish(part)
        publish(part, target, overwrite=overwrite)
        return Backup(str(target), target.stat().st_size, key_id)
    except OSError as error:
        raise BackupFailed(f"{target}: cannot be written: {error.strerror}.") from error
    except apsw.Error as error:
        raise BackupFailed(translate(error, target).message) from error
    except BackupFailed:
        raise
    except FolkmootError as error:
        raise BackupFailed(error.message) from error
    finally:
        for side in ("", *SIDE_FILES, "-journal"):
            with suppress(OSError):
                part.with_name(part.name + side).unlink()


def check_target(source: Path, target: Path, *, overwrite: bool) -> None:
    """Refuse a name that is taken, and the database's own in any case."""
    if target.exists() and source.samefile(target):
        raise BackupFailed(f"{target}: is the database itself.")
    if target.exists() and not overwrite:
        raise BackupFailed(f"{target}: exists already.")


def copy_pages(source: Path, part: Path, progress: Progress | None, vfs: str | None) -> None:
    """Copy one view of the source, a step at a time, so that it can be told of and stopped."""
    with (
        closing(connect(source, read_only=True, vfs=vfs)) as reader,
        closing(apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READWRITE)) as writer,
    ):
        run(reader, "BEGIN")
        run(reader, "SELECT count(*) FROM sqlite_schema")
        with writer.backup("main", reader, "main") as copy:
            while not copy.done:
                copy.step(PAGES_A_STEP)
                if progress is not None:
                    progress(copy.page_count - copy.remaining, copy.page_count)


def finish(part: Path) -> str | None:
    """Make the copy one file, mark it as one, check it and have it on the disk."""
    with closing(apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        run(connection, "PRAGMA journal_mode = DELETE")
        run(
            connection,
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
            (COPIED_AT, str(int(time.time()))),
        )
        rows = run(connection, "SELECT value FROM meta WHERE key = 'master_key_id'")
    if faults := find_faults(part):
        raise BackupFailed(f"The copy is damaged, as the database may be: {faults[0]}")
    sync(part)
    return str(rows[0][0]) if rows else None


def publish(part: Path, target: Path, *, overwrite: bool) -> None:
    """Give the finished copy its name, at once; without `overwrite` only if nobody has taken it."""
    if overwrite:
        part.replace(target)
    else:
        try:
            target.hardlink_to(part)
        except FileExistsError as error:
            raise BackupFailed(f"{target}: exists already.") from error
        except OSError as error:
            if error.errno not in NO_HARD_LINKS or target.exists():
                raise
            part.replace(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
