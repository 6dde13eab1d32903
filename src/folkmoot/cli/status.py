"""`folkmoot status`: the running hub, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.operator import ask_running, decoded, read_socket, understood
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, settings_from
from folkmoot.cli.output import aligned, duration, say, say_json, size
from folkmoot.datafolder import Paths

if TYPE_CHECKING:
    from folkmoot.operations.operator.hub import HubStatus

READY = 200
NAMES = {"mail": "Mail", "rooms": "Rooms", "memory_rooms": "Rooms in memory"}


def amount(used: int, limit: int) -> str:
    """How much of a quota is used."""
    return f"{size(used)} of {size(limit)}" if limit else size(used)


def hub_status(paths: Paths) -> HubStatus:
    """How the hub on a data folder is; raises `HubNotRunning` when there is none."""
    from folkmoot.operations.operator.hub import HubStatus

    return understood(ask_running(paths, "folkmoot/status"), HubStatus)


def status(
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
    ready: Annotated[
        bool,
        typer.Option("--ready", help="Print what /health/ready reports to operators, as JSON."),
    ] = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print the metrics that /metrics serves.")
    ] = False,
) -> None:
    """Show whether a hub is running, and where.

    The exit code is 6 when none is running on the data folder; with --ready, 1 when it is not
    ready.
    """
    paths = Paths(settings_from(config, data=data).settings.data_folder)
    hub = hub_status(paths)
    if ready:
        code, body = read_socket(paths.control_socket, "/health/ready")
        say_json(decoded(body))
        if code != READY:
            raise typer.Exit(ExitCode.FAILED)
        return
    if metrics:
        _, body = read_socket(paths.control_socket, "/metrics")
        say(body.decode(errors="replace").rstrip())
        return
    if as_json:
        say_json(
            {
                "url": hub.url,
                "version": hub.version,
                "pid": hub.pid,
                "uptime": hub.uptime,
                "data": str(paths.folder),
                "quotas": hub.quotas,
            }
        )
        return
    rows = [
        ("Running at", hub.url),
        ("Version", hub.version),
        ("Process", str(hub.pid)),
        ("Up", duration(hub.uptime)),
        ("Data in", str(paths.folder)),
        *((NAMES.get(what, what), amount(use.used, use.limit)) for what, use in hub.quotas.items()),
    ]
    for line in aligned(rows):
        say(line)
