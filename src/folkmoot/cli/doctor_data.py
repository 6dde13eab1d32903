"""The doctor's checks of the data folder: key, database, backups and disk."""

from __future__ import annotations

from contextlib import closing
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from folkmoot import __version__
from folkmoot.cli.operator import running
from folkmoot.cli.output import duration, size
from folkmoot.cli.serve import amount, hub_report
from folkmoot.core import errors as e
from folkmoot.datafolder import Finding, Paths, examine, running_hub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.core.ports import Row, Tx
    from folkmoot.operations.operator.hub import HubStatus
    from folkmoot.quotas import QuotaUse, Report
    from folkmoot.settings import Settings
    from folkmoot.store import DatabaseInfo


def check_port(settings: Settings) -> Finding:
    """Whether a hub could listen where it is told to."""
    from folkmoot.transports.listen import close, listen

    if settings.port == 0:
        where = f"any free port on {settings.host}"
    else:
        where = f"{settings.port} on {settings.host}: free"
    try:
        close(listen(settings.host, settings.port))
    except e.ServeError as error:
        told, dot, advice = error.message.partition(". ")
        return Finding("port", "problem", told + dot.strip(), advice)
    return Finding("port", "ok", where)


MOST_NAMED = 5
"""Accounts that are named beside the number of the others."""
RESTORE = (
    "Stop the hub, move the database and its -wal and -shm files away, and put the "
    "newest backup in its place."
)
AWAITED = (
    "Start the hub with the new key to finish the rotation, or run: folkmoot keys "
    "rotate-master --cancel"
)

UNREACHED = "Other nodes cannot reach this one there: see cluster.address in the settings."


def check_data(settings: Settings) -> Iterator[Finding]:
    """The folder, the key, the database, the running hub and the port."""
    paths = Paths(settings.data_folder)
    findings = examine(paths.folder)
    yield from findings
    usable = findings[0].level != "problem"
    database, info = check_database(settings, paths) if usable else (None, None)
    if usable or settings.master_key:
        yield check_master_key(settings, paths, info)
    if database is not None:
        yield database
    if info is not None and database is not None and database.level == "ok":
        yield check_quotas(settings, paths, info)
    if settings.bus.url:
        yield check_bus(settings)
    yield from check_place(settings, paths)


def check_place(settings: Settings, paths: Paths) -> Iterator[Finding]:
    """The hub that runs on the folder and its port, if one does; else the port it would use."""
    status = None
    if runs(paths):
        control, status = check_hub(paths)
        yield control
    if status is not None:
        port = urlsplit(status.url).port or settings.port
        yield Finding("port", "ok", f"{port}: in use by the running hub")
        if settings.bus.url:
            yield check_address(settings)
    else:
        yield check_port(settings)


def runs(paths: Paths) -> bool:
    """Whether a hub is known to run on the folder."""
    try:
        return running_hub(paths.folder) is not None
    except e.FolkmootError:
        return False


def check_server(settings: Settings, paths: Paths) -> tuple[Finding, DatabaseInfo | None]:
    """Whether the database at a server can be used; the server sees to it that it is whole."""
    from folkmoot.storage import inspect

    try:
        info = inspect(settings, paths)
    except e.FolkmootError as error:
        return Finding("database", "problem", error.message, "See store.url in the settings."), None
    assert info is not None  # noqa: S101 - a server always tells something
    told = f"{info.path}: {info.engine}, {size(info.size)}, schema {info.schema}"
    if info.schema < info.newest_schema:
        told += f", will be migrated to {info.newest_schema} at the next start"
    return Finding("database", "ok", told), info


def check_bus(settings: Settings) -> Finding:
    """Whether a server of the bus between nodes can be used."""
    import asyncio

    from folkmoot.bus import make_bus
    from folkmoot.settings.types import without_password
    from folkmoot.transports.listen import load_ca

    try:
        asyncio.run(make_bus(settings.bus.url, tls=load_ca(settings.cluster)).check())
    except e.FolkmootError as error:
        return Finding("bus", "problem", error.message, "See bus.url in the settings.")
    return Finding("bus", "ok", f"{without_password(settings.bus.url)}: answers")


