"""The running hub, as the command line sees it through the control socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from folkmoot.core.errors import CommandFailed, DataFolderUnwritable

if TYPE_CHECKING:
    from folkmoot.datafolder import Paths

ANSWER_SECONDS = 10.0
CENTURIES = 1e11
"""More seconds than any hub is up."""

Answer = TypeVar("Answer")


class HubStatus(msgspec.Struct, frozen=True):
    """What a hub tells of itself."""

    pid: int
    version: str
    uptime: Annotated[float, Meta(ge=0, le=CENTURIES)]
    url: str
    quotas: dict[str, tuple[int, int]] = {}
    """What the hub stores and holds, by what it is, and the most of it; 0 is no limit."""


class HubCheck(msgspec.Struct, frozen=True):
    """What one check of a hub found."""

    ok: bool
    error: str = ""


class HubReport(msgspec.Struct, frozen=True):
    """Whether a hub is ready."""

    status: str
    checks: dict[str, HubCheck]


def hub_status(paths: Paths) -> HubStatus:
    """Ask the hub on a data folder how it is; raises `HubNotRunning` when there is none."""
    return ask_hub(paths, "status", HubStatus)


def ask_hub(paths: Paths, command: str, shape: type[Answer]) -> Answer:
    """Ask the hub on a data folder something; raises `HubNotRunning` when there is none."""
    from folkmoot.control import call

    check_entry(paths)
    return understood(call(paths.control_socket, command, timeout=ANSWER_SECONDS), shape)


def check_entry(paths: Paths) -> None:
    """Refuse a folder we may not look into: whether a hub runs there cannot be told."""
    try:
        paths.control_socket.lstat()
    except PermissionError as error:
        raise DataFolderUnwritable(
            f"{paths.folder}: this user may not open it. Run the command as its owner."
        ) from error
    except OSError:
        return


def understood(answer: Any, shape: type[Answer]) -> Answer:
    """A hub's answer in the shape it must have."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError:
        raise CommandFailed("The hub's answer cannot be understood.") from None
