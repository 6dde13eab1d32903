"""A new master key in place of the old: a change that cannot be left half done.

The order makes it so. The new key waits on the disk beside the key file, the database *admits* it
beside the old one, it takes the file's place in one step, and only then does the database *settle*
on it. Wherever this stops, the key that is in the file opens the database, and the next start ends
the change. A key that was given in the environment cannot be put in place from here: the new one is
admitted and *awaited*, and a start with it ends the change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.ports import Database
from folkmoot.keys import (
    KEY_VARIABLE,
    MasterKey,
    Replacement,
    fresh_key,
    load_master_key,
    parse_key,
    put_key,
    read_key,
    spellings,
)
from folkmoot.taskgroups import uninterrupted
from folkmoot.telemetry.redaction import redactor
from folkmoot.vault import Vault

logger = logging.getLogger("folkmoot.keys")

T = TypeVar("T")


class Rotated(Struct, frozen=True):
    """A change of the master key, told by the ids of the keys."""

    old: str
    new: str
    settled: bool
    """Whether the old key opens nothing any more; else a start with the new one is awaited."""
    kept: str | None
    """The file that keeps the old key."""
    withdrawn: str | None
    """The key that was awaited until now and opens nothing any more."""


class KeyRing:
    """The master key of a data folder: where it comes from, and how it is changed."""

    def __init__(self, store: Database, vault: Vault, file: Path, given: str | None) -> None:
        self._store = store
        self._vault = vault
        self._file = file
        self._given = given
        self._busy = False

    @property
    def source(self) -> str:
        """Where the key comes from: the variable, or the path of the file."""
        return KEY_VARIABLE if self._given else str(self._file)

    @property
    def key_id(self) -> str:
        """The id of the key in use."""
        return self._vault.master_id

    async def rotate(
        self, new: str | None = None, *, keep: Path | None = None, discard: bool = False
    ) -> Rotated:
        """Change to a new key, given or created here.

        The old key is kept in a file of its own, named, or beside the key file unless discarded.
        """
        return await self._alone(self._rotate(new, keep, discard=discard))

    async def cancel(self) -> str:
        """Await the new key no more, and answer its id."""
        return await self._alone(self._cancel())

    async def _alone(self, work: Coroutine[Any, Any, T]) -> T:
        if self._busy:
            work.close()
            raise e.CommandFailed("The master key is already being rotated. Try again later.")
        self._busy = True
        try:
            return await uninterrupted(work, log_failure)
        finally:
            self._busy = False

    async def _rotate(self, new: str | None, keep: Path | None, *, discard: bool) -> Rotated:
        fresh = fresh_key() if new is None else parse_key(new, "The new key")
        redactor.hide(*spellings(fresh), new or "")
        current = await asyncio.to_thread(self._find)
        if fresh.id == current.id:
            raise e.CommandInvalid(f"The new master key is already in use ({current.id}).")
        # A change that was cut short while the hub ran on ends here.
        await self._vault.settle_on(self._store, current)
        withdrawn = self._vault.awaited_id
        if withdrawn == fresh.id:
            withdrawn = None
        if self._given is None:
            if keep is None and not discard:
                keep = kept_beside(self._file, current)
            await self._replace(current, fresh, keep)
        elif new is None:
            raise e.CommandInvalid(
                f"The master key comes from {KEY_VARIABLE}, which only you can change: have the "
                "new one put into a file with --to, or give it with --from."
            )
        else:
            await self._await(current, fresh, keep)
        settled = self._given is None
        logger.info(
            "the master key was rotated" if settled else "a master key rotation is pending",
            extra={"old_id": current.id, "new_id": fresh.id},
        )
        kept = None if keep is None else str(keep)
        return Rotated(current.id, fresh.id, settled, kept, withdrawn)

    def _find(self) -> MasterKey:
        return load_master_key(self._file, given=self._given, database_exists=True)

    async def _replace(self, current: MasterKey, fresh: MasterKey, keep: Path | None) -> None:
        """Put the new key where the old one is, and let the database follow."""
        with ExitStack() as undo:
            replacement = await asyncio.to_thread(Replacement, self._file, fresh)
            undo.callback(replacement.discard)
            if keep is not None and await asyncio.to_thread(keep_old, keep, current):
                undo.callback(keep.unlink, missing_ok=True)
            # The new key must not be in the file before the database is sure to know it.
            async with self._admitted(fresh, awaited=False):
                await asyncio.to_thread(replacement.publish)
            undo.pop_all()
        try:
            # Nor may the old one be forgotten while a power cut could bring it back.
            await asyncio.to_thread(replacement.sync)
            await self._vault.settle_on(self._store, fresh)
        except e.FolkmootError as error:
            raise e.CommandFailed(
                f"The new master key ({fresh.id}) is in place, and the old one ({current.id}) "
                f"still opens the database; the next start ends the change. {error.message}"
            ) from error

    async def _await(self, current: MasterKey, fresh: MasterKey, keep: Path | None) -> None:
        """Let the database open with the new key too, from when a hub is started with it."""
        with ExitStack() as undo:
            if keep is not None and await asyncio.to_thread(keep_old, keep, current):
                undo.callback(keep.unlink, missing_ok=True)
            async with self._admitted(fresh, awaited=True):
                undo.pop_all()

    @asynccontextmanager
    async def _admitted(self, fresh: MasterKey, *, awaited: bool) -> AsyncIterator[None]:
        """Have the new key admitted for good, unless what is done then fails."""
        try:
            await self._vault.admit(self._store, fresh, awaited=awaited)
            await self._store.sync()
            yield
        except e.FolkmootError:
            # Where the disk refuses this too, the next start or the next change does it.
            with suppress(e.FolkmootError):
                await self._vault.withdraw(self._store)
            raise

    async def _cancel(self) -> str:
        awaited = self._vault.awaited_id
        if awaited is None:
            raise e.CommandInvalid("No rotation is pending, so there is nothing to cancel.")
        await self._vault.withdraw(self._store)
        logger.info("the pending master key rotation was cancelled", extra={"new_id": awaited})
        return awaited


def kept_beside(file: Path, key: MasterKey) -> Path:
    """Where an old key is kept unless the operator says otherwise; its id is in the name."""
    return file.with_name(f"{file.name}.{key.id}.old")


def keep_old(file: Path, key: MasterKey) -> bool:
    """Keep a key in a file, and answer whether it was not there yet."""
    try:
        put_key(file, key)
    except e.KeyUnusable:
        # A change that was cut short may have left it.
        if not holds(file, key):
            raise
        return False
    return True


def holds(file: Path, key: MasterKey) -> bool:
    """Whether a file contains this key."""
    try:
        return read_key(file).id == key.id
    except e.KeyUnusable:
        return False


def log_failure(failure: BaseException) -> None:
    """Log why the key was not rotated, where whoever asked for it is gone."""
    logger.error("the master key was not rotated", extra={"reason": str(failure)})
