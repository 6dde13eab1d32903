"""Where a backup may go: never onto anything but a plain file that is nobody's."""

from __future__ import annotations

import stat
from pathlib import Path

from folkmoot.core import errors as e
from folkmoot.store.sqlite import JOURNAL, SIDE_FILES

NEIGHBOURS = ("master.key", "hub.lock", "control.sock", "config.toml")
"""What a data folder holds beside its database."""
OLD_KEYS = "master.key.*.old"
"""Keys that were in use before, kept for the backups made with them."""


def check_target(source: Path, target: Path, *, overwrite: bool) -> None:
    """Refuse a name that cannot be had, is taken, or is one of the data folder's own."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        mode = None
    except ValueError as error:
        raise e.BackupFailed("The path of a backup may not hold a NUL.") from error
    except OSError as error:
        raise e.BackupFailed(f"{target}: cannot be written: {error.strerror}.") from error
    if (mode is not None and stat.S_ISDIR(mode)) or not target.name:
        raise e.BackupFailed(f"{target}: is a folder. Give the name of a file.")
    for own in own_files(source):
        if is_same(own, target):
            raise e.BackupFailed(f"{target}: is a file of the data folder itself ({own.name}).")
    if mode is None:
        return
    if not overwrite:
        raise taken(target)
    if not stat.S_ISREG(mode):
        raise e.BackupFailed(f"{target}: is not a regular file, so it is not replaced.")


def taken(target: Path) -> e.BackupFailed:
    """The error for a name already in use."""
    return e.BackupFailed(f"{target}: already exists. --overwrite replaces it.")


def own_files(source: Path) -> list[Path]:
    """The database, what SQLite may keep beside it, and what the hub does."""
    sides = [source.name + side for side in ("", *SIDE_FILES, JOURNAL)]
    names = [source.with_name(name) for name in (*sides, *NEIGHBOURS)]
    return names + sorted(source.parent.glob(OLD_KEYS))


def is_same(own: Path, target: Path) -> bool:
    """Whether two names are one file, also when there is none yet."""
    try:
        return own.samefile(target)
    except OSError:
        return own.name == target.name and own.parent.resolve() == target.parent.resolve()
