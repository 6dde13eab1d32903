"""The running hub, as the command line sees it through the control socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from folkmoot.core.errors import CommandFailed

if TYPE_CHECKING:
    from folkmoot.datafolder import Paths

ANSWER_SECONDS = 10.0


class HubStatus(msgspec.Struct, frozen=True):
    """What a hub tells of itself."""

    pid: int
    version: str
    uptime: float
    url: str


def hub_status(paths: Paths) -> HubStatus:
    """Ask the hub on a data folder how it is; raises `HubNotRunning` when there is none."""
    from folkmoot.control import call

    answer = call(paths.control_socket, "status", timeout=ANSWER_SECONDS)
    try:
        return msgspec.convert(answer, HubStatus)
    except msgspec.ValidationError:
        raise CommandFailed("The hub's answer cannot be understood.") from None
