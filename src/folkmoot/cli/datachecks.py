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

RESTORE = "Stop the hub and put the newest backup in its place."


def check_data(settings: Settings) -> Iterator[Finding]:
    """The folder, the key, the database, the running hub and the port."""
    paths = Paths(settings.data_folder)
    folder, *findings = examine(paths.folder, key_given=bool(settings.master_key))
    yield folder
    if folder.level != "problem":
        database, info = check_database(paths)
        for finding in findings:
            present = finding.subject == "master key" and finding.level == "ok"
            yield check_master_key(settings, paths, info) if present else finding
        yield database
    yield from check_place(settings, paths)


def check_place(settings: Settings, paths: Paths) -> Iterator[Finding]:
    """The hub that runs on the folder, if one does, and the port, unless that hub has it."""
    status = None
    if running_hub(paths.folder) is not None:
        control, status = check_hub(paths)
        yield control
    if status is not None and urlsplit(status.url).port == settings.port:
        yield Finding("port", "ok", f"{settings.port}: taken by the running hub")
    else:
        yield check_port(settings)


def check_database(paths: Paths) -> tuple[Finding, DatabaseInfo | None]:
    """Whether the database can be read, is whole, and is of a schema this program knows."""
    from folkmoot.store import find_faults, inspect_database

    name = paths.database.name
    if not paths.database_exists():
        return Finding("database", "ok", f"{name}: is made at the first start"), None
    try:
        info = inspect_database(paths.database)
    except FolkmootError as error:
        return Finding("database", "problem", error.message, RESTORE), None
    if faults := find_faults(paths.database):
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
    """Whether the key that is there can be used, and is the one the database was made with."""
    from folkmoot.keys import check_key, parse_key, read_key

    source = "FOLKMOOT_MASTER_KEY" if settings.master_key else paths.master_key.name
    if not settings.master_key and not paths.master_key.exists():
        return Finding("master key", "ok", f"{source}: is made at the first start")
    try:
        if settings.master_key:
            key = parse_key(settings.master_key, source)
        else:
            key = read_key(paths.master_key)
        recorded = info.master_key_id if info else None
        if recorded is not None:
            check_key(key, recorded)
    except FolkmootError as error:
        return Finding("master key", "problem", error.message, "Give the hub its own key again.")
    fits = "fits the database" if recorded else "can be used"
    return Finding("master key", "ok", f"{source}: {fits} (id {key.id})")


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
