"""What the tests of mail share: a post office of real parts, with a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from nacl.public import PrivateKey

from folkmoot.accounts import Account, Accounts
from folkmoot.bus import MemoryBus
from folkmoot.core.ports import Row, Tx
from folkmoot.keys import MasterKey
from folkmoot.mail import EncryptedPayload, Mail, Page, Sent
from folkmoot.store import SqliteStore
from folkmoot.vault import Vault

SECONDS = 60
NOON = 1_700_000_000
KEY = MasterKey(bytes(range(32)))


class StillClock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.seconds = float(NOON)

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds


class PostOffice(Struct):
    """Everything mail is made of."""

    store: SqliteStore
    bus: MemoryBus
    clock: StillClock
    vault: Vault
    accounts: Accounts
    mail: Mail

    async def people(self, *handles: str) -> list[Account]:
        return [(await self.accounts.register(handle)).account for handle in handles]

    async def read(self, reader: Account, **options: Any) -> Page:
        """Read the inbox as a client does who gets the answer."""
        page = await self.mail.inbox(reader, **options)
        await self.mail.mark_delivered(reader, page.seqs)
        return page

    async def bodies(self, reader: Account, **options: Any) -> list[str | None]:
        page = await self.mail.inbox(reader, peek=True, **options)
        return [message.body for message in page.messages]

    async def write_some(self, sender: Account, to: Account, count: int) -> list[Sent]:
        return [
            await self.mail.send(sender, to.handle, body=f"number {number}")
            for number in range(count)
        ]

    async def rows(self, sql: str, *params: str | int) -> list[Row]:
        async def query(tx: Tx) -> list[Row]:
            return await tx.fetch(sql, params)

        return await self.store.read(query)

    async def change(self, sql: str, *params: str | int) -> int:
        async def unit(tx: Tx) -> int:
            return await tx.execute(sql, params)

        return await self.store.write(unit)


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[PostOffice]:
    store = await SqliteStore.open(folder / "folkmoot.db")
    bus = MemoryBus()
    try:
        vault = await Vault.load(store, KEY)
        clock = StillClock()
        accounts = Accounts(store, clock, vault, policy="open")
        mail = Mail(store, bus, clock, accounts, vault, **options)
        yield PostOffice(store, bus, clock, vault, accounts, mail)
    finally:
        await bus.close()
        await store.close()


def in_office(folder: Path, body: Callable[[PostOffice], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(SECONDS), opened(folder, **options) as office:
            await body(office)

    asyncio.run(run())


def payload(**parts: str) -> EncryptedPayload:
    """A payload as a client makes one, with some parts replaced."""
    whole = {
        "ciphertext": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "nonce": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        "sender_public_key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    }
    return EncryptedPayload(**{**whole, **parts})


def private_key_of(office: PostOffice, account: Account, sealed: str) -> PrivateKey:
    return PrivateKey(office.vault.open("private_key", account.id, sealed))


async def waiting(office: PostOffice, count: int = 1) -> None:
    """Let the loop go on until so many wait for news."""
    while office.bus.subscriptions < count:  # noqa: ASYNC110 - the bus has no event to wait for
        await asyncio.sleep(0)
