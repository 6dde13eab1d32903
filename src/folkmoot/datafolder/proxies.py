"""The proxies of this user on this machine: their sockets, and where they recorded tapes.

Nothing says where a proxy is but a socket in the user's private folder. The folder and the socket
must be this user's, and nobody else may write there; the proxy, for its part, answers its own user
alone. Each is asked for a short time, all of them at once, and nothing here blocks the loop.

Each place of tapes is remembered in one small file, named by a hash of its path, so that tapes are
found after a proxy has ended. Losing it loses no tape.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import socket
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.datafolder.limits import (
    MAX_PROXIES_ASKED,
    MAX_PROXY_ANSWER,
    MAX_RECORDINGS,
    MAX_SOCKET_ADDRESS,
    PROXY_SECONDS,
)

if TYPE_CHECKING:
    from pathlib import Path


class LocalProxies(Struct, eq=False):
    """The running proxies of this user, by their process ids."""

    folder: Path | None = None

    async def ask_all(self, target: str) -> dict[int, Any]:
        """Ask every proxy the same; one that does not answer is left out."""
        found = await asyncio.to_thread(proxy_sockets, self.folder)
        asked = dict(list(found.items())[:MAX_PROXIES_ASKED])
        answers = await asyncio.gather(
            *(exchange(path, "GET", target) for path in asked.values()), return_exceptions=True
        )
        return {
            pid: answer
            for pid, answer in zip(asked, answers, strict=True)
            if not isinstance(answer, BaseException)
        }

    async def ask(self, pid: int, method: str, target: str, content: Any = None) -> Any:
        """Ask one proxy; its refusal is raised."""
        found = await asyncio.to_thread(proxy_sockets, self.folder)
        if pid not in found:
            raise e.CommandInvalid(f"No proxy of the hub's user runs as process {pid}.")
        return await exchange(found[pid], method, target, content)


async def exchange(socket: Path, method: str, target: str, content: Any = None) -> Any:
    """One request on a Unix socket. Raises `CommandInvalid` where no answer can be had."""
    # It takes a while to import, which programs that ask no proxy need not wait for.
    from folkmoot.mcp.client.target import HttpTarget

    sent = None if content is None else msgspec.json.encode(content)
    headers = {"accept": "application/json"}
    if sent is not None:
        headers["content-type"] = "application/json"
    try:
        with socket_address(socket) as address:
            async with (
                asyncio.timeout(PROXY_SECONDS),
                HttpTarget(f"http://folkmoot{target}", unix=address, described=False) as proxy,
                proxy.ask(method, headers, sent) as answer,
            ):
                body = await limited(answer.chunks())
                status = answer.status
    except (OSError, e.CarryError):
        raise e.CommandInvalid("The proxy has ended, or does not answer.") from None
    return understood(status, body)


async def limited(content: AsyncIterator[bytes]) -> bytes:
    """A body that is not too long."""
    body = bytearray()
    async for part in content:
        body += part
        if len(body) > MAX_PROXY_ANSWER:
            raise e.CommandInvalid(
                f"The proxy's answer is longer than {MAX_PROXY_ANSWER:,} bytes. "
                "Use 'folkmoot proxy held' on its machine."
            )
    return bytes(body)


def understood(status: int, body: bytes) -> Any:
    """The answer; a refusal is raised."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise e.CommandInvalid("The proxy's answer cannot be understood.") from None
    if status < 400:
        return answer
    told = answer.get("error") if isinstance(answer, dict) else None
    message = told.get("message") if isinstance(told, dict) else None
    if status == e.NotFound.http or not isinstance(message, str):
        raise e.CommandInvalid("The proxy is of another version. Restart it.")
    raise e.CommandInvalid(message[:1_000])


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
        raise e.ControlError(
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
        raise e.DataFolderUnwritable(f"{folder}: cannot be used: {error.strerror}.") from None
    if status.st_uid != os.geteuid():
        raise e.DataFolderUnwritable(f"{folder}: belongs to another user.")
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
        for path in sorted(folder.iterdir())[:1_000]:
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
    """Whether a file belongs to this user and nobody else can write to it."""
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


PLACE: Final = re.compile("[0-9a-f]{12}")


def recordings_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder that lists where proxies recorded."""
    return state_folder(environ) / "recordings"


def place_of(path: Path) -> str:
    """A short name for a place."""
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:12]


def remember(path: Path, folder: Path | None = None) -> None:
    """Remember a tape, or a folder of tapes; where that is not possible nothing is remembered."""
    folder = recordings_folder() if folder is None else folder
    with suppress(OSError):
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        mark = folder / place_of(path)
        mark.write_bytes(os.fsencode(path.absolute()))
        # What was there before keeps its time unless something new is written.
        os.utime(mark)
        for old in newest(folder)[MAX_RECORDINGS:]:
            old.unlink()


def recorded(folder: Path | None = None) -> dict[str, Path]:
    """The tapes and folders that are remembered, by their short names, the last used first.

    What another user owns, or could have written, is not one of them.
    """
    folder = recordings_folder() if folder is None else folder
    found: dict[str, Path] = {}
    try:
        if not is_own(folder.stat()):
            return {}
        for mark in newest(folder)[:MAX_RECORDINGS]:
            if not is_own(mark.lstat()):
                continue
            with mark.open("rb") as file:
                path = Path(os.fsdecode(file.read(4_096)))
            if path.is_absolute() and place_of(path) == mark.name:
                found[mark.name] = path
    except (OSError, ValueError):
        return found
    return found


def newest(folder: Path) -> list[Path]:
    """The marks, the last written first."""
    marks = []
    for path in folder.iterdir():
        status = path.lstat()
        if PLACE.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
            marks.append((status.st_mtime_ns, path))
    return [path for _, path in sorted(marks, reverse=True)]
