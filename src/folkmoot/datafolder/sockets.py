"""How the socket of a hub or a proxy is addressed, and where running proxies are found."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from folkmoot.core.errors import ControlError, DataFolderUnwritable

MAX_ADDRESS: Final = 103
"""The longest path every system takes as the address of a socket."""
DESCRIPTORS: Final = Path("/proc/self/fd")

FOLDER_MODE: Final = 0o700
OTHERS: Final = 0o077
MOST_PROXIES: Final = 1_000

_NAME = re.compile(r"proxy-([0-9]{1,10})\.sock")


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address for the socket at a path, however long: through its folder if need be."""
    if len(os.fsencode(path)) <= MAX_ADDRESS:
        yield str(path)
        return
    if not DESCRIPTORS.is_dir():
        raise ControlError(
            f"{path}: is too long for a socket (at most {MAX_ADDRESS} bytes); "
            "use a data folder with a shorter path."
        )
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(DESCRIPTORS / str(folder) / path.name)
    finally:
        os.close(folder)


def runtime_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for sockets: the system's for the user's session, or one in the user's home."""
    environ = os.environ if environ is None else environ
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return Path(runtime) / "folkmoot"
    state = environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "folkmoot" / "run"


def proxy_socket(folder: Path | None = None, pid: int | None = None) -> Path:
    """Where this proxy listens; the folder is made, and refused if others can enter it."""
    folder = runtime_folder() if folder is None else folder
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid == os.geteuid() and status.st_mode & OTHERS:
            folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise DataFolderUnwritable(f"{folder}: cannot be used: {error.strerror}.") from None
    if status.st_uid != os.geteuid():
        raise DataFolderUnwritable(f"{folder}: belongs to another user.")
    return folder / f"proxy-{os.getpid() if pid is None else pid}.sock"


def running_proxies(folder: Path | None = None) -> dict[int, Path]:
    """The sockets of proxies that answer, by process; what others left behind is removed."""
    folder = runtime_folder() if folder is None else folder
    try:
        if folder.stat().st_uid != os.geteuid():
            return {}
        paths = sorted(folder.iterdir())[:MOST_PROXIES]
    except OSError:
        return {}
    found: dict[int, Path] = {}
    for path in paths:
        named = _NAME.fullmatch(path.name)
        if named is not None and _answers(path):
            found[int(named[1])] = path
    return found


def _answers(path: Path) -> bool:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, socket_address(path) as at:
            probe.settimeout(1.0)
            probe.connect(at)
    except ConnectionRefusedError:
        with suppress(OSError):
            path.unlink()
        return False
    except OSError:
        return False
    return True
