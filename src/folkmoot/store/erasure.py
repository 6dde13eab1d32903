"""Erasure: what was deleted cannot be found in the files of the database.

SQLite overwrites what is deleted (`secure_delete`, see `sqlite.py`), and the writer empties the
write-ahead log soon after. Here is what is left: databases that were in use before that was so.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from contextlib import closing, suppress
from pathlib import Path

import apsw

from folkmoot.store.sqlite import PRIVATE, run, translate

LOG = logging.getLogger(__name__)

UNUSED_SPACE = "unused_space"
"""What `meta` says of the unused space of a database from before: when it was cleaned."""
TO_BE_CLEANED = "to be cleaned"

LATER = "What was deleted before this version is still in the database file's unused space. %s"


def clean_once(connection: apsw.Connection, path: Path) -> None:
    """Rewrite a database that was in use before deleted content was overwritten; blocks.

    Afterwards no unused space is left in it. It needs as much room on the disk as the database
    takes, twice. If it fails the database is as it was, and the next start tries again.
    """
    copy = path.with_name(path.name + ".cleaned")
    copy.unlink(missing_ok=True)
    due = run(connection, "SELECT value FROM meta WHERE key = ?", (UNUSED_SPACE,))
    if due != [(TO_BE_CLEANED,)]:
        return
    size = path.stat().st_size
    if shutil.disk_usage(path.parent).free < 2 * size:
        LOG.warning(LATER, f"To clean it, make {2 * size:,} bytes of room on the disk and restart.")
        return
    LOG.info("rewriting the database without what was deleted", extra={"bytes": size})
    try:
        rewrite(connection, copy)
    except (apsw.Error, OSError) as error:
        said = translate(error).message if isinstance(error, apsw.Error) else error.strerror
        LOG.warning(LATER, f"It could not be cleaned, and will be at the next start: {said}")
    finally:
        with suppress(OSError):
            copy.unlink(missing_ok=True)


def rewrite(connection: apsw.Connection, copy: Path) -> None:
    """Replace every page of a database by those of a copy that has what is in use alone."""
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
    run(connection, "VACUUM INTO ?", (str(copy),))
    with closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)) as source:
        run(source, "PRAGMA journal_mode = MEMORY")
        run(
            source,
            "UPDATE meta SET value = ? WHERE key = ?",
            (str(int(time.time())), UNUSED_SPACE),
        )
        with connection.backup("main", source, "main") as pages:
            pages.step()
