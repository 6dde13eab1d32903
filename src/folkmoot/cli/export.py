"""`folkmoot export`: everything a hub keeps of a person, for them to take away."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated

import typer

from folkmoot.cli.asking import AsOption, HandleArgument, UrlOption, signed_in
from folkmoot.cli.backup import progress_bar
from folkmoot.cli.operator import Operated
from folkmoot.cli.options import ConfigOption, DataOption
from folkmoot.cli.output import complain, say
from folkmoot.core.errors import ExportFailed

OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default=False),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.", show_default=False)
]


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
    hub = Operated(config, data)
    target = output.expanduser().absolute()
    if target.is_dir():
        raise ExportFailed(f"{target}: is a folder. Give the name of a file.")
    if target.exists() and not overwrite:
        raise ExportFailed(f"{target}: already exists. --overwrite replaces it.")
    hub.require_database("so there is nothing to export.", ExportFailed)
    wanted = {"handle": handle, "path": str(target), "overwrite": overwrite}
    with progress_bar("Exporting", "done", "total") as told:
        made = hub.ask("folkmoot/export_person", wanted, on_progress=told)
    counted = f"{number(made['messages'], 'message')} in {number(made['threads'], 'conversation')}"
    if made["rooms"]:
        counted += f" and {number(made['said'], 'message')} in {number(made['rooms'], 'room')}"
    say(f"Exported the data of @{made['handle']}, with {counted}, to {target}.")
    complain(
        f"{target} holds decrypted mail. Anyone who can read the file can read it.", kind="warning"
    )


def export_own(
    output: OutputOption,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> None:
    """Download everything the hub stores about you, as JSON.

    That is your profile, contacts, blocks, invites and rooms, all your mail (decrypted), and your
    messages in rooms. Nothing is marked as read. Only you can read FILE.
    """
    hub, _ = signed_in(url, handle)
    target = output.expanduser().absolute()
    if target.exists() and not overwrite:
        raise ExportFailed(f"{target}: already exists. --overwrite replaces it.")
    try:
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as part:
            try:
                hub.export_me(part)
                Path(part.name).replace(target)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise ExportFailed(f"{target}: {(error.strerror or 'unwritable').lower()}.") from None
    say(f"Exported your data to {target}.")
    complain(
        f"{target} holds decrypted mail. Anyone who can read the file can read it.", kind="warning"
    )


def number(count: int, noun: str) -> str:
    """How many of something."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
