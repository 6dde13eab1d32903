"""What tests of the accounts share: a real store and vault, and a clock that can be set."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from folkmoot.accounts import Account, Accounts, Policy, Registered
from folkmoot.core.ports import Row, SqlValue, Store, Tx, Unit
from folkmoot.store import SqliteStore
from folkmoot.vault import Vault
from tests.clocks import NOON, StillClock
from tests.store.support import Gate
from tests.stores import ON_POSTGRES, open_store

T = TypeVar("T")

DAY = 86_400
START = NOON


class SetClock(StillClock):
    """A clock that is never at the beginning of a second."""

    def now(self) -> float:
        return self.seconds + 0.75

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


RECORDED = {"execute", "fetch", "fetch_one", "together", "fetch_numbered"}


class RecordingTx:
    """Passes statements on and keeps them."""

    def __init__(self, tx: Tx, statements: list[tuple[str, Sequence[SqlValue]]]) -> None:
        self._tx = tx
        self._statements = statements

    def __getattr__(self, name: str) -> Any:
        do = getattr(self._tx, name)

        async def recorded(*given: Any) -> Any:
            named = given[1:] if name == "fetch_numbered" else given
            self._statements += given if name == "together" else [(*named, ())[:2]]
            return await do(*given)

        return recorded if name in RECORDED else do


class RecordingStore:
    """A real store whose statements can be looked at and whose units can be held up."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.bus = store.bus
        self.sole_writer = store.sole_writer
        self.statements: list[tuple[str, Sequence[SqlValue]]] = []
        self.writes = 0
        self.long_reads = 0
        self.in_unit: Gate | None = None
        self.after_read: Callable[[], Awaitable[None]] | None = None

    async def write(self, unit: Unit[T], **how: bool) -> T:
        self.writes += 1

        async def recorded(tx: Tx) -> T:
            if self.in_unit is not None and ON_POSTGRES:
                await self.in_unit.wait_in_loop()
            elif self.in_unit is not None:
                self.in_unit.wait()
            return await unit(RecordingTx(tx, self.statements))

        return await self._store.write(recorded, **how)

    async def look_up(self, sql: str, key: str) -> Row | None:
        return await self.read(lambda tx: tx.fetch_one(sql, (key,)))

    async def read(self, query: Unit[T], *, long: bool = False) -> T:
        self.long_reads += long
        result = await self._store.read(
            lambda tx: query(RecordingTx(tx, self.statements)), long=long
        )
        if self.after_read is not None:
            await self.after_read()
        return result


class World:
    """A hub's accounts, and what they are made of."""

    def __init__(self, store: SqliteStore, policy: Policy, **options: Any) -> None:
        self.inner = store
        self.store = RecordingStore(store)
        self.clock = SetClock()
        self.vault = Vault(secrets.token_bytes(32), "test")
        self.accounts = Accounts(self.store, self.clock, self.vault, policy=policy, **options)

    async def join(self, handle: str, **fields: Any) -> Account:
        """Register someone, and give them this profile."""
        account = (await self.accounts.register(handle)).account
        return await self.accounts.set_profile(account, **fields) if fields else account

    async def register(self, handle: str) -> Registered:
        return await self.accounts.register(handle)

    async def rows(self, sql: str, *params: SqlValue) -> list[Row]:
        return await self.inner.read(lambda tx: tx.fetch(sql, params))

    def with_policy(self, policy: Policy) -> Accounts:
        """The same accounts under another policy."""
        return Accounts(self.store, self.clock, self.vault, policy=policy)

    async def may_write(self, sender: Account, to: str) -> None:
        """What mail asks before it sends."""

        async def query(tx: Tx) -> None:
            recipient = await self.accounts.resolve(tx, to)
            await self.accounts.may_write_to(tx, sender, recipient)

        await self.store.read(query)


async def refused(
    action: Awaitable[object], error: type[Exception], match: str | None = None
) -> str:
    """What is said to someone who asks for what they cannot have."""
    with pytest.raises(error, match=match) as told:
        await action
    return str(getattr(told.value, "message", ""))


@asynccontextmanager
async def world(folder: Path, policy: Policy = "open", **options: Any) -> AsyncIterator[World]:
    store = await open_store(folder / "folkmoot.db")
    try:
        yield World(store, policy, **options)
    finally:
        await store.close()
