"""`folkmoot keys`: which master key protects the database, and how it is changed."""

from __future__ import annotations

import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from folkmoot.cli.exits import ExitCode
from folkmoot.cli.operator import Operated, understood
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption
from folkmoot.cli.output import aligned, complain, say, say_json
from folkmoot.core.errors import CommandFailed, FolkmootError

if TYPE_CHECKING:
    from folkmoot.datafolder import Paths
    from folkmoot.operations.operator.data import RotatedKey

NO_KEY = "so it has no key."
STANDARD_INPUT = "-"
LONGEST = 256

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FILE", show_default=False,
        help="Read the new key from FILE, or with - from the standard input.  [default: "
             "generate one]",
    ),
]  # fmt: skip
ToOption = Annotated[
    Path | None,
    typer.Option(
        "--to", metavar="FILE", show_default=False,
        help="Write a copy of the new key to FILE, which must not exist.",
    ),
]  # fmt: skip
KeepOption = Annotated[
    Path | None,
    typer.Option(
        "--keep-old", metavar="FILE", show_default=False,
        help="Keep the old key in FILE.  [default: master.key.ID.old in the data folder]",
    ),
]  # fmt: skip
DiscardOption = Annotated[
    bool,
    typer.Option(
        "--discard-old", show_default=False,
        help="Keep no copy of the old key: without your own copy, backups made with it are "
             "lost.",
    ),
]  # fmt: skip
CancelOption = Annotated[
    bool,
    typer.Option("--cancel", help="Cancel a pending rotation.", show_default=False),
]

app = typer.Typer(help="Show and change the master key.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def keys(ctx: typer.Context) -> None:
    """Show and change the master key."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def show(
    data: DataOption = None, config: ConfigOption = None, *, as_json: JsonOption = False
) -> None:
    """Show the master key's id and where it comes from.

    Also shows which keys open the database, and which the data folder keeps for old backups. An id
    reveals nothing about its key, and the key itself is never shown.
    """
    from folkmoot.operations.operator.data import KeyInUse
    from folkmoot.store import inspect_database

    hub = Operated(config, data)
    hub.require_database(NO_KEY)
    paths = hub.paths
    used = understood(hub.ask("folkmoot/key"), KeyInUse)
    info = inspect_database(paths.database)
    told = {
        "id": used.id,
        "source": used.source,
        "mode": mode_of(Path(used.source)),
        "opened_by": info.opened_by,
        "awaited": info.awaited_key_id,
        "kept": kept_keys(paths),
    }
    if as_json:
        say_json(told)
        return
    mode = f" (mode {told['mode']})" if told["mode"] else ""
    rows = [
        ("Key", used.id),
        ("Comes from", used.source + mode),
        ("Database opens with", " and ".join(info.opened_by) or "any key (it has none yet)"),
    ]
    if info.awaited_key_id:
        rows.append(
            ("Pending", f"{info.awaited_key_id}: the next start with it finishes the rotation")
        )
    rows += [("Kept for old backups", name) for name in kept_keys(paths)]
    for line in aligned(rows):
        say(line)
    if info.opened_by and used.id not in info.opened_by:
        complain(f"the master key {used.id} does not open this database.", kind="warning")


def mode_of(file: Path) -> str | None:
    """The mode of the key file, if the key is in one."""
    try:
        return f"{stat.S_IMODE(file.stat().st_mode):04o}" if file.is_absolute() else None
    except OSError:
        return None


def kept_keys(paths: Paths) -> list[str]:
    """The files in the data folder that keep older keys."""
    return sorted(file.name for file in paths.folder.glob(f"{paths.master_key.name}.*.old"))


@app.command("rotate-master")
def rotate_master(
    new: FromOption = None,
    to: ToOption = None,
    keep_old: KeepOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    discard_old: DiscardOption = False,
    cancel: CancelOption = False,
    as_json: JsonOption = False,
) -> None:
    """Replace the master key with a new one.

    Works with or without a running hub, which keeps working. At every moment the key in the key
    file opens the database. Earlier backups open only with the OLD key, so it is kept in a file of
    its own: move that to where you keep keys.

    If the key is in FOLKMOOT_MASTER_KEY, only you can change it: use --from or --to. Both keys then
    open the database, until a hub is started with the new one. --cancel undoes this.
    """
    check_options(new, to, keep_old, discard=discard_old, cancel=cancel)
    from folkmoot.operations.operator.data import CancelledRotation, RotatedKey

    hub = Operated(config, data)
    hub.require_database(NO_KEY)
    if cancel:
        told = understood(hub.ask("folkmoot/cancel_rotation"), CancelledRotation)
        if as_json:
            say_json(told)
        else:
            say(
                f"The rotation to the master key {told.cancelled} is cancelled. Only the "
                "present key opens the database."
            )
        return
    arguments: dict[str, Any] = {"discard": discard_old}
    if keep_old is not None:
        arguments["keep"] = str(keep_old.expanduser().absolute())
    if new is not None:
        arguments["new"] = given_key(new)
    if to is None:
        answer = hub.ask("folkmoot/rotate_key", arguments)
    else:
        answer = rotate_to(hub, arguments, to.expanduser().absolute())
    rotated = understood(answer, RotatedKey)
    if as_json:
        say_json(rotated)
    else:
        say(summary(rotated))
        if to is not None:
            say(f"The new key is in {to.expanduser().absolute()}.")
    warn(rotated, discarded=discard_old)


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
        read = sys.stdin.buffer.read(LONGEST) if sys.stdin else b""
        text = read.decode("ascii", errors="replace")
    return format_key(parse_key(text, "The standard input"))


def rotate_to(hub: Operated, arguments: dict[str, Any], to: Path) -> Any:
    """Change to a key that is in the operator's file before anything depends on it."""
    from folkmoot.keys import format_key, fresh_key, put_key

    key = fresh_key()
    put_key(to, key)
    try:
        return hub.ask("folkmoot/rotate_key", {**arguments, "new": format_key(key)})
    except CommandFailed as error:
        # The hub may have done it and not been able to say so.
        raise CommandFailed(
            f"{error.message} See 'folkmoot keys show': the new key would be {key.id}, in {to}."
        ) from None
    except FolkmootError:
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


def warn(rotated: RotatedKey, *, discarded: bool) -> None:
    """What whoever has backups must know."""
    message = f"earlier backups open only with the old master key ({rotated.old})."
    if rotated.kept:
        message += " Move its file to where you keep keys. Delete it when no backup needs it."
    elif discarded:
        message += " No copy of it was kept here. Without your own copy they are lost."
    else:
        message += " Keep it for as long as you keep them."
    complain(message, kind="warning")