def check_address(settings: Settings) -> Finding:
    """Whether the running hub answers where other nodes look for it."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    from folkmoot.transports.limits import FORWARD_CONNECT_SECONDS
    from folkmoot.transports.listen import load_ca

    address = settings.cluster.address
    url = urlsplit(address)
    try:
        where = (url.hostname or "", url.port)
        if url.scheme == "https":
            trusted = load_ca(settings.cluster)
            connection: HTTPConnection = HTTPSConnection(
                *where, timeout=FORWARD_CONNECT_SECONDS, context=trusted
            )
        else:
            connection = HTTPConnection(*where, timeout=FORWARD_CONNECT_SECONDS)
        with closing(connection):
            connection.request("GET", "/health")
            status = connection.getresponse().status
    except (OSError, HTTPException, e.FolkmootError) as error:
        return Finding("address", "problem", f"{address}: does not answer: {error}", UNREACHED)
    # A name that is only for nodes is none of http.allowed_hosts.
    if status not in {HTTPStatus.OK, HTTPStatus.MISDIRECTED_REQUEST}:
        return Finding("address", "problem", f"{address}: something else answers there", UNREACHED)
    return Finding("address", "ok", f"{address}: answers")


def check_database(settings: Settings, paths: Paths) -> tuple[Finding, DatabaseInfo | None]:
    """Whether the database can be read, is whole, and is of this version."""
    from folkmoot.store import find_faults, inspect_database

    if settings.store.url:
        return check_server(settings, paths)
    name = paths.database.name
    try:
        if not paths.database_exists():
            return Finding("database", "ok", f"{name}: will be created at the first start"), None
    except e.FolkmootError as error:
        return Finding("database", "problem", error.message, "Move it away."), None
    try:
        info = inspect_database(paths.database)
        faults = find_faults(paths.database)
    except e.DatabaseVersion as error:
        told, dot, advice = error.message.partition(". ")
        return Finding("database", "problem", told + dot.strip(), advice), None
    except e.FolkmootError as error:
        return Finding("database", "problem", error.message, RESTORE), None
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return Finding("database", "problem", f"{name}: {faults[0]}{more}", RESTORE), info
    text = f"{name}: intact, {size(info.size)}, schema {info.schema}"
    if info.schema < info.newest_schema:
        text += f", will be migrated to {info.newest_schema} at the next start"
    return Finding("database", "ok", text), info


def check_quotas(settings: Settings, paths: Paths, info: DatabaseInfo) -> Finding:
    """How much of the quotas is used, whether someone is near one, and whether it is kept right."""
    from folkmoot.clock import SystemClock
    from folkmoot.quotas import NEAR, Disk, differences, heaviest_in_rooms, heaviest_mail, report
    from folkmoot.storage import ask_once

    if info.schema != info.newest_schema:
        return Finding("quotas", "ok", "counted once the database has the newest schema")
    limits = settings.quotas

    async def query(tx: Tx) -> tuple[Report, list[Row], list[Row], list[str]]:
        return (
            await report(tx, limits),
            await heaviest_mail(tx, limits),
            await heaviest_in_rooms(tx, limits),
            await differences(tx),
        )

    try:
        found = ask_once(settings, paths, query)
        assert found is not None  # noqa: S101 - the database is there
        used, mail, rooms, wrong = found
        free = Disk(paths.folder, SystemClock()).free()
    except (e.FolkmootError, OSError) as error:
        return Finding("quotas", "problem", f"cannot be read: {error}", RESTORE)
    told = f"mail {amount(*used.mail)}, rooms {amount(*used.rooms)}, {size(free)} of the disk free"
    if limits.min_free_disk_bytes and free < limits.min_free_disk_bytes:
        advice = "Free some disk space. Until then the hub stores nothing new."
        return Finding("quotas", "problem", told, advice)
    near = [
        *(f"the hub's {name} ({use.part:.0%})" for name, use in totals(used) if use.part >= NEAR),
        *(f"@{row[0]} (mail {row[1] / limits.mail_bytes_per_account:.0%})" for row in mail),
        *(f"@{row[0]} (rooms {row[1] / limits.room_bytes_per_account:.0%})" for row in rooms),
    ]
    if near:
        more = f" and {len(near) - MOST_NAMED} more" if len(near) > MOST_NAMED else ""
        named = ", ".join(near[:MOST_NAMED])
        advice = "Raise the limit under [quotas], or delete mail or rooms."
        return Finding("quotas", "warning", f"{told}; nearly used up: {named}{more}", advice)
    if wrong:
        advice = "This is a bug in Folkmoot; please report it. Nothing stored is damaged."
        return Finding("quotas", "warning", f"{told}; miscounted: {', '.join(wrong)}", advice)
    return Finding("quotas", "ok", told)


def totals(used: Report) -> list[tuple[str, QuotaUse]]:
    """What the hub stores in all, by name."""
    return [("mail", used.mail), ("rooms", used.rooms)]


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
            return Finding("master key", "ok", f"{source}: will be created at the first start")
        if known:
            check_key(key, known)
    except e.FolkmootError as error:
        return Finding(
            "master key",
            "problem",
            error.message,
            "Give the hub the key it was started with before.",
        )
    if info and info.awaited_key_id not in {None, key.id}:
        text = (
            f"{source}: matches the database (id {key.id}), and a rotation to "
            f"{info.awaited_key_id} is pending"
        )
        return Finding("master key", "warning", text, AWAITED)
    fits = "matches the database" if known else "valid"
    return Finding("master key", "ok", f"{source}: {fits} (id {key.id})")


def has_database(paths: Paths) -> bool:
    """Whether the database file exists; another kind of file in its place gets its own finding."""
    try:
        return paths.database_exists()
    except e.FolkmootError:
        return False


def check_hub(paths: Paths) -> tuple[Finding, HubStatus | None]:
    """Whether the hub that runs answers its operator, and is of this version."""
    try:
        hub = running(paths)
        status = hub.get_status()
    except e.FolkmootError as error:
        advice = "Wait if it is just starting; otherwise restart it."
        return Finding("control", "problem", error.message, advice), None
    text = f"answers: version {status.version} at {status.url}, up {duration(status.uptime)}"
    report = hub_report(hub)
    if report is not None and (failure := report.failure) is not None:
        advice = RESTORE if failure == e.DatabaseDamaged.code else "See the hub's log."
        return Finding("control", "problem", f"{text}; it is not ready: {failure}", advice), status
    if status.version != __version__:
        advice = f"Restart the hub to run version {__version__}."
        return Finding("control", "warning", text, advice), status
    return Finding("control", "ok", text), status
