"""`folkmoot backup`: one file that holds the database, taken while the hub runs or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from folkmoot.cli.operator import OnProgress, Operated, understood
from folkmoot.cli.options import ConfigOption, DataOption
from folkmoot.cli.output import complain, say, size
from folkmoot.core.errors import BackupFailed
from folkmoot.telemetry.redaction import visible

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The file to write.", show_default=False)
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.", show_default=False)
]


def backup(
    file: FileArgument,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> None:
    """Back up the database to FILE.

    Works with or without a running hub, which keeps working. FILE appears once it is complete and
    checked, and only you can read it. The master key is NOT in it: keep a copy of the key in
    another place, because the backup cannot be used without it.
    """
    from folkmoot.operations.operator.data import BackedUp
    from folkmoot.store import check_target

    hub = Operated(config, data)
    target = file.absolute()
    check_target(hub.paths.database, target, overwrite=overwrite)
    hub.require_database("so there is nothing to back up.", BackupFailed)
    wanted = {"path": str(target), "overwrite": overwrite}
    with progress_bar("Backing up", "copied", "pages") as told:
        made = understood(hub.ask("folkmoot/backup", wanted, on_progress=told), BackedUp)
    say(f"Backed up {size(made.size)} to {visible(made.path)}.")
    complain(made.warning, kind="warning")


@contextmanager
def progress_bar(doing: str, done: str, total: str) -> Iterator[OnProgress]:
    """A bar on stderr while someone is looking; otherwise nothing.

    `done` and `total` are the members of what is told that it shows.
    """
    if not sys.stderr.isatty():
        yield lambda _so_far: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda so_far: bar.update(
            task, completed=so_far.get(done, 0), total=so_far.get(total) or None
        )
