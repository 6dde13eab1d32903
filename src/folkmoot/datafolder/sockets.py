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
from folkmoot.datafolder.limits import MAX_PROXY_SOCKETS, MAX_SOCKET_ADDRESS

DESCRIPTORS: Final = Path("/proc/self/fd")

FOLDER_MODE: Final = 0o700
OTHERS: Final = 0o077
OTHERS_WRITE: Final = 0o022

_NAME = re.compile(r"proxy-([0-9]{1,10})\.sock")


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address for the socket at a path, however long: through its folder if need be."""
    if len(os.fsencode(path)) <= MAX_SOCKET_ADDRESS:
        yield str(path)
        return
    if not DESCRIPTORS.is_dir():
        raise ControlError(
            f"{path}: is too long for a socket (at most {MAX_SOCKET_ADDRESS} bytes); "
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
    return state_folder(environ) / "run"


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for what programs of this user remember."""
    environ = os.environ if environ is None else environ
    state = environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "folkmoot"


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
    return {pid: path for pid, path in proxy_sockets(folder).items() if _answers(path)}


def proxy_sockets(folder: Path | None = None) -> dict[int, Path]:
    """The sockets of this user's proxies, by process, whether they answer or not.

    A folder that another user owns, or can write to, has none; nor is another user's socket one.
    """
    folder = runtime_folder() if folder is None else folder
    found: dict[int, Path] = {}
    try:
        if not is_own(folder.stat()):
            return {}
        for path in sorted(folder.iterdir())[:MAX_PROXY_SOCKETS]:
            named = _NAME.fullmatch(path.name)
            if (
                named is not None
                and is_own(status := path.lstat())
                and stat.S_ISSOCK(status.st_mode)
            ):
                found[int(named[1])] = path
    except OSError:
        # Another process may have removed one of them meanwhile.
        return found
    return found


def is_own(status: os.stat_result) -> bool:
    """Whether something is this user's, and nobody else can write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE


def _answers(path: Path) -> bool:
    try:
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
