"""Putting a restored database in the place of another, which is kept."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import closing, suppress
from pathlib import Path

import apsw

from folkmoot.core import errors as e
from folkmoot.store.backup import NO_HARD_LINKS, sync
from folkmoot.store.inspection import find_faults
from folkmoot.store.sqlite import JOURNAL, SIDE_FILES, connect, keep_one_file

SIDES = ("", *SIDE_FILES, JOURNAL)


def put_in_place(staged: Path, database: Path) -> Path | None:
    """Give a whole database the name of the present one, and answer where that is kept, if it was.

    Nobody may have either open. Whenever it is interrupted, the present one is under its own name
    or under the one it is kept by, and the new one is whole.
    """
    try:
        kept = keep(database) if database.exists() else None
        # What is left of the old one's log would be read as the new one's.
        for side in SIDES[1:]:
            beside(database, side).unlink(missing_ok=True)
        staged.replace(database)
        sync(database.parent)
    except OSError as error:
        raise e.RestoreFailed(f"{database}: cannot be replaced: {error.strerror}.") from error
    return kept


def keep(database: Path) -> Path:
    """Give a database, and what SQLite left beside it, a second name that is free."""
    gather(database)
    kept = free_name(database)
    for side in SIDES:
        if beside(database, side).exists():
            link(beside(database, side), beside(kept, side))
    sync(database.parent)
    return kept


def gather(database: Path) -> None:
    """Make a database one file; a damaged one is left untouched."""
    if any(beside(database, side).exists() for side in SIDES[1:]) and not find_faults(database):
        with suppress(apsw.Error, e.FolkmootError), closing(connect(database)) as connection:
            keep_one_file(connection)


def remove_database(database: Path) -> None:
    """Remove a closed database with SQLite's side files, as far as possible."""
    for side in SIDES:
        with suppress(OSError):
            beside(database, side).unlink()


def free_name(database: Path) -> Path:
    """A name for the database as it was, which nothing has."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        kept = database.with_name(f"{database.name}.{stamp}{f'-{number}' if number else ''}.old")
        if not any(os.path.lexists(beside(kept, side)) for side in SIDES):
            return kept
    raise e.RestoreFailed(f"{database}: no name is free to keep it by.")


def link(file: Path, name: Path) -> None:
    """Give a file a second name, or copy it where files have one name alone."""
    try:
        name.hardlink_to(file)
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        shutil.copy2(file, name)
        sync(name)


def beside(file: Path, side: str) -> Path:
    """A file that SQLite keeps beside a database."""
    return file.with_name(file.name + side)
