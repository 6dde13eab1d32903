"""`folkmoot backup`: one file that holds the database, taken while the hub runs or not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from folkmoot.cli.options import ConfigOption, DataOption, settings_from
from folkmoot.cli.output import complain, say, size
from folkmoot.core.errors import BackupFailed
from folkmoot.datafolder import Paths, running_hub

if TYPE_CHECKING:
    from folkmoot.settings import Settings

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Where the backup goes.", show_default=False)
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.", show_default=False)
]

Advance: TypeAlias = Callable[[int, int], None]
"""Told how many pages are copied, and how many there are."""


def backup(
    file: FileArgument,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> None:
    """Copy the database into FILE, whether a hub runs or not.

    The hub goes on working meanwhile. FILE appears when it is whole and checked, readable by you
    alone. The master key is NOT in it: keep a copy of the key in another place, for the backup
    cannot be used without it.
    """
    settings = settings_from(config, data=data).settings
    paths = Paths(settings.data_folder)
    target = file.absolute()
    check_target(target, overwrite=overwrite)
    with progress_bar() as advance:
        if running_hub(paths.folder) is None:
            made = copy(paths, target, advance, overwrite=overwrite)
        else:
            made = ask_hub(paths, target, advance, overwrite=overwrite)
    say(f"Backed up {size(made['size'])} to {made['path']}.")
    complain(key_warning(settings, paths, made["master_key_id"]), kind="warning")


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse early, and in words that name the option, what would be refused later."""
    if target.is_dir():
        raise BackupFailed(f"{target}: is a folder; name a file in it.")
    if target.exists() and not overwrite:
        raise BackupFailed(f"{target}: exists already; --overwrite replaces it.")


def copy(paths: Paths, target: Path, advance: Advance, *, overwrite: bool) -> dict[str, Any]:
    """Copy the database of a hub that does not run."""
    from folkmoot.store.backup import copy_database

    if not paths.database_exists():
        raise BackupFailed(f"{paths.database}: there is no database yet, so nothing to back up.")
    made = copy_database(paths.database, target, overwrite=overwrite, progress=advance)
    return {"path": made.path, "size": made.size, "master_key_id": made.master_key_id}


def ask_hub(paths: Paths, target: Path, advance: Advance, *, overwrite: bool) -> dict[str, Any]:
    """Have the running hub copy its database."""
    from folkmoot.control import call

    arguments = {"path": str(target), "overwrite": overwrite}

    def told(progress: dict[str, Any]) -> None:
        advance(progress["copied"], progress["pages"])

    made: dict[str, Any] = call(paths.control_socket, "backup", arguments, on_progress=told)
    return made


def key_warning(settings: Settings, paths: Paths, key_id: str | None) -> str:
    """What whoever keeps a backup must know: the key is elsewhere, and where."""
    named = f" (id {key_id})" if key_id else ""
    if not settings.master_key and paths.master_key.exists():
        where = f"Keep a copy of {paths.master_key} in another place."
    else:
        where = "It comes from FOLKMOOT_MASTER_KEY: keep a copy of it in another place."
    return f"the master key{named} is NOT in the backup, which cannot be used without it.\n{where}"


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
