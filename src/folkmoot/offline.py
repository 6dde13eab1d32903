"""A hub's operations without the hub: on a data folder that is this process's alone meanwhile.

An operation gets the services that it needs, and no more: to copy the database, or to tell its key,
takes neither the lock nor the key itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from folkmoot.accounts import Accounts
from folkmoot.bus import MemoryBus
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.datafolder import DataFolder, Paths
from folkmoot.export import Exporter
from folkmoot.gateway.grants import Granting, GrantViews
from folkmoot.gateway.rights import HubRights
from folkmoot.keys import KEY_VARIABLE, load_master_key
from folkmoot.mail import Mail
from folkmoot.operations import Services
from folkmoot.operations.operator.data import KeyInUse
from folkmoot.rotation import KeyRing
from folkmoot.settings.editing import edit
from folkmoot.storage import IS_HANDLE, handles_among, hub_clock, open_master_key, open_store
from folkmoot.store import copy_database
from folkmoot.transports.listen import base_url
from folkmoot.transports.operator_socket import AsOperator, operator_app
from folkmoot.vault import Vault

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from folkmoot.core.ports import Backup
    from folkmoot.gateway.trial import TestReport
    from folkmoot.operations import Operation
    from folkmoot.settings import BackendSpec, Loaded


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


class StoppedSettings(Entity):
    """The settings file of a hub that does not run."""

    loaded: Loaded

    async def reload(self) -> Struct:
        """Raise that no hub is there to follow the settings."""
        raise e.HubNotRunning("No hub is running.")

    async def edit(self, change: Callable[[str], str], *, pretend: bool = False) -> None:
        """Change the file as long as a hub would start with it."""
        changed = await asyncio.to_thread(edit, self.loaded, change, pretend=True)
        new = changed.gateway.backends.keys() - self.loaded.gateway.backends.keys()
        namespaces = [changed.gateway.backends[name].namespace for name in new]
        taken: list[str] = []
        # A database that cannot be asked is no reason; `doctor` says what is wrong with it.
        with suppress(e.FolkmootError):
            taken = await asyncio.to_thread(handles_among, changed.settings, namespaces)
        if taken:
            raise e.SettingsUnwritable(IS_HANDLE.format(", ".join(taken)))
        if not pretend:
            self.loaded = await asyncio.to_thread(edit, self.loaded, change)


class StoppedServers(Struct, frozen=True):
    """The servers of a hub that does not run: each can be reached once."""

    loaded: Loaded

    async def test(self, spec: BackendSpec, progress: Callable[[str], None]) -> TestReport:
        """Connect once to a server, configured or not."""
        # Half a second to import, which other operations need not wait for.
        from folkmoot.gateway.trial import FirstSight
        from folkmoot.relay.hub_gateway import secret_files
        from folkmoot.relay.upstream.fleet import Fleet

        loaded, unseen = self.loaded, cast("Any", FirstSight())
        hidden = (*secret_files(loaded.settings, loaded.gateway), *loaded.files)
        return await Fleet(unseen, SystemClock(), hidden=lambda: hidden).test(spec, progress)


@asynccontextmanager
async def assembled(loaded: Loaded, row: Operation) -> AsyncIterator[ASGIApp]:
    """The application with one operation, while entered; a database must be there."""
    settings = loaded.settings
    paths, given = Paths(settings.data_folder), settings.master_key or None

    def key() -> KeyInUse:
        found = load_master_key(paths.master_key, given=given, database_exists=True)
        return KeyInUse(found.id, KEY_VARIABLE if given else str(paths.master_key))

    services = Services(
        offline=True,
        key=key,
        backups=StoppedDatabase(paths.database),
        fleet=cast("Any", StoppedServers(loaded)),
        reloading=StoppedSettings(loaded),
    )
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
