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
from folkmoot.operations.declare import OPERATED, Topic, get, post
from folkmoot.operations.limits import MAX_BACKUPS_KEPT
from folkmoot.operations.row import Absent, AuditSpec, Handle

if TYPE_CHECKING:
    from folkmoot.operations.call import Call, Services

BACKED_UP_AT: Final = "backed_up_at"
"""What the database has of when it was copied last, while a hub ran."""
ON_HOME: Final = Absent("The console has it; 'folkmoot backup' takes a file.")

NewFile = Annotated[str, "The file to write, as an absolute path."]
Overwrite = Annotated[bool, "Whether a file that is there may be replaced."]
operate = Topic(scope="operate", who="operator", tool=OPERATED)
local = operate.with_(local=True)


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


@operate.reads(
    "folkmoot/backups",
    get("/v1/backups", "listBackups", "Show the backups"),
    needs=("store",),
    commands=ON_HOME,
)
async def kept_backups(call: Call) -> KeptBackups:
    """Show when the hub made its last backup, and the backups in its data folder."""
    from folkmoot.store import meta

    services = call.services
    folder = services.backup_folder
    if folder is None:
        return KeptBackups(None, None, [])
    last = await services.store.read(lambda tx: meta.get(tx, BACKED_UP_AT))
    found = await asyncio.to_thread(kept_in, folder)
    return KeptBackups(str(folder), None if last is None else int(last), found)


def kept_in(folder: Path) -> list[KeptBackup]:
    """The backups that the hub made in a folder, the newest first."""
    found = []
    for path in sorted(folder.glob("folkmoot-????????-??????.db"), reverse=True):
        status = path.stat()
        found.append(KeptBackup(path.name, status.st_size, int(status.st_mtime)))
    return found


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


@operate.acts(
    "folkmoot/back_up_now",
    post("/v1/backups", "backUpNow", "Back up now", status=201),
    errors=(e.BackupFailed,),
    needs=("backups", "store"),
    progress=Copied,
    audit=AuditSpec("database.backed_up"),
    commands=ON_HOME,
)
async def back_up_now(call: Call) -> BackedUp:
    """Back up the database into the data folder, which keeps the newest 7. The master key is not
    in it.
    """
    services = call.services
    folder = services.backup_folder
    if folder is None:
        raise e.BackupFailed("The database is on a server: back it up with the server's own tools.")
    await asyncio.to_thread(folder.mkdir, mode=0o700, exist_ok=True)
    moment = datetime.fromtimestamp(services.clock.now(), UTC)
    made = await copy_to(call, folder / f"folkmoot-{moment:%Y%m%d-%H%M%S}.db")
    await asyncio.to_thread(remove_oldest, folder)
    return made


def remove_oldest(folder: Path) -> None:
    """Keep the newest backups that the hub made there, and no others of them."""
    for each in kept_in(folder)[MAX_BACKUPS_KEPT:]:
        (folder / each.name).unlink(missing_ok=True)


@local.acts(
    "folkmoot/backup",
    post(
        "/v1/backup",
        "backUp",
        "Back up the database",
        example={"path": "/srv/backups/folkmoot.db"},
    ),
    errors=(e.BackupFailed, e.CommandInvalid),
    needs=("backups",),
    progress=Copied,
    audit=AuditSpec("database.backed_up", "path"),
    commands=("backup",),
)
async def backup(call: Call, path: NewFile, *, overwrite: Overwrite = False) -> BackedUp:
    """Back up the database to a file, while the hub keeps working. The master key is not in it."""
    return await copy_to(call, absolute(path, "The path of a backup"), overwrite=overwrite)


async def copy_to(call: Call, target: Path, *, overwrite: bool = False) -> BackedUp:
    """Copy the database into one file while it is in use."""

    def tell(copied: int, pages: int) -> None:
        call.progress(Copied(copied, pages))

    made = await call.services.backups.backup(str(target), overwrite=overwrite, progress=tell)
    await remember_backup(call.services)
    return BackedUp(made.path, made.size, made.master_key_id, key_warning(made.master_key_id))


