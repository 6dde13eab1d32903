"""A hub's data folder: the paths in it, and the lock that keeps a second hub out.

The lock is the kernel's, on an open file: it ends with the process, however that ends. The file
stays, unless the folder is removed with it; nobody takes a lock on a file that is gone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

from folkmoot.core import errors as e


class DataFolder(Struct, eq=False):
    """A locked data folder: private to this user, and used by this hub alone."""

    paths: Paths
    lock: int | None
    tightened: bool
    """Whether others could read the folder until it was opened."""
    made: Sequence[Path] = ()

    @classmethod
    def open(cls, path: Path) -> DataFolder:
        """Create the folder if needed, make it private, and lock it for this process."""
        paths = Paths(path.absolute())
        made = missing_folders(paths.folder)
        tightened = make_folder(paths.folder)
        taken = cls(paths, take_lock(paths), tightened=tightened, made=made)
        remove_parts(paths)
        return taken

    def close(self) -> None:
        """Let another hub have the folder; safe to call again.

        A folder that was made in vain, since nothing was put into it, is removed.
        """
        if self.lock is not None:
            os.ftruncate(self.lock, 0)
            with suppress(OSError):
                if self.made and list(self.paths.folder.iterdir()) == [self.paths.lock]:
                    self.paths.lock.unlink()
                    for folder in self.made:
                        folder.rmdir()
            os.close(self.lock)
            self.lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def missing_folders(folder: Path) -> list[Path]:
    """The folder and its parents, as far as they do not exist; the innermost comes first."""
    try:
        return [each for each in (folder, *folder.parents) if not each.exists()]
    except OSError as error:
        raise unusable(folder, "cannot be created", error) from error


def make_folder(folder: Path) -> bool:
    """Make a folder and its parents with mode 0700; answer whether others had a right to it."""
    try:
        for missing in reversed(missing_folders(folder)):
            missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise unusable(folder, "cannot be created", error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise e.DataFolderUnwritable(f"{folder}: is not a folder.")
    if status.st_uid != os.geteuid():
        # Root is no exception: what it wrote, the folder's owner could not read afterwards.
        raise e.DataFolderUnwritable(
            f"{folder}: belongs to user {status.st_uid}; run the hub as that user."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise e.DataFolderUnwritable(f"{folder}: cannot be written by this user.")
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


def unusable(folder: Path, what: str, error: OSError) -> e.DataFolderUnwritable:
    """The error that says what could not be done, to which path, and why."""
    return e.DataFolderUnwritable(f"{error.filename or folder}: {what}: {error.strerror}.")


FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS = 0o077
"""The rights that nobody but the owner needs."""


class Paths(Struct, frozen=True):
    """The names of things in a data folder, whether they are there or not."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "folkmoot.db"

    @property
    def master_key(self) -> Path:
        """The file of the master key."""
        return self.folder / "master.key"

    @property
    def control_socket(self) -> Path:
        """Where a running hub takes its operator's commands."""
        return self.folder / "control.sock"

    @property
    def lock(self) -> Path:
        """What a running hub holds; it names the hub's process."""
        return self.folder / "hub.lock"

    def database_exists(self) -> bool:
        """Whether there is a database; an empty file is none, and what is no file is refused."""
        try:
            status = self.database.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise e.DataFolderUnwritable(
                f"{self.database}: cannot be examined: {error.strerror}."
            ) from error
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file"
            raise e.DataFolderUnwritable(f"{self.database}: is {what}, not a database file.")
        return status.st_size > 0


ATTEMPTS = 5
PAUSE = 0.05


def take_lock(paths: Paths) -> int:
    """Take the folder's lock for as long as the descriptor is open, and put our process id in.

    The lock is tried a few times: someone may be looking at it for a moment.
    """
    try:
        descriptor = open_lock(paths, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise not_opened(paths, error) from error
    for attempt in range(ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(descriptor).st_nlink:
                os.close(descriptor)
                raise e.DataFolderInUse(f"{paths.folder}: was just removed by another hub.")
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            if attempt + 1 < ATTEMPTS:
                time.sleep(PAUSE)
        except OSError as error:
            os.close(descriptor)
            raise e.DataFolderUnwritable(
                f"{paths.lock}: cannot be locked: {error.strerror}."
            ) from error
        else:
            return descriptor
    pid = read_pid(descriptor)
    os.close(descriptor)
    holder = f"another hub (process {pid})" if pid else "another hub"
    raise e.DataFolderInUse(f"{paths.folder}: is in use by {holder}.", pid=pid)


def open_lock(paths: Paths, flags: int) -> int:
    """Open the lock file, which must be a file of the folder's own: nothing else is waited for."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(paths.lock, flags, FILE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is not a file")
    return descriptor


def not_opened(paths: Paths, error: OSError) -> e.DataFolderUnwritable:
    """The error that says why the lock file cannot be opened."""
    why = "It is a link" if error.errno == errno.ELOOP else error.strerror
    return e.DataFolderUnwritable(f"{paths.lock}: cannot be opened: {why}.")


def read_pid(descriptor: int) -> int | None:
    """The process id in the lock file, if there is one."""
    try:
        text = os.pread(descriptor, 20, 0).decode("ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def running_hub(path: Path) -> int | None:
    """The process id of the hub that runs on a folder; 0 if it runs and its id is not known.

    Raises `DataFolderUnwritable` when the lock file is none, or may not be looked at.
    """
    paths = Paths(path)
    try:
        descriptor = open_lock(paths, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise not_opened(paths, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return (read_pid(descriptor) or 0) if error.errno in {errno.EAGAIN, errno.EACCES} else None
    finally:
        os.close(descriptor)
    return None
