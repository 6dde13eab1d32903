"""`folkmoot keys`: how the master key is changed."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.commands import Output, Warned, group, with_json_option
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import ConfigOption, DataOption, flag, option, settings_from
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.operations.operator.data import RotatedKey

NO_KEY = "so it has no key."
STANDARD_INPUT = "-"

FromOption = Annotated[
    str | None,
    option(
        "--from", "FILE",
        "Read the new key from FILE, or with - from the standard input.  [default: generate one]",
    ),
]  # fmt: skip
ToOption = Annotated[
    Path | None,
    option("--to", "FILE", "Write a copy of the new key to FILE, which must not exist."),
]
KeepOption = Annotated[
    Path | None,
    option(
        "--keep-old", "FILE",
        "Keep the old key in FILE.  [default: master.key.ID.old in the data folder]",
    ),
]  # fmt: skip
DiscardOption = Annotated[
    bool,
    flag(
        "--discard-old",
        "Keep no copy of the old key: without your own copy, backups made with it are lost.",
    ),
]
CancelOption = Annotated[bool, flag("--cancel", "Cancel a pending rotation.")]

app = group({}, "Change the master key.")


@app.command("create")
@with_json_option
def create(data: DataOption = None, config: ConfigOption = None) -> Output:
    """Create a master key in the data folder.

    A hub with its database in the data folder does this by itself at its first start. Hubs of one
    PostgreSQL database share one key: create it once, and copy it to each data folder.
    """
    from folkmoot.datafolder import DataFolder, Paths
    from folkmoot.keys import KEY_VARIABLE, fresh_key, put_key

    settings = settings_from(config, data=data).settings
    paths = Paths(settings.data_folder)
    if settings.master_key:
        raise e.CommandFailed(f"The hub gets its master key from {KEY_VARIABLE}. None was created.")
    with DataFolder.open(paths.folder):
        if paths.database_exists():
            raise e.CommandFailed(f"{paths.database}: has a master key already. None was created.")
        key = fresh_key()
        put_key(paths.master_key, key)
    return Output(
        {"id": key.id, "path": str(paths.master_key)},
        f"Created the master key {key.id} in {paths.master_key}.",
        Warned("without this key nothing in the database can be read. Keep a copy."),
    )


@app.command("rotate-master")
@with_json_option
def rotate_master(
    new: FromOption = None,
    to: ToOption = None,
    keep_old: KeepOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    discard_old: DiscardOption = False,
    cancel: CancelOption = False,
) -> Output:
    """Replace the master key with a new one.

    Works with or without a running hub, which keeps working. At every moment the key in the key
    file opens the database. Earlier backups open only with the OLD key, so it is kept in a file of
    its own: move that to where you keep keys.

    If the key is in FOLKMOOT_MASTER_KEY, only you can change it: use --from or --to. Both keys then
    open the database, until a hub is started with the new one. --cancel undoes this.
    """
    check_options(new, to, keep_old, discard=discard_old, cancel=cancel)
    hub = OperatedHub(config, data)
    hub.require_database(NO_KEY)
    if cancel:
        told = hub.cancel_rotation()
        return Output(
            told,
            f"The rotation to the master key {told.cancelled} is cancelled. Only the present key "
            "opens the database.",
        )
    keep = None if keep_old is None else str(keep_old.expanduser().absolute())
    if to is None:
        key = None if new is None else given_key(new)
        rotated = hub.rotate_key(new=key, keep=keep, discard=discard_old)
    else:
        rotated = rotate_to(hub, to.expanduser().absolute(), keep, discard=discard_old)
    where = None if to is None else f"The new key is in {to.expanduser().absolute()}."
    return Output(rotated, summary(rotated), where, warning(rotated, discarded=discard_old))


def check_options(
    new: str | None, to: Path | None, keep: Path | None, *, discard: bool, cancel: bool
) -> None:
    """Refuse options that do not go together."""
    if cancel and (new or to or keep or discard):
        raise typer.BadParameter("--cancel cannot be combined with other options")
    if new and to:
        raise typer.BadParameter("--from and --to cannot be combined")
    if keep and discard:
        raise typer.BadParameter("--keep-old and --discard-old cannot be combined")


def given_key(file: str) -> str:
    """The new key as the operator gives it, checked; never from the command line itself."""
    from folkmoot.keys import format_key, parse_key, read_key

    if file != STANDARD_INPUT:
        return format_key(read_key(Path(file).expanduser()))
    if sys.stdin is not None and sys.stdin.isatty():
        text = str(typer.prompt("New master key", hide_input=True, err=True))
    else:
        read = sys.stdin.buffer.read(256) if sys.stdin else b""
        text = read.decode("ascii", errors="replace")
    return format_key(parse_key(text, "The standard input"))


def rotate_to(hub: OperatedHub, to: Path, keep: str | None, *, discard: bool) -> RotatedKey:
    """Change to a key that is in the operator's file before anything depends on it."""
    from folkmoot.keys import format_key, fresh_key, put_key

    key = fresh_key()
    put_key(to, key)
    try:
        return hub.rotate_key(new=format_key(key), keep=keep, discard=discard)
    except e.CommandFailed as error:
        # The hub may have done it and not been able to say so.
        raise e.CommandFailed(
            f"{error.message} Run 'folkmoot doctor' to see which key the database opens with: the "
            f"new key would be {key.id}, in {to}."
        ) from None
    except e.FolkmootError:
        with suppress(OSError):
            to.unlink()
        raise


def summary(rotated: RotatedKey) -> str:
    """What was done, and what is left to do."""
    if rotated.settled:
        done = [
            f"The master key was rotated from {rotated.old} to {rotated.new}.",
            "The old key no longer opens the database.",
        ]
    else:
        done = [
            f"The database now opens with {rotated.old} and with {rotated.new}.",
            "To finish, start the hub with the new key as FOLKMOOT_MASTER_KEY.",
            "Until then it can be started with either key.",
        ]
    if rotated.withdrawn:
        done.append(
            f"The key {rotated.withdrawn} of the earlier, pending rotation no longer opens "
            "anything."
        )
    if rotated.kept:
        done.append(f"The old key is kept in {rotated.kept}.")
    return "\n".join(done)


def warning(rotated: RotatedKey, *, discarded: bool) -> Warned:
    """That backups made before the rotation need the old key."""
    message = f"earlier backups open only with the old master key ({rotated.old})."
    if rotated.kept:
        message += " Move its file to where you keep keys. Delete it when no backup needs it."
    elif discarded:
        message += " No copy of it was kept here. Without your own copy they are lost."
    else:
        message += " Keep it for as long as you keep them."
    return Warned(message)
