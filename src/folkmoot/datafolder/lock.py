"""The lock that keeps a second hub from a data folder.

It is the kernel's, on an open file: it ends with the process, however that ends. The file stays, so
that nobody can lock one that another has just removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from pathlib import Path

from folkmoot.core.errors import DataFolderInUse, DataFolderUnwritable
from folkmoot.datafolder.paths import FILE_MODE, Paths

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
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            if attempt + 1 < ATTEMPTS:
                time.sleep(PAUSE)
        except OSError as error:
            os.close(descriptor)
            raise DataFolderUnwritable(
                f"{paths.lock}: cannot be locked: {error.strerror}."
            ) from error
        else:
            return descriptor
    pid = read_pid(descriptor)
    os.close(descriptor)
    holder = f"another hub (process {pid})" if pid else "another hub"
    raise DataFolderInUse(f"{paths.folder}: is in use by {holder}.", pid=pid)


def open_lock(paths: Paths, flags: int) -> int:
    """Open the lock file, which must be a file of the folder's own: nothing else is waited for."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(paths.lock, flags, FILE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is not a file")
    return descriptor


def not_opened(paths: Paths, error: OSError) -> DataFolderUnwritable:
    """The error that says why the lock file cannot be opened."""
    why = "It is a link" if error.errno == errno.ELOOP else error.strerror
    return DataFolderUnwritable(f"{paths.lock}: cannot be opened: {why}.")


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
