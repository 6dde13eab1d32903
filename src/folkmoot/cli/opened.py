"""A data folder that a command opens itself, because no hub runs on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from folkmoot.datafolder import Paths

if TYPE_CHECKING:
    from folkmoot.settings import Settings
    from folkmoot.store import SqliteStore
    from folkmoot.vault import Vault


class Opened(NamedTuple):
    """What is in a data folder: its files, its database, and what opens what is sealed there."""

    paths: Paths
    store: SqliteStore
    vault: Vault


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Opened]:
    """The data folder, which is this process's alone meanwhile; a database must be in it."""
    from folkmoot.datafolder import DataFolder
    from folkmoot.keys import load_master_key
    from folkmoot.store import SqliteStore
    from folkmoot.vault import Vault

    paths = Paths(settings.data_folder)
    async with AsyncExitStack() as stack:
        stack.enter_context(DataFolder.open(paths.folder))
        given = settings.master_key or None
        key = load_master_key(paths.master_key, given=given, database_exists=True)
        store = await SqliteStore.open(paths.database)
        stack.push_async_callback(store.close)
        yield Opened(paths, store, await Vault.load(store, key))
