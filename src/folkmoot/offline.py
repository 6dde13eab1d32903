"""A hub's operations without the hub: on a data folder that is this process's alone meanwhile.

An operation gets the services that it needs, and no more: to copy the database, or to tell its key,
takes neither the lock nor the key itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from msgspec import Struct

from folkmoot.accounts import Accounts
from folkmoot.bus import MemoryBus
from folkmoot.datafolder import DataFolder, Paths
from folkmoot.export import Exporter
from folkmoot.gateway.grants import Granting, GrantViews
from folkmoot.gateway.rights import HubRights
from folkmoot.keys import KEY_VARIABLE, load_master_key
from folkmoot.mail import Mail
from folkmoot.operations import Services
from folkmoot.operations.operator.data import KeyInUse
from folkmoot.rotation import KeyRing
from folkmoot.storage import hub_clock, open_master_key, open_store
from folkmoot.store import copy_database
from folkmoot.transports.listen import base_url
from folkmoot.transports.operator_socket import AsOperator, operator_app
from folkmoot.vault import Vault

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from folkmoot.core.ports import Backup
    from folkmoot.operations import Operation
    from folkmoot.settings import Loaded


class StoppedDatabase(Struct, eq=False):
    """The database of a stopped hub, for a copy."""

    file: Path

    async def backup(
        self,
        target: str,
        *,
        overwrite: bool = False,
        progress: Callable[[int, int], None] | None,
    ) -> Backup:
        """Copy the database as it is, whichever version wrote it."""
        loop, stop = asyncio.get_running_loop(), Event()

        def tell(copied: int, pages: int) -> None:
            if progress is not None:
                loop.call_soon_threadsafe(progress, copied, pages)

        try:
            return await asyncio.to_thread(
                copy_database,
                self.file,
                Path(target),
                overwrite=overwrite,
                progress=tell,
                stop=stop,
            )
        finally:
            stop.set()


@asynccontextmanager
async def assembled(loaded: Loaded, row: Operation) -> AsyncIterator[ASGIApp]:
    """The application with one operation, while entered; a database must be there."""
    settings = loaded.settings
    paths, given = Paths(settings.data_folder), settings.master_key or None

    def key() -> KeyInUse:
        found = load_master_key(paths.master_key, given=given, database_exists=True)
        return KeyInUse(found.id, KEY_VARIABLE if given else str(paths.master_key))

    services = Services(offline=True, key=key, backups=StoppedDatabase(paths.database))
    async with AsyncExitStack() as stack:
        if not services.has(row):
            services = await opened(loaded, paths, stack)
        yield AsOperator(operator_app(services, (row,)))


async def opened(loaded: Loaded, paths: Paths, stack: AsyncExitStack) -> Services:
    """What can be done with a data folder that no hub uses."""
    settings = loaded.settings
    given = settings.master_key or None
    stack.enter_context(DataFolder.open(paths.folder))
    key = open_master_key(settings, paths)
    bus, clock = MemoryBus(), hub_clock(settings)
    stack.push_async_callback(bus.close)
    store = await open_store(settings, paths, bus, clock=clock)
    stack.push_async_callback(store.close)
    vault = await Vault.load(store, key)
    accounts = Accounts(store, clock, vault, policy="closed")
    rights = await HubRights.open(store, clock, accounts, loaded.gateway)
    granting = Granting(rights, store, clock, accounts, offline=True)
    mail = Mail(store, bus, clock, accounts, vault)
    tls = bool(settings.tls.certificate)
    return Services(
        accounts=accounts,
        mail=mail,
        store=store,
        clock=clock,
        url=settings.public_url or base_url(settings.host, settings.port, tls=tls),
        offline=True,
        granting=granting,
        grant_views=GrantViews(rights, granting, store, clock),
        exporter=Exporter(store, clock, accounts, mail),
        key_ring=KeyRing(store, vault, paths.master_key, given),
    )
