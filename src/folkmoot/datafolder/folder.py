"""Taking a data folder for one hub."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Self

from folkmoot.core.errors import DataFolderUnwritable
from folkmoot.datafolder.lock import take_lock
from folkmoot.datafolder.paths import FOLDER_MODE, OTHERS, Paths


class DataFolder:
    """A data folder that is ours: nobody else can read it, and no other hub runs on it."""

    def __init__(self, paths: Paths, lock: int, *, tightened: bool) -> None:
        self.paths = paths
        self.tightened = tightened
        """Whether others could read the folder until it was opened."""
        self._lock: int | None = lock

    @classmethod
    def open(cls, path: Path) -> DataFolder:
        """Make the folder if need be, close it to others, and take it for this process."""
        paths = Paths(path.absolute())
        tightened = make_folder(paths.folder)
        taken = cls(paths, take_lock(paths), tightened=tightened)
        remove_parts(paths)
        return taken

    def close(self) -> None:
        """Let another hub have the folder; safe to call again."""
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_folder(folder: Path) -> bool:
    """Make a folder and its parents with mode 0700; answer whether others had a right to it."""
    try:
        for missing in reversed(
            [parent for parent in (folder, *folder.parents) if not parent.exists()]
        ):
            missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise unusable(folder, "cannot be created", error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise DataFolderUnwritable(f"{folder}: is not a folder.")
    if status.st_uid != os.geteuid():
        # Root is no exception: what it wrote, the folder's owner could not read afterwards.
        raise DataFolderUnwritable(
            f"{folder}: belongs to user {status.st_uid}; run the hub as that user."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataFolderUnwritable(f"{folder}: cannot be written by this user.")
    if not status.st_mode & OTHERS:
        return False
    try:
        folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise unusable(
            folder, "is readable by other users, and its permissions cannot be changed", error
        ) from error
    return True


def remove_parts(paths: Paths) -> None:
    """Remove what a process left that was killed while it made the key; the lock must be held."""
    for part in paths.folder.glob(f".{paths.master_key.name}.*.part"):
        with suppress(OSError):
            part.unlink()


def unusable(folder: Path, what: str, error: OSError) -> DataFolderUnwritable:
    """The error that says what could not be done, to which path, and why."""
    return DataFolderUnwritable(f"{error.filename or folder}: {what}: {error.strerror}.")
