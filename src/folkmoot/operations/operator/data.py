"""What reads and writes files of the hub's machine: backups, exports, the master key.

Most are for the operator's socket alone. A token that operates a hub over the network must not
choose the files that its process writes, nor read or change its key: it can have a backup made in
the data folder, where the hub keeps the newest.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.operations.limits import MAX_BACKUPS_KEPT
from folkmoot.operations.row import (
    Absent,
    Arguments,
    AuditSpec,
    Handle,
    Nothing,
    Route,
    describe,
    operated,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call, Services

BACKED_UP_AT: Final = "backed_up_at"
"""What the database has of when it was copied last, while a hub ran."""

Overwrite = Annotated[bool, describe("Whether a file that is there may be replaced.")]


class MakeBackup(Arguments, frozen=True, kw_only=True):
    """Where to, and whether a file that is there may be replaced."""

    path: Annotated[str, describe("The file to write, as an absolute path.")]
    overwrite: Overwrite = False


class BackedUp(Struct, frozen=True):
    """A finished backup, with a warning about its key."""

    path: str
    size: int
    master_key_id: str | None
    warning: str


class Copied(Struct, frozen=True):
    """How far a backup is, in pages of the database."""

    copied: int
    pages: int


class KeptBackup(Struct, frozen=True):
    """A backup in the data folder."""

    name: str
    size: int
    at: int


class KeptBackups(Struct, frozen=True):
    """The newest backups in the data folder, and when the hub made one last, wherever it is.

    Without a folder the database is on a server, which backs it up itself.
    """

    folder: str | None
    last_at: int | None
    backups: list[KeptBackup]


class Export(Arguments, frozen=True, kw_only=True):
    """Of whom, where to, and whether a file that is there may be replaced."""

    handle: Handle
    path: Annotated[str, describe("The file to write, as an absolute path.")]
    overwrite: Overwrite = False


class ExportedPerson(Struct, frozen=True):
    """What was written; `said` is how many messages to rooms."""

    handle: str
    threads: int
    messages: int
    rooms: int
    said: int


class Written(Struct, frozen=True):
    """How far an export is, in conversations."""

    done: int
    total: int


class KeyInUse(Struct, frozen=True):
    """The id of the master key, and where it comes from."""

    id: str
    source: str


class RotateKey(Arguments, frozen=True, kw_only=True):
    """The new key unless one is to be made, and what becomes of the old one."""

    new: Annotated[str, describe("The new key. By default one is made.")] | None = None
    keep: (
        Annotated[str, describe("The file that keeps the old key, as an absolute path.")] | None
    ) = None
    discard: Annotated[bool, describe("Keep no copy of the old key.")] = False


class RotatedKey(Struct, frozen=True):
    """A change of the master key, told by the ids of the keys."""

    old: str
    new: str
    settled: bool
    kept: str | None
    withdrawn: str | None


class CancelledRotation(Struct, frozen=True):
    """The key that is awaited no more."""

    cancelled: str


async def backup(call: Call[MakeBackup]) -> BackedUp:
    """Copy the database into one file while it is in use."""
    given = call.arguments
    target = absolute(given.path, "The path of a backup")

    def tell(copied: int, pages: int) -> None:
        call.progress(Copied(copied, pages))

    made = await call.services.backups.backup(str(target), overwrite=given.overwrite, progress=tell)
    await remember_backup(call.services)
    return BackedUp(made.path, made.size, made.master_key_id, key_warning(made.master_key_id))


async def back_up_now(call: Call[Nothing]) -> BackedUp:
    """Copy the database into the data folder, and remove the oldest copies there."""
    services = call.services
    folder = services.backup_folder
    if folder is None:
        raise e.BackupFailed("The database is on a server: back it up with the server's own tools.")
    await asyncio.to_thread(folder.mkdir, mode=0o700, exist_ok=True)
    moment = datetime.fromtimestamp(services.clock.now(), UTC)
    target = folder / f"folkmoot-{moment:%Y%m%d-%H%M%S}.db"

    def tell(copied: int, pages: int) -> None:
        call.progress(Copied(copied, pages))

    made = await services.backups.backup(str(target), progress=tell)
    await remember_backup(services)
    await asyncio.to_thread(remove_oldest, folder)
    return BackedUp(made.path, made.size, made.master_key_id, key_warning(made.master_key_id))


async def kept_backups(call: Call[Nothing]) -> KeptBackups:
    from folkmoot.store import meta

    services = call.services
    folder = services.backup_folder
    if folder is None:
        return KeptBackups(None, None, [])
    last = await services.store.read(lambda tx: meta.get(tx, BACKED_UP_AT))
    found = await asyncio.to_thread(kept_in, folder)
    return KeptBackups(str(folder), None if last is None else int(last), found)


async def remember_backup(services: Services) -> None:
    """Store when the last backup was made; it is made even where the database takes nothing."""
    from folkmoot.store import meta

    if services.store is not None:
        now = str(int(services.clock.now()))
        with suppress(e.FolkmootError):
            await services.store.write(lambda tx: meta.put(tx, BACKED_UP_AT, now))


def kept_in(folder: Path) -> list[KeptBackup]:
    """The backups that the hub made in a folder, the newest first."""
    found = []
    for path in sorted(folder.glob("folkmoot-????????-??????.db"), reverse=True):
        status = path.stat()
        found.append(KeptBackup(path.name, status.st_size, int(status.st_mtime)))
    return found


def remove_oldest(folder: Path) -> None:
    """Keep the newest backups that the hub made there, and no others of them."""
    for each in kept_in(folder)[MAX_BACKUPS_KEPT:]:
        (folder / each.name).unlink(missing_ok=True)


def key_warning(key_id: str | None) -> str:
    """The warning that a backup opens only with this key."""
    named = f" (id {key_id})" if key_id else ""
    return (
        f"The master key{named} is not in the backup, and mail in it cannot be read without the "
        "key. Keep a copy of the key in another place."
    )


async def export_person(call: Call[Export]) -> ExportedPerson:
    """Write everything the hub keeps of someone into a file."""
    given = call.arguments
    target = absolute(given.path, "The path of an export")

    def tell(done: int, total: int) -> None:
        call.progress(Written(done, total))

    made = await call.services.exporter.export(
        given.handle, target, overwrite=given.overwrite, told=tell
    )
    return ExportedPerson(made.handle, made.threads, made.messages, made.rooms, made.said)


async def key(call: Call[Nothing]) -> KeyInUse:
    return call.services.key()


async def rotate_key(call: Call[RotateKey]) -> RotatedKey:
    """Change the master key."""
    given = call.arguments
    keep = None
    if given.keep is not None:
        keep = absolute(given.keep, "The path of the file for the old key")
    done = await call.services.key_ring.rotate(given.new, keep=keep, discard=given.discard)
    return RotatedKey(done.old, done.new, done.settled, done.kept, done.withdrawn)


async def cancel_rotation(call: Call[Nothing]) -> CancelledRotation:
    """Await the new key no more."""
    return CancelledRotation(await call.services.key_ring.cancel())


def absolute(path: str, what: str) -> Path:
    """The path of a file, which does not depend on where the hub was started."""
    target = Path(path)
    if not target.is_absolute():
        raise e.CommandInvalid(f"{what} must be absolute.")
    if not target.name or "\0" in path:
        raise e.CommandInvalid(f"{what} must name a file.")
    return target


ON_HOME: Final = Absent("The console has it; 'folkmoot backup' takes a file.")

DATA = (
    operated(
        name="folkmoot/backups",
        description="Show when the hub made its last backup, and the backups in its data folder.",
        handler=kept_backups,
        needs=("store",),
        routes=(Route("GET", "/v1/backups", "listBackups", "Show the backups"),),
        commands=ON_HOME,
    ),
    operated(
        name="folkmoot/back_up_now",
        description=f"Back up the database into the data folder, which keeps the newest "
        f"{MAX_BACKUPS_KEPT}. The master key is not in it.",
        handler=back_up_now,
        effect="acts",
        errors=(e.BackupFailed,),
        needs=("backups", "store"),
        progress=Copied,
        audit=AuditSpec("database.backed_up"),
        routes=(Route("POST", "/v1/backups", "backUpNow", "Back up now", status=201),),
        commands=ON_HOME,
    ),
    operated(
        name="folkmoot/backup",
        description="Back up the database to a file, while the hub keeps working. The master key "
        "is not in it.",
        handler=backup,
        effect="acts",
        errors=(e.BackupFailed, e.CommandInvalid),
        needs=("backups",),
        local=True,
        progress=Copied,
        audit=AuditSpec("database.backed_up", "path"),
        routes=(
            Route(
                "POST",
                "/v1/backup",
                "backUp",
                "Back up the database",
                example={"path": "/srv/backups/folkmoot.db"},
            ),
        ),
        commands=("backup",),
    ),
    operated(
        name="folkmoot/export_person",
        description="Write everything the hub stores about a person into a JSON file, their mail "
        "decrypted. Nothing is marked as read.",
        handler=export_person,
        effect="acts",
        errors=(e.CommandInvalid, e.ExportFailed, e.UserNotFound),
        needs=("exporter",),
        local=True,
        progress=Written,
        audit=AuditSpec("account.exported", "handle"),
        routes=(
            Route(
                "POST",
                "/v1/accounts/{handle}/export",
                "exportAccount",
                "Export someone's data",
                example={"path": "/home/alice/folkmoot.json"},
            ),
        ),
        commands=("export",),
    ),
    operated(
        name="folkmoot/key",
        description="Show the id of the master key in use, and where it comes from.",
        handler=key,
        needs=("key",),
        local=True,
        routes=(Route("GET", "/v1/key", "getKey", "Show the master key's id"),),
        commands=Absent("'folkmoot doctor' reads the key itself, also of a stopped hub."),
    ),
    operated(
        name="folkmoot/rotate_key",
        description="Replace the master key with a new one. At every moment the key in the key "
        "file opens the database.",
        handler=rotate_key,
        effect="acts",
        errors=(e.CommandFailed, e.CommandInvalid, e.KeyUnusable),
        needs=("key_ring",),
        local=True,
        audit=AuditSpec("key.rotated"),
        routes=(
            Route(
                "POST",
                "/v1/key/rotate",
                "rotateKey",
                "Replace the master key",
                example={"discard": False},
            ),
        ),
        commands=("keys rotate-master",),
    ),
    operated(
        name="folkmoot/cancel_rotation",
        description="Cancel a pending rotation: only the present key opens the database.",
        handler=cancel_rotation,
        effect="destroys",
        errors=(e.CommandFailed, e.CommandInvalid),
        needs=("key_ring",),
        local=True,
        audit=AuditSpec("key.rotation_cancelled"),
        routes=(Route("POST", "/v1/key/cancel", "cancelRotation", "Cancel a pending rotation"),),
        commands=("keys rotate-master",),
    ),
)
