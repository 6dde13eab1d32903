"""What the tests of stored rooms share: a real store with accounts, and rooms to put into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from folkmoot.accounts import Account, Accounts
from folkmoot.rooms import queries, queries_members, queries_messages
from folkmoot.rooms.machine import Append, Role
from folkmoot.rooms.model import Membership, RoomPolicy, RoomRecord
from folkmoot.store import SqliteStore
from folkmoot.vault import Vault
from tests.mail.support import KEY, NOON, StillClock
from tests.stores import open_store

T = TypeVar("T")


class Storehouse(Struct):
    """A store, the accounts in it, and short ways to use it."""

    store: SqliteStore
    accounts: Accounts

    async def people(self, *handles: str) -> list[Account]:
        return [(await self.accounts.register(handle)).account for handle in handles]

    async def write(self, do: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        """Run one of the queries as a unit."""
        return await self.store.write(lambda tx: do(tx, *args, **options))

    async def read(self, ask: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        return await self.store.read(lambda tx: ask(tx, *args, **options))

    async def room(self, name: str = "square", **parts: Any) -> RoomRecord:
        room = await self.write(queries.insert_room, record(name, **parts))
        assert room is not None
        return room

    async def again(self, room: RoomRecord) -> RoomRecord:
        """A room as it is stored now."""
        found = await self.read(queries.room_by_id, room.id)
        assert found is not None
        return found

    async def say(self, room: RoomRecord, messages: list[Append]) -> None:
        await self.write(queries_messages.insert, room.id, messages)

    async def page(self, room: RoomRecord, **wanted: Any) -> list[Append]:
        return await self.read(queries_messages.page, room.id, **wanted)

    async def all_of(self, room: RoomRecord) -> list[Append]:
        """All that was said in a room."""
        return await self.page(room, after=0, limit=999)

    async def used(self, room: RoomRecord, ids: list[str]) -> Any:
        """The last messages that have these ids."""
        return await self.read(queries_messages.used, room.id, ids)

    async def member(self, room: RoomRecord, account: Account) -> Membership | None:
        return await self.read(queries_members.membership, room.id, account.id)

    async def put(
        self, room: RoomRecord, account: Account, role: Role = Role.MEMBER, state: Any = "member"
    ) -> None:
        member = Membership(room.id, account.id, role, state)
        await self.write(queries_members.put_membership, member)


def record(name: str = "square", **parts: Any) -> RoomRecord:
    """A room that is not stored yet."""
    whole: dict[str, Any] = {"epoch": "e1", "access": "open", "durable": True}
    whole |= {"capabilities": None, "grants": {}, "policy": RoomPolicy()}
    whole |= {"first_seq": 1, "created_by": None, "created_at": NOON, "updated_at": NOON}
    return RoomRecord(**{"id": 0, "name": name, **whole, **parts})


def said(seq: int, **parts: Any) -> Append:
    """The message with this number, a second after the one before."""
    whole: dict[str, Any] = {
        "seq": seq,
        "id": f"m{seq}",
        "at": NOON + seq + 0.25,
        "kind": "chat.message",
        "data": b'{"seq":%d}' % seq,
        "account": "a1",
    }
    return Append(**{**whole, **parts})


def numbers(messages: list[Append]) -> list[int]:
    return [one.seq for one in messages]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Storehouse]:
    store = await open_store(folder / "folkmoot.db", synchronous="normal")
    try:
        vault = await Vault.load(store, KEY)
        yield Storehouse(store, Accounts(store, StillClock(), vault, policy="open"))
    finally:
        await store.close()
