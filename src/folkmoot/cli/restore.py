"""`folkmoot restore`: put a backup in the place of a hub's database."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.asking import YesOption, confirm
from folkmoot.cli.operator import check_entry
from folkmoot.cli.options import ConfigOption, DataOption, settings_from
from folkmoot.cli.output import say, size
from folkmoot.core.errors import DataFolderInUse, FolkmootError, RestoreFailed
from folkmoot.datafolder import DataFolder, Paths
from folkmoot.telemetry.redaction import visible

if TYPE_CHECKING:
    from folkmoot.keys import MasterKey
    from folkmoot.settings import Settings
    from folkmoot.store import DatabaseInfo

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The backup.", show_default=False)
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", show_default=False,
        help="The master key the backup needs.  [default: the matching key in the data folder]",
    ),
]  # fmt: skip


def restore(
    file: FileArgument,
    key: KeyOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    yes: YesOption = False,
) -> None:
    """Replace the hub's database with a backup.

    The hub must be stopped. The backup is copied and checked first, and the current database is
    kept as folkmoot.db.TIME.old. The master key must be the one the backup was made with: a key in
    the data folder is found automatically, any other needs --key.
    """
    settings = settings_from(config, data=data).settings
    paths = Paths(settings.data_folder)
    check_entry(paths)
    source = file.expanduser().absolute()
    info = inspected(source)
    try:
        with DataFolder.open(paths.folder):
            fitting = fitting_key(settings, paths, info, key)
            if paths.database_exists():
                confirm(f"Replace the database in {paths.folder}? It is kept beside it.", yes=yes)
            kept = asyncio.run(replace(paths, source, fitting, settings))
    except DataFolderInUse as error:
        raise DataFolderInUse(
            f"{error.message.rstrip('.')}; stop it first. Nothing was changed."
        ) from None
    say(f"Restored {size(info.size)} from {visible(str(source))}.")
    if kept is not None:
        say(f"The database as it was is {kept}; delete it when you no longer need it.")
    say("Start the hub, or run 'folkmoot doctor' first.")


def inspected(source: Path) -> DatabaseInfo:
    """What a backup is; what is none is refused."""
    from folkmoot.store import inspect_database

    if not source.is_file():
        raise RestoreFailed(f"{source}: there is no such file.")
    try:
        info = inspect_database(source)
    except FolkmootError as error:
        raise RestoreFailed(error.message) from None
    if not info.schema or not info.opened_by:
        raise RestoreFailed(f"{source}: is not the database of a hub.")
    if info.schema > info.newest_schema:
        raise RestoreFailed(f"{source}: was made by a newer version of Folkmoot; upgrade first.")
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
            raise RestoreFailed(f"{given}: is the key {key.id}; the backup needs {needed}.")
        return key
    if settings.master_key:
        key = parse_key(settings.master_key, KEY_VARIABLE)
        if key.id not in info.opened_by:
            raise RestoreFailed(f"{KEY_VARIABLE} is the key {key.id}; the backup needs {needed}.")
        return key
    kept = sorted(paths.folder.glob(f"{paths.master_key.name}.*.old"))
    for place in (paths.master_key, *kept):
        with suppress(FolkmootError):
            key = read_key(place)
            if key.id in info.opened_by:
                return key
    raise RestoreFailed(
        f"The backup needs the master key {needed}, which is not in {paths.folder}; give it with "
        "--key FILE."
    )


async def replace(paths: Paths, source: Path, key: MasterKey, settings: Settings) -> Path | None:
    """Copy, check and open the backup, and only then put it in place; where the old one is kept."""
    from folkmoot.store import copy_database, put_in_place, remove_database

    staged = paths.folder / ".folkmoot.db.restore"
    try:
        await asyncio.to_thread(copy_database, source, staged, overwrite=True)
        await prove(staged, key, source)
        old = None if settings.master_key else keep_present_key(paths, key)
        kept = await asyncio.to_thread(put_in_place, staged, paths.database)
        if not settings.master_key:
            put_in_use(paths, key, old)
    finally:
        remove_database(staged)
    return kept


async def prove(staged: Path, key: MasterKey, source: Path) -> None:
    """Open the copy as a hub does, which brings it to the newest schema, and note the restore."""
    from folkmoot.audit import OPERATOR, Line, record
    from folkmoot.clock import SystemClock
    from folkmoot.store import open_database
    from folkmoot.vault import Vault

    store = await open_database(staged)
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


def put_in_use(paths: Paths, key: MasterKey, old: MasterKey | None) -> None:
    """Let the key file hold the key that the restored database needs."""
    from folkmoot.keys import Replacement, put_key

    if old is None:
        put_key(paths.master_key, key)
    elif old.id != key.id:
        replacement = Replacement(paths.master_key, key)
        replacement.publish()
        replacement.sync()
        say(f"The master key in use is {key.id} now; {old.id} is kept for newer backups.")
