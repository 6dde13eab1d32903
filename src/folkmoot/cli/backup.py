"""`folkmoot backup`: one file that holds the database, taken while the hub runs or not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from msgspec import Meta, Struct

from folkmoot.cli.options import ConfigOption, DataOption, settings_from
from folkmoot.cli.output import complain, say, size
from folkmoot.cli.running import check_entry, understood
from folkmoot.core.errors import BackupFailed
from folkmoot.datafolder import Paths, running_hub
from folkmoot.telemetry.clean import visible

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The file to write.", show_default=False)
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.", show_default=False)
]

Count: TypeAlias = Annotated[int, Meta(ge=0)]


class Made(Struct, frozen=True):
    """A backup that was made, and what whoever keeps it must know."""

    path: str
    size: Count
    warning: str


class Step(Struct, frozen=True):
    """How far a backup is."""

    copied: Count
    pages: Count


Advance: TypeAlias = Callable[[int, int], None]
"""Told how many pages are copied, and how many there are."""


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
    from folkmoot.store import check_target

    paths = Paths(settings_from(config, data=data).settings.data_folder)
    check_entry(paths)
    target = file.absolute()
    check_target(paths.database, target, overwrite=overwrite)
    with progress_bar() as advance:
        if running_hub(paths.folder) is None:
            made = copy(paths, target, advance, overwrite=overwrite)
        else:
            made = ask_hub(paths, target, advance, overwrite=overwrite)
    say(f"Backed up {size(made.size)} to {visible(made.path)}.")
    complain(made.warning, kind="warning")


def copy(paths: Paths, target: Path, advance: Advance, *, overwrite: bool) -> Made:
    """Copy the database of a hub that does not run."""
    from folkmoot.control.commands import key_warning
    from folkmoot.store import copy_database

    if not paths.database_exists():
        raise BackupFailed(f"{paths.database}: no database yet, so there is nothing to back up.")
    made = copy_database(paths.database, target, overwrite=overwrite, progress=advance)
    return Made(made.path, made.size, key_warning(made.master_key_id))


def ask_hub(paths: Paths, target: Path, advance: Advance, *, overwrite: bool) -> Made:
    """Have the running hub copy its database."""
    from folkmoot.control import call

    arguments = {"path": str(target), "overwrite": overwrite}

    def told(progress: dict[str, Any]) -> None:
        step = understood(progress, Step)
        advance(step.copied, step.pages)

    return understood(call(paths.control_socket, "backup", arguments, on_progress=told), Made)


@contextmanager
def progress_bar() -> Iterator[Advance]:
    """A bar on stderr while someone is looking; otherwise nothing."""
    if not sys.stderr.isatty():
        yield lambda _copied, _pages: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Backing up", total=None)
        yield lambda copied, pages: bar.update(task, completed=copied, total=pages)
