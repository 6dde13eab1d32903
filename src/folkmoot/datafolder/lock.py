"""The lock that keeps a second hub from a data folder.

It is the kernel's, on an open file: it ends with the process, however that ends. The file stays, so
that nobody can lock one that another has just removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
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
        descriptor = os.open(
            paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE
        )
    except OSError as error:
        raise DataFolderUnwritable(f"{paths.lock}: cannot be opened: {error.strerror}.") from error
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
    os.close(descriptor)
    pid = read_pid(paths)
    holder = f"another hub (process {pid})" if pid else "another hub"
    raise DataFolderInUse(f"{paths.folder}: is in use by {holder}.", pid=pid)


def read_pid(paths: Paths) -> int | None:
    """The process id in the lock file, if there is one."""
    try:
        text = paths.lock.read_text(encoding="ascii", errors="replace")[:20].strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def running_hub(path: Path) -> int | None:
    """The process id of the hub that runs on a folder; 0 if it runs and its id is not known."""
    paths = Paths(path)
    try:
        descriptor = os.open(paths.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return (read_pid(paths) or 0) if error.errno in {errno.EAGAIN, errno.EACCES} else None
    finally:
        os.close(descriptor)
    return None
