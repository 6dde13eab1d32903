"""Opens the database that the settings name: a file in the data folder, or a PostgreSQL server."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from folkmoot import __version__
from folkmoot.clock import ServerClock, SystemClock
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths
from folkmoot.keys import KEY_VARIABLE, MasterKey, find_key, load_master_key
from folkmoot.store import SqliteStore, inspect_database, look_up

if TYPE_CHECKING:
    from folkmoot.core.ports import Bus, Clock, Database, ListedNode, NodeBus, RoomOwners, Tx, Unit
    from folkmoot.settings import Settings
    from folkmoot.store import DatabaseInfo

T = TypeVar("T")

logger = logging.getLogger("folkmoot.storage")

MAX_DIFFERING = 20
TAKEN = "SELECT handle FROM handles WHERE (kind = 'live' OR until > ?) AND handle = ?"
MACHINE_ID = Path("/etc/machine-id")
"""Tells machines apart, where there is one."""
IS_HANDLE = (
    "A server cannot be called {}: it is someone's handle, or was until recently. Choose another "
    "namespace."
)
MISSING = "store.url needs the package asyncpg. Run: pip install 'folkmoot[postgres]'"


def require_driver() -> None:
    """Raise what to install, where the package for databases at servers is missing."""
    if find_spec("asyncpg") is None:
        raise e.SettingsError(MISSING)


def is_networked(settings: Settings) -> bool:
    """Whether the database is at a server, and not a file in the data folder."""
    return bool(settings.store.url)


def hub_clock(settings: Settings) -> Clock:
    """The machine's clock, or the one of the database server: open the database with it."""
    return ServerClock() if is_networked(settings) else SystemClock()


async def open_store(
    settings: Settings,
    paths: Paths,
    bus: Bus,
    *,
    clock: Clock | None = None,
    shared: NodeBus | None = None,
    fingerprints: Callable[[], str] = str,
) -> Database:
    """Open the database; at a server, as the only hub that uses it.

    A clock that is a server's follows that server. Where the database is `shared`, other nodes on
    that bus may use it too, and compare the `fingerprints` of their settings.
    """
    store = settings.store
    if not is_networked(settings):
        return await SqliteStore.open(
            paths.database,
            synchronous=store.synchronous,
            readers=store.readers,
            queue=store.queue,
            empty_log_seconds=store.empty_log_seconds,
            bus=bus,
        )
    try:
        from folkmoot.store.postgres import HubNode, PostgresStore
    except ModuleNotFoundError as error:
        raise e.SettingsError(MISSING) from error
    node = HubNode(
        node_name(paths),
        secrets.token_hex(8) if shared is None else shared.node,
        address=settings.cluster.address if shared is not None else "",
        shared=shared is not None,
        version=__version__,
        settings=fingerprints,
        lease_seconds=settings.cluster.lease_seconds,
    )
    return await PostgresStore.open(
        store.url,
        connections=store.connections,
        prepare=not store.pooler,
        queue=store.queue,
        synchronous_replica=store.synchronous_replica,
        node=node,
        bus=bus,
        hear_time=clock.hear if isinstance(clock, ServerClock) else None,
        shared=shared,
    )


async def compare_settings(store: Database) -> None:
    """Warn if this node has other settings than the one that started first."""
    owners = store.room_owners
    if owners is None:
        return
    for node in await owners.list_nodes():
        if node.process == owners.process and node.differing:
            told = ", ".join(node.differing[:MAX_DIFFERING])
            logger.warning("settings differ from those of other nodes", extra={"settings": told})


async def check_lease(owners: RoomOwners) -> None:
    """Raise unless this node has its lease."""
    if not owners.lease()():
        raise e.LeaseOver("The lease at the database is over.")


def inspect(settings: Settings, paths: Paths) -> DatabaseInfo | None:
    """What can be told of the database, without changing it; nothing where there is none yet."""
    if is_networked(settings):
        require_driver()
        from folkmoot.store.postgres import inspect_server

        return asyncio.run(inspect_server(settings.store.url))
    return inspect_database(paths.database) if paths.database_exists() else None


def ask_once(settings: Settings, paths: Paths, query: Unit[T]) -> T | None:
    """What a query answers on the database, without a hub; nothing where there is none yet."""
    if not is_networked(settings):
        return look_up(paths.database, query) if paths.database_exists() else None

    require_driver()
    from folkmoot.store.postgres import ask_server

    return asyncio.run(ask_server(settings.store.url, query))


def handles_among(settings: Settings, names: Collection[str]) -> list[str]:
    """Which of these names are handles of people, or were until recently."""
    paths = Paths(settings.data_folder)
    return (ask_once(settings, paths, lambda tx: handles_in(tx, names)) or []) if names else []


async def handles_in(tx: Tx, names: Collection[str]) -> list[str]:
    """The same, in a unit."""
    now = int(time.time())
    return [name for name in sorted(names) if await tx.fetch_one(TAKEN, (now, name))]


def list_nodes(settings: Settings) -> list[ListedNode]:
    """The nodes that use the database; none where it is a file."""
    if not is_networked(settings):
        return []
    require_driver()
    from folkmoot.store.postgres import ask_server
    from folkmoot.store.postgres import list_nodes as listed

    return asyncio.run(ask_server(settings.store.url, listed))


def node_name(paths: Paths) -> str:
    """The name of this hub among those at one database: its machine and data folder.

    Machines that were made alike have one host name and one path, so what tells them and their
    disks apart is in it too.
    """
    where = [socket.gethostname(), str(paths.folder.absolute())]
    with suppress(OSError):
        found = paths.folder.stat()
        where.append(f"{found.st_dev}:{found.st_ino}")
    with suppress(OSError, UnicodeDecodeError):
        where.append(MACHINE_ID.read_text().strip())
    return sha256("\0".join(where).encode()).hexdigest()[:16]


def open_master_key(settings: Settings, paths: Paths) -> MasterKey:
    """The master key, made beside the first database file; for a server it never is."""
    given = settings.master_key or None
    if not is_networked(settings):
        exists = paths.database_exists()
        return load_master_key(paths.master_key, given=given, database_exists=exists)
    key = find_key(paths.master_key, given=given, database_exists=False)
    if key is None:
        raise e.KeyUnusable(
            f"{paths.master_key}: is missing. Hubs of one database share one master key: copy it "
            f"from another, or give it as {KEY_VARIABLE}. For a new database create one: "
            "folkmoot keys create"
        )
    return key
