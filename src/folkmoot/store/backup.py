"""A copy of the database taken while it is in use.

The copy is one view of the database, held by a reading transaction of its own: the writer never
waits for it, and never makes it begin again. Meanwhile the write-ahead log cannot begin anew.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

import apsw

from folkmoot.core import errors as e
from folkmoot.core.ports import Backup, Progress
from folkmoot.store.inspection import find_faults, is_at_rest, look_into
from folkmoot.store.meta import COPIED_AT
from folkmoot.store.sqlite import (
    JOURNAL,
    SIDE_FILES,
    keep_one_file,
    run,
    take_view,
    translate,
)
from folkmoot.store.target import check_target, taken
from folkmoot.store.tx import BEGIN

PAGES_A_STEP = 1_024

NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


def copy_database(
    source: Path,
    target: Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    vfs: str | None = None,
    stop: Event | None = None,
) -> Backup:
    """Copy a database into one checked file, which has another name until it is whole; blocks.

    Setting `stop` ends it with an error, and nothing is left behind.
    """
    stop = stop or Event()
    check_target(source, target, overwrite=overwrite)
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        copy_view(source, part, tell_unless_stopped(progress, stop), vfs)
        key_id = finish(part, stop)
        go_on_unless(stop)
        publish(part, target, overwrite=overwrite)
        return Backup(str(target), target.stat().st_size, key_id)
    except OSError as error:
        raise e.BackupFailed(f"{target}: cannot be written: {error.strerror}.") from error
    except apsw.Error as error:
        raise e.BackupFailed(translate(error, target).message) from error
    except e.BackupFailed:
        raise
    except e.FolkmootError as error:
        raise e.BackupFailed(error.message) from error
    finally:
        for side in ("", *SIDE_FILES, JOURNAL):
            with suppress(OSError):
                part.with_name(part.name + side).unlink()


def go_on_unless(stop: Event) -> None:
    """Raise if whoever asked for the backup wants it no more."""
    if stop.is_set():
        raise e.BackupFailed("The backup was stopped.")


def tell_unless_stopped(progress: Progress | None, stop: Event) -> Progress:
    """Progress that is told, and raises once the backup is to stop."""

    def tell(copied: int, pages: int) -> None:
        go_on_unless(stop)
        if progress is not None:
            progress(copied, pages)

    return tell


def copy_view(source: Path, part: Path, progress: Progress, vfs: str | None) -> None:
    """Copy one view of the source; again, if a closed database was opened meanwhile."""
    while True:
        at_rest = is_at_rest(source, vfs)
        before = source.stat()
        copy_pages(source, part, progress, vfs)
        after = source.stat()
        same = (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
        if not at_rest or (same and is_at_rest(source, vfs)):
            return


def copy_pages(source: Path, part: Path, progress: Progress, vfs: str | None) -> None:
    """Copy one view of the source, a step at a time, so that it can be told of and stopped."""
    with (
        closing(look_into(source, vfs)) as reader,
        closing(apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READWRITE)) as writer,
    ):
        reader.execute(BEGIN)
        take_view(reader)
        with writer.backup("main", reader, "main") as copy:
            while not copy.done:
                copy.step(PAGES_A_STEP)
                progress(copy.page_count - copy.remaining, copy.page_count)


def finish(part: Path, stop: Event) -> str | None:
    """Make the copy one file, mark it as a backup, check it and sync it."""
    with closing(apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        keep_one_file(connection)
        run(
            connection,
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
            (COPIED_AT, str(int(time.time()))),
        )
        rows = run(connection, "SELECT value FROM meta WHERE key = 'master_key_id'")
    if faults := find_faults(part, stop=stop):
        raise e.BackupFailed(f"The copy is damaged, as the database may be: {faults[0]}")
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
            raise taken(target) from error
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
