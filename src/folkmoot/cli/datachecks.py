"""The doctor's checks of what is in the data folder, and of the hub that runs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from folkmoot import __version__
from folkmoot.cli.checks import check_port
from folkmoot.cli.output import duration, size
from folkmoot.cli.running import HubStatus, hub_status
from folkmoot.core.errors import FolkmootError
from folkmoot.datafolder import Finding, Paths, examine, running_hub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.settings import Settings
    from folkmoot.store import DatabaseInfo

RESTORE = (
    "Stop the hub, move the database away together with its -wal and -shm files, and put the "
    "newest backup in its place."
)
AWAITED = (
    "Start the hub with the new key to end the change, or run: folkmoot keys rotate-master --cancel"
)


def check_data(settings: Settings) -> Iterator[Finding]:
    """The folder, the key, the database, the running hub and the port."""
    paths = Paths(settings.data_folder)
    findings = examine(paths.folder)
    yield from findings
    usable = findings[0].level != "problem"
    database, info = check_database(paths) if usable else (None, None)
    if usable or settings.master_key:
        yield check_master_key(settings, paths, info)
    if database is not None:
        yield database
    yield from check_place(settings, paths)


def check_place(settings: Settings, paths: Paths) -> Iterator[Finding]:
    """The hub that runs on the folder, if one does, and the port, unless that hub has it."""
    status = None
    if runs(paths):
        control, status = check_hub(paths)
        yield control
    if status is not None and urlsplit(status.url).port == settings.port:
        yield Finding("port", "ok", f"{settings.port}: taken by the running hub")
    else:
        yield check_port(settings)


def runs(paths: Paths) -> bool:
    """Whether a hub is known to run on the folder."""
    try:
        return running_hub(paths.folder) is not None
    except FolkmootError:
        return False


def check_database(paths: Paths) -> tuple[Finding, DatabaseInfo | None]:
    """Whether the database can be read, is whole, and is of a schema this program knows."""
    from folkmoot.store import find_faults, inspect_database

    name = paths.database.name
    try:
        if not paths.database_exists():
            return Finding("database", "ok", f"{name}: is made at the first start"), None
    except FolkmootError as error:
        return Finding("database", "problem", error.message, "Move it away."), None
    try:
        info = inspect_database(paths.database)
        faults = find_faults(paths.database)
    except FolkmootError as error:
        return Finding("database", "problem", error.message, RESTORE), None
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return Finding("database", "problem", f"{name}: {faults[0]}{more}", RESTORE), info
    if info.schema > info.newest_schema:
        text = f"{name}: schema {info.schema} is newer than this program's {info.newest_schema}"
        advice = "Use the Folkmoot that wrote it, or a later one."
        return Finding("database", "problem", text, advice), info
    text = f"{name}: whole, {size(info.size)}, schema {info.schema}"
    if info.schema < info.newest_schema:
        text += f", brought to {info.newest_schema} at the next start"
    return Finding("database", "ok", text), info


def check_master_key(settings: Settings, paths: Paths, info: DatabaseInfo | None) -> Finding:
    """Whether a hub would find its key, could use it, and made the database with it."""
    from folkmoot.keys import KEY_VARIABLE, check_key, find_key

    source = KEY_VARIABLE if settings.master_key else paths.master_key.name
    known = info.opened_by or tuple(filter(None, [info.master_key_id])) if info else ()
    try:
        key = find_key(
            paths.master_key,
            given=settings.master_key or None,
            database_exists=not settings.master_key and has_database(paths),
        )
        if key is None:
            return Finding("master key", "ok", f"{source}: is made at the first start")
        if known:
            check_key(key, known)
    except FolkmootError as error:
        return Finding("master key", "problem", error.message, "Give the hub its own key again.")
    if info and info.awaited_key_id not in {None, key.id}:
        text = f"{source}: fits the database (id {key.id}), and {info.awaited_key_id} is awaited"
        return Finding("master key", "warning", text, AWAITED)
    fits = "fits the database" if known else "can be used"
    return Finding("master key", "ok", f"{source}: {fits} (id {key.id})")


def has_database(paths: Paths) -> bool:
    """Whether there is a database; what stands in its place without being one is told of there."""
    try:
        return paths.database_exists()
    except FolkmootError:
        return False


def check_hub(paths: Paths) -> tuple[Finding, HubStatus | None]:
    """Whether the hub that runs answers its operator, and is of this version."""
    try:
        status = hub_status(paths)
    except FolkmootError as error:
        advice = "Wait if it is just starting; else stop it and start it again."
        return Finding("control", "problem", error.message, advice), None
    text = f"answers: version {status.version} at {status.url}, up {duration(status.uptime)}"
    if status.version != __version__:
        advice = f"Restart the hub to run version {__version__}."
        return Finding("control", "warning", text, advice), status
    return Finding("control", "ok", text), status
