"""What the tests of mail share: a post office of real parts, with a clock that stands still."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from nacl.public import PrivateKey

from folkmoot.accounts import Account, Accounts
from folkmoot.bus import MemoryBus
from folkmoot.core.ports import Row, Store, Tx
from folkmoot.keys import MasterKey
from folkmoot.mail import EncryptedPayload, Mail, MailPage, Sent
from folkmoot.quotas import MAIL_SIZE
from folkmoot.store import SqliteStore, Synchronous
from folkmoot.vault import Vault
from tests.accounts.support import refused as refused
from tests.clocks import NOON as NOON
from tests.clocks import StillClock
from tests.stores import ON_POSTGRES, open_store

SECONDS = 300
KEY = MasterKey(bytes(range(32)))

MESSAGE_SEQ = (
    "SELECT last_value AS value FROM message_seq_numbers"
    if ON_POSTGRES
    else "SELECT value FROM counters WHERE name = 'message_seq'"
)
# What is wrong when it finds anything: what is kept must be what would be counted.
BOOKS = {
    "unread counts": "SELECT m.thread_id, m.user_id FROM members m WHERE m.unread <> "
    "(SELECT COUNT(*) FROM copies c WHERE c.user_id = m.user_id AND c.thread_id = m.thread_id "
    "AND c.unread = 1)",
    "last messages": "SELECT m.thread_id, m.user_id FROM members m JOIN copies c "
    "ON c.user_id = m.user_id AND c.thread_id = m.thread_id "
    "GROUP BY m.thread_id, m.user_id HAVING m.last_seq <> MAX(c.seq)",
    "messages that are nobody's": "SELECT seq FROM messages "
    "WHERE seq NOT IN (SELECT seq FROM copies)",
    "copies in no thread of theirs": "SELECT c.seq FROM copies c LEFT JOIN members m "
    "ON m.user_id = c.user_id AND m.thread_id = c.thread_id WHERE m.user_id IS NULL",
    "unread of one's own": "SELECT seq FROM copies WHERE unread = 1 AND incoming = 0",
    "shares of mail": "SELECT x.from_id FROM (SELECT from_id, COUNT(*) AS messages, "
    f"SUM({MAIL_SIZE}) AS bytes FROM messages WHERE kept = 0 GROUP BY from_id) x "
    "LEFT JOIN mail_shares s ON s.account = x.from_id "
    "WHERE s.account IS NULL OR s.messages <> x.messages OR s.bytes <> x.bytes",
    "shares of nothing": "SELECT account FROM mail_shares WHERE messages + bytes <> 0 "
    "AND account NOT IN (SELECT from_id FROM messages WHERE kept = 0)",
    "mail that is kept": "SELECT s.account FROM mail_shares s WHERE s.kept <> "
    f"(SELECT COALESCE(SUM({MAIL_SIZE}), 0) FROM messages m WHERE m.to_id = s.account "
    "AND m.kept = 1)",
    "a sequence that was passed": f"SELECT n.value FROM ({MESSAGE_SEQ}) n "
    "WHERE n.value < (SELECT COALESCE(MAX(seq), 0) FROM messages)",
}


class PostOffice(Struct):
    """Everything mail is made of."""

    store: SqliteStore
    bus: MemoryBus
    clock: StillClock
    vault: Vault
    accounts: Accounts
    mail: Mail

    async def person(self, handle: str) -> Account:
        return (await self.accounts.register(handle)).account

    async def people(self, *handles: str) -> list[Account]:
        return [await self.person(handle) for handle in handles]

    async def read(self, reader: Account, **options: Any) -> MailPage:
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


class SharedStore:
    """The store as if others wrote to it too, so that nothing is kept of it."""

    sole_writer = False

    def __init__(self, store: Store) -> None:
        self.read = store.read


def forgetful(office: PostOffice) -> Mail:
    """The same mailboxes, read from the store every time."""
    store: Any = SharedStore(office.store)
    return Mail(store, office.bus, office.clock, office.accounts, office.vault)


async def pages(ask: Callable[..., Awaitable[Any]]) -> AsyncIterator[Any]:
    """All pages of a list, each asked for by the cursor of the one before."""
    page = await ask()
    yield page
    while page.next_cursor:
        page = await ask(cursor=page.next_cursor)
        yield page


async def check_books(office: PostOffice) -> None:
    """Compare what is kept with what would be counted."""
    for what, sql in BOOKS.items():
        assert await office.rows(sql) == [], what


@asynccontextmanager
async def opened(
    folder: Path, *, vfs: str | None = None, synchronous: Synchronous = "full", **options: Any
) -> AsyncIterator[PostOffice]:
    bus = MemoryBus()
    store = await open_store(folder / "folkmoot.db", vfs=vfs, synchronous=synchronous, bus=bus)
    try:
        vault = await Vault.load(store, KEY)
        clock = StillClock()
        accounts = Accounts(store, clock, vault, policy="open")
        mail = Mail(store, bus, clock, accounts, vault, **options)
        yield PostOffice(store, bus, clock, vault, accounts, mail)
    finally:
        await bus.close()
        await store.close()


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


def spellings(secret: bytes) -> list[bytes]:
    """A secret as it would be found, plain or encoded wherever it might begin."""
    found = [secret, secret.hex().encode(), secret.hex().upper().encode()]
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret)
        # The characters that also hold what stands before or after it are left out.
        found.append(encoded[4 if shift else 0 : -4])
    return found