async def remember_backup(services: Services) -> None:
    """Store when the last backup was made; it is made even where the database takes nothing."""
    from folkmoot.store import meta

    if services.store is not None:
        now = str(int(services.clock.now()))
        with suppress(e.FolkmootError):
            await services.store.write(lambda tx: meta.put(tx, BACKED_UP_AT, now))


def key_warning(key_id: str | None) -> str:
    """The warning that a backup opens only with this key."""
    named = f" (id {key_id})" if key_id else ""
    return (
        f"The master key{named} is not in the backup, and mail in it cannot be read without the "
        "key. Keep a copy of the key in another place."
    )


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


@local.acts(
    "folkmoot/export_person",
    post(
        "/v1/accounts/{handle}/export",
        "exportAccount",
        "Export someone's data",
        example={"path": "/home/alice/folkmoot.json"},
    ),
    errors=(e.CommandInvalid, e.ExportFailed, e.UserNotFound),
    needs=("exporter",),
    progress=Written,
    audit=AuditSpec("account.exported", "handle"),
    commands=("export",),
)
async def export_person(
    call: Call, handle: Handle, path: NewFile, *, overwrite: Overwrite = False
) -> ExportedPerson:
    """Write everything the hub stores about a person into a JSON file, their mail decrypted.
    Nothing is marked as read.
    """
    target = absolute(path, "The path of an export")

    def tell(done: int, total: int) -> None:
        call.progress(Written(done, total))

    made = await call.services.exporter.export(handle, target, overwrite=overwrite, told=tell)
    return ExportedPerson(made.handle, made.threads, made.messages, made.rooms, made.said)


class KeyInUse(Struct, frozen=True):
    """The id of the master key, and where it comes from."""

    id: str
    source: str


@local.reads(
    "folkmoot/key",
    get("/v1/key", "getKey", "Show the master key's id"),
    needs=("key",),
    commands=Absent("'folkmoot doctor' reads the key itself, also of a stopped hub."),
)
async def key(call: Call) -> KeyInUse:
    """Show the id of the master key in use, and where it comes from."""
    return call.services.key()


class RotatedKey(Struct, frozen=True):
    """A change of the master key, told by the ids of the keys."""

    old: str
    new: str
    settled: bool
    kept: str | None
    withdrawn: str | None


@local.acts(
    "folkmoot/rotate_key",
    post("/v1/key/rotate", "rotateKey", "Replace the master key", example={"discard": False}),
    errors=(e.CommandFailed, e.CommandInvalid, e.KeyUnusable),
    needs=("key_ring",),
    audit=AuditSpec("key.rotated"),
    commands=("keys rotate-master",),
)
async def rotate_key(
    call: Call,
    *,
    new: Annotated[str, "The new key. By default one is made."] | None = None,
    keep: Annotated[str, "The file that keeps the old key, as an absolute path."] | None = None,
    discard: Annotated[bool, "Keep no copy of the old key."] = False,
) -> RotatedKey:
    """Replace the master key with a new one. At every moment the key in the key file opens the
    database.
    """
    file = None if keep is None else absolute(keep, "The path of the file for the old key")
    done = await call.services.key_ring.rotate(new, keep=file, discard=discard)
    return RotatedKey(done.old, done.new, done.settled, done.kept, done.withdrawn)


class CancelledRotation(Struct, frozen=True):
    """The key that is awaited no more."""

    cancelled: str


@local.destroys(
    "folkmoot/cancel_rotation",
    post("/v1/key/cancel", "cancelRotation", "Cancel a pending rotation"),
    errors=(e.CommandFailed, e.CommandInvalid),
    needs=("key_ring",),
    audit=AuditSpec("key.rotation_cancelled"),
    commands=("keys rotate-master",),
)
async def cancel_rotation(call: Call) -> CancelledRotation:
    """Cancel a pending rotation: only the present key opens the database."""
    return CancelledRotation(await call.services.key_ring.cancel())


def absolute(path: str, what: str) -> Path:
    """The path of a file, which does not depend on where the hub was started."""
    target = Path(path)
    if not target.is_absolute():
        raise e.CommandInvalid(f"{what} must be absolute.")
    if not target.name or "\0" in path:
        raise e.CommandInvalid(f"{what} must name a file.")
    return target
