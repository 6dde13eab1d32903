"""`folkmoot status`: the running hub, in a few lines."""

from __future__ import annotations

from typing import Annotated

import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, settings_from
from folkmoot.cli.output import aligned, duration, say, say_json, size
from folkmoot.cli.running import ask_hub, hub_status
from folkmoot.datafolder import Paths

NAMES = {"mail": "Mail", "rooms": "Rooms", "memory_rooms": "Rooms in memory"}


def amount(used: int, limit: int) -> str:
    """How much of a quota is used."""
    return f"{size(used)} of {size(limit)}" if limit else size(used)


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
        report = ask_hub(paths, "health", dict)
        say_json(report)
        if report.get("status") != "ready":
            raise typer.Exit(ExitCode.FAILED)
        return
    if metrics:
        say(str(ask_hub(paths, "metrics", dict).get("text", "")).rstrip())
        return
    if as_json:
        say_json(
            {
                "url": hub.url,
                "version": hub.version,
                "pid": hub.pid,
                "uptime": hub.uptime,
                "data": str(paths.folder),
                "quotas": {
                    what: {"used": used, "limit": limit}
                    for what, (used, limit) in hub.quotas.items()
                },
            }
        )
        return
    rows = [
        ("Running at", hub.url),
        ("Version", hub.version),
        ("Process", str(hub.pid)),
        ("Up", duration(hub.uptime)),
        ("Data in", str(paths.folder)),
        *((NAMES.get(what, what), amount(*use)) for what, use in hub.quotas.items()),
    ]
    for line in aligned(rows):
        say(line)
