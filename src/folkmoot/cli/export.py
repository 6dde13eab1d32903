"""`folkmoot export`: everything a hub keeps of a person, for them to take away."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from folkmoot.cli.asking import HandleArgument
from folkmoot.cli.opened import opened
from folkmoot.cli.options import ConfigOption, DataOption, settings_from
from folkmoot.cli.output import complain, say
from folkmoot.core.errors import ExportFailed
from folkmoot.datafolder import Paths, running_hub

if TYPE_CHECKING:
    from folkmoot.control.export import Exporter
    from folkmoot.settings import Settings

OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default=False),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.", show_default=False)
]

Told: TypeAlias = Callable[[int, int], None]
"""Told how many conversations are written, and how many there are."""


def export(
    handle: HandleArgument,
    output: OutputOption,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> None:
    """Export everything the hub stores about a person, as JSON.

    For the operator, on the hub's own machine, with or without a running hub. Exports the profile,
    contacts, blocks, invites, all mail (decrypted), their rooms, and their messages in rooms.
    Nothing is marked as read. FILE appears once it is complete, and only you can read it. Give it
    to nobody but that person.
    """
    settings = settings_from(config, data=data).settings
    target = output.expanduser().absolute()
    if target.is_dir():
        raise ExportFailed(f"{target}: is a folder. Give the name of a file.")
    if target.exists() and not overwrite:
        raise ExportFailed(f"{target}: already exists. --overwrite replaces it.")
    paths = Paths(settings.data_folder)
    with progress_bar() as told:
        if running_hub(paths.folder) is None:
            made = asyncio.run(write(settings, handle, target, told, overwrite=overwrite))
        else:
            made = ask_hub(paths, handle, target, told, overwrite=overwrite)
    counted = f"{number(made['messages'], 'message')} in {number(made['threads'], 'conversation')}"
    if made["rooms"]:
        counted += f" and {number(made['said'], 'message')} in {number(made['rooms'], 'room')}"
    say(f"Exported the data of @{made['handle']}, with {counted}, to {target}.")
    complain(
        f"{target} holds decrypted mail. Anyone who can read the file can read it.", kind="warning"
    )


def number(count: int, noun: str) -> str:
    """How many of something."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


async def write(
    settings: Settings, handle: str, target: Path, told: Told, *, overwrite: bool
) -> dict[str, Any]:
    """Write it from the data folder of a hub that does not run."""
    async with exporting(settings) as exporter:
        made = await exporter.export(handle, target, overwrite=overwrite, told=told)
    return made._asdict()


@asynccontextmanager
async def exporting(settings: Settings) -> AsyncIterator[Exporter]:
    """The accounts and the mail of a data folder, taken for this process meanwhile."""
    from folkmoot.accounts import Accounts
    from folkmoot.bus import MemoryBus
    from folkmoot.clock import SystemClock
    from folkmoot.control.export import Exporter
    from folkmoot.mail import Mail

    paths = Paths(settings.data_folder)
    if not paths.database_exists():
        raise ExportFailed(f"{paths.database}: no database yet, so there is nothing to export.")
    async with opened(settings) as (_, store, vault):
        bus, clock = MemoryBus(), SystemClock()
        accounts = Accounts(store, clock, vault, policy="closed")
        await accounts.seal_nicknames()
        yield Exporter(store, clock, accounts, Mail(store, bus, clock, accounts, vault))
        await bus.close()


def ask_hub(
    paths: Paths, handle: str, target: Path, told: Told, *, overwrite: bool
) -> dict[str, Any]:
    """Have the running hub write it."""
    from folkmoot.control import call

    arguments = {"handle": handle, "path": str(target), "overwrite": overwrite}

    def on_progress(progress: dict[str, Any]) -> None:
        told(progress["done"], progress["total"])

    made: dict[str, Any] = call(paths.control_socket, "export", arguments, on_progress=on_progress)
    return made


@contextmanager
def progress_bar() -> Iterator[Told]:
    """A bar on stderr while someone is looking; otherwise nothing."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Exporting", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
