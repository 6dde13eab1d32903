"""`folkmoot backup`, `restore` and `export`: a hub's database, and a person's data, in files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict

from folkmoot.cli.commands import Output, Warned, with_json_option
from folkmoot.cli.credentials import (
    AsOption,
    HandleArgument,
    UrlOption,
    YesOption,
    confirm,
    signed_in,
)
from folkmoot.cli.operator import OperatedHub, check_entry
from folkmoot.cli.options import ConfigOption, DataOption, argument, flag, option, settings_from
from folkmoot.cli.output import size
from folkmoot.cli.show import counted
from folkmoot.core import errors as e
from folkmoot.datafolder import DataFolder, Paths
from folkmoot.telemetry.redaction import visible

if TYPE_CHECKING:
    from folkmoot.keys import MasterKey
    from folkmoot.settings import Settings
    from folkmoot.store import DatabaseInfo


NETWORKED = "The database is at a PostgreSQL server (store.url)."

FileArgument = Annotated[Path, argument("FILE", "The file to write.")]
OverwriteOption = Annotated[bool, flag("--overwrite", "Replace FILE if it exists.")]


@with_json_option
def backup(
    file: FileArgument,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> Output:
    """Back up the database to FILE.

    Works with or without a running hub, which keeps working. FILE appears once it is complete and
    checked, and only you can read it. The master key is NOT in it: keep a copy of the key in
    another place, because the backup cannot be used without it.
    """
    from folkmoot.store import check_target

    hub = OperatedHub(config, data)
    if hub.is_networked:
        raise e.BackupFailed(f"{NETWORKED} Back it up with pg_dump, or by the server's archive.")
    target = file.absolute()
    check_target(hub.paths.database, target, overwrite=overwrite)
    hub.require_database("so there is nothing to back up.", e.BackupFailed)
    with progress_bar("Backing up", "copied", "pages") as told:
        made = hub.telling(told).back_up(str(target), overwrite=overwrite)
    done = f"Backed up {size(made.size)} to {visible(made.path)}."
    return Output(made, done, Warned(made.warning))


@contextmanager
def progress_bar(doing: str, done: str, total: str) -> Iterator[Callable[[dict[str, Any]], None]]:
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


BackupArgument = Annotated[Path, argument("FILE", "The backup.")]
KeyOption = Annotated[
    Path | None,
    option(
        "--key", "FILE",
        "The master key the backup needs.  [default: the matching key in the data folder]",
    ),
]  # fmt: skip


@with_json_option
def restore(
    file: BackupArgument,
    key: KeyOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    yes: YesOption = False,
) -> Output:
    """Replace the hub's database with a backup.

    The hub must be stopped. The backup is copied and checked first, and the current database is
    kept as folkmoot.db.TIME.old. The master key must be the one the backup was made with: a key in
    the data folder is found automatically, any other needs --key.
    """
    import asyncio

    settings = settings_from(config, data=data).settings
    if settings.store.url:
        raise e.RestoreFailed(f"{NETWORKED} Restore it with pg_restore while no hub runs.")
    paths = Paths(settings.data_folder)
    check_entry(paths)
    source = file.expanduser().absolute()
    info = inspected(source)
    try:
        with DataFolder.open(paths.folder):
            fitting = fitting_key(settings, paths, info, key)
            if paths.database_exists():
                confirm(f"Replace the database in {paths.folder}? It is kept beside it.", yes=yes)
            kept, exchanged = asyncio.run(replace(paths, source, fitting, settings))
    except e.DataFolderInUse as error:
        raise e.DataFolderInUse(
            f"{error.message.rstrip('.')}; stop it first. Nothing was changed."
        ) from None
    was = f"The database as it was is {kept}; delete it when you no longer need it."
    return Output(
        {"path": str(source), "size": info.size, "kept": None if kept is None else str(kept)},
        exchanged,
        f"Restored {size(info.size)} from {visible(str(source))}.",
        None if kept is None else was,
        "Start the hub, or run 'folkmoot doctor' first.",
    )


def inspected(source: Path) -> DatabaseInfo:
    """What a backup is; what is none is refused."""
    from folkmoot.store import inspect_database

    if not source.is_file():
        raise e.RestoreFailed(f"{source}: there is no such file.")
    try:
        info = inspect_database(source)
    except e.FolkmootError as error:
        raise e.RestoreFailed(error.message) from None
    if not info.schema or not info.opened_by:
        raise e.RestoreFailed(f"{source}: is not the database of a hub.")
    return info


def fitting_key(
    settings: Settings, paths: Paths, info: DatabaseInfo, given: Path | None
) -> MasterKey:
    """The master key that opens the backup: the one in use, or one that the folder kept."""
    from folkmoot.keys import KEY_VARIABLE, parse_key, read_key

    needed = " or ".join(info.opened_by)
    if given is not None:
        key = read_key(given.expanduser())
        if key.id not in info.opened_by:
            raise e.RestoreFailed(f"{given}: is the key {key.id}; the backup needs {needed}.")
        return key
    if settings.master_key:
        key = parse_key(settings.master_key, KEY_VARIABLE)
        if key.id not in info.opened_by:
            raise e.RestoreFailed(f"{KEY_VARIABLE} is the key {key.id}; the backup needs {needed}.")
        return key
    kept = sorted(paths.folder.glob(f"{paths.master_key.name}.*.old"))
    for place in (paths.master_key, *kept):
        with suppress(e.FolkmootError):
            key = read_key(place)
            if key.id in info.opened_by:
                return key
    raise e.RestoreFailed(
        f"The backup needs the master key {needed}, which is not in {paths.folder}; give it with "
        "--key FILE."
    )


async def replace(
    paths: Paths, source: Path, key: MasterKey, settings: Settings
) -> tuple[Path | None, str | None]:
    """Copy, check and open the backup, and only then put it in place.

    Returns where the old one is kept, and what became of the key in use if it was another.
    """
    import asyncio

    from folkmoot.store import copy_database, put_in_place, remove_database

    staged = paths.folder / ".folkmoot.db.restore"
    try:
        await asyncio.to_thread(copy_database, source, staged, overwrite=True)
        await prove(staged, key, source)
        old = None if settings.master_key else keep_present_key(paths, key)
        kept = await asyncio.to_thread(put_in_place, staged, paths.database)
        exchanged = None if settings.master_key else put_in_use(paths, key, old)
    finally:
        remove_database(staged)
    return kept, exchanged


async def prove(staged: Path, key: MasterKey, source: Path) -> None:
    """Open the copy as a hub does, which brings it to the newest schema, and note the restore."""
    from folkmoot.audit import OPERATOR, Line, record
    from folkmoot.clock import SystemClock
    from folkmoot.store import SqliteStore
    from folkmoot.vault import Vault

    store = await SqliteStore.open(staged)
    try:
        await Vault.load(store, key)
        now = SystemClock().now()
        lines = [Line("database.restored", OPERATOR, source.name, at=int(now))]
        await store.write(lambda tx: record(tx, lines, now, offline=True))
    finally:
        await store.close()


def keep_present_key(paths: Paths, key: MasterKey) -> MasterKey | None:
    """Keep the key that is in use, where the backup needs another; the one that was in use."""
    from folkmoot.keys import put_key, read_key

    if not paths.master_key.exists():
        return None
    present = read_key(paths.master_key)
    kept = paths.master_key.with_name(f"{paths.master_key.name}.{present.id}.old")
    if present.id != key.id and not kept.exists():
        put_key(kept, present)
    return present


def put_in_use(paths: Paths, key: MasterKey, old: MasterKey | None) -> str | None:
    """Let the key file hold the key that the restored database needs; says if it was another."""
    from folkmoot.keys import Replacement, put_key

    if old is None:
        put_key(paths.master_key, key)
    elif old.id != key.id:
        replacement = Replacement(paths.master_key, key)
        replacement.publish()
        replacement.sync()
        return f"The master key in use is {key.id} now; {old.id} is kept for newer backups."
    return None


OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default=False),
]


@with_json_option
def export(
    handle: HandleArgument,
    output: OutputOption,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> Output:
    """Export everything the hub stores about a person, as JSON.

    For the operator, on the hub's own machine, with or without a running hub. Exports the profile,
    contacts, blocks, invites, all mail (decrypted), their rooms, and their messages in rooms.
    Nothing is marked as read. FILE appears once it is complete, and only you can read it. Give it
    to nobody but that person.
    """
    hub = OperatedHub(config, data)
    target = output.expanduser().absolute()
    if target.is_dir():
        raise e.ExportFailed(f"{target}: is a folder. Give the name of a file.")
    if target.exists() and not overwrite:
        raise e.ExportFailed(f"{target}: already exists. --overwrite replaces it.")
    hub.require_database("so there is nothing to export.", e.ExportFailed)
    with progress_bar("Exporting", "done", "total") as told:
        made = hub.telling(told).export_account(handle, str(target), overwrite=overwrite)
    what = f"{counted(made.messages, 'message')} in {counted(made.threads, 'conversation')}"
    if made.rooms:
        what += f" and {counted(made.said, 'message')} in {counted(made.rooms, 'room')}"
    done = f"Exported the data of @{made.handle}, with {what}, to {target}."
    return Output({**asdict(made), "path": str(target)}, done, readable(target))


def readable(target: Path) -> Warned:
    """What to know of a file with someone's data."""
    return Warned(f"{target} holds decrypted mail. Anyone who can read the file can read it.")


@with_json_option
def export_own(
    output: OutputOption,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    overwrite: OverwriteOption = False,
) -> Output:
    """Download everything the hub stores about you, as JSON.

    That is your profile, contacts, blocks, invites and rooms, all your mail (decrypted), and your
    messages in rooms. Nothing is marked as read. Only you can read FILE.
    """
    hub, _ = signed_in(url, handle)
    target = output.expanduser().absolute()
    if target.exists() and not overwrite:
        raise e.ExportFailed(f"{target}: already exists. --overwrite replaces it.")
    try:
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as part:
            try:
                hub.into(part).export_me()
                Path(part.name).replace(target)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise e.ExportFailed(f"{target}: {(error.strerror or 'unwritable').lower()}.") from None
    return Output({"path": str(target)}, f"Exported your data to {target}.", readable(target))
