"""Databases with very many messages, or very many people, made quickly.

The first message of each thread is sent as any other; the rest are rows like it, with its sealed
body, so that every one of them can be opened and read.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from folkmoot.accounts import Account, Accounts
from folkmoot.accounts.queries import Secrets, claim_handle, insert_user
from folkmoot.bus import MemoryBus
from folkmoot.clock import SystemClock
from folkmoot.core.ports import SqlValue, Tx
from folkmoot.keys import MasterKey
from folkmoot.mail import Mail
from folkmoot.store import SqliteStore
from folkmoot.vault import Vault

PEERS = 20
READER, WRITER = "reader", "peer_0"
BODY = "All is well here, and the bread is in the oven; come by when you can."
KEY = MasterKey(bytes(range(32)))
CODES = "codes.json"
CHUNK = 50_000
PEOPLE_CHUNK = 2_000
FIRST = ("anna", "bella", "carl", "dora", "emil", "fred", "greta", "hugo", "ines", "jan")
LAST = ("Miller", "Smith", "Carter", "Fisher", "Potter", "Weaver", "Mason")


class Office(NamedTuple):
    """Everything mail is made of, and the handles and recovery codes of reader and writer."""

    store: SqliteStore
    accounts: Accounts
    mail: Mail
    codes: list[list[str]]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Office]:
    store, bus, clock = await SqliteStore.open(folder / "mail.db"), MemoryBus(), SystemClock()
    try:
        vault = await Vault.load(store, KEY)
        accounts = Accounts(store, clock, vault, policy="open")
        mail = Mail(store, bus, clock, accounts, vault)
        codes = folder / CODES
        if not codes.exists():
            made = [await accounts.register(handle) for handle in (READER, WRITER)]
            codes.write_text(json.dumps([[one.account.handle, one.recovery_code] for one in made]))
        yield Office(store, accounts, mail, json.loads(codes.read_text()))
    finally:
        await bus.close()
        await store.close()


SCATTERED = "lower(hex(randomblob(16)))"
"""Ids that lie as far apart in their index as real ones do."""

MESSAGES = f"""
INSERT INTO messages (seq, id, thread_id, from_id, to_id, reply_to, priority, mode, ciphertext,
nonce, sender_key, recipient_key, created_at)
WITH RECURSIVE n (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
SELECT n, {SCATTERED}, thread_id, from_id, to_id, NULL, 'normal', mode, ciphertext, nonce,
sender_key, recipient_key, created_at FROM n CROSS JOIN messages WHERE seq = 1 + n % {PEERS}
"""
COPIES = """
INSERT INTO copies SELECT {}, seq, created_at, thread_id, {}, {}, 0 FROM messages
WHERE seq BETWEEN ?1 AND ?2
"""
ROWS = (MESSAGES, COPIES.format("to_id", 1, 1), COPIES.format("from_id", 0, 0))
MEMBERS = """
UPDATE members SET (last_seq, unread) = (SELECT MAX(seq), SUM(c.unread) FROM copies c
WHERE c.user_id = members.user_id AND c.thread_id = members.thread_id)
"""
COUNTER = """
UPDATE counters SET value = (SELECT MAX(seq) FROM messages) WHERE name = 'message_seq'
"""


async def flood(folder: Path, count: int) -> None:
    """Store so many messages to the reader, and see that the last and the first can be read."""
    async with opened(folder) as office:
        writer = (await office.accounts.recover(*office.codes[1])).account
        others = [
            (await office.accounts.register(f"peer_{number}")).account for number in range(1, PEERS)
        ]
        for peer in (writer, *others):
            await office.mail.send(peer, READER, body=BODY)
        for start in range(PEERS + 1, count + 1, CHUNK):
            end = min(start + CHUNK - 1, count)
            for sql in ROWS:
                await change(office, sql, start, end)
        for sql in (MEMBERS, COUNTER):
            await change(office, sql)
        reader = (await office.accounts.recover(*office.codes[0])).account
        page = await office.mail.inbox(reader, limit=100, peek=True)
        assert all(message.body == BODY for message in page.messages)
        assert (await office.mail.digest(reader)).total_unread == count


async def change(office: Office, sql: str, *params: SqlValue) -> None:
    """Run one statement in a transaction of its own."""

    async def unit(tx: Tx) -> None:
        await tx.execute(sql, params)

    await office.store.write(unit)


async def fill_people(folder: Path, count: int) -> None:
    """Make so many accounts; nobody will sign in to them."""
    async with opened(folder) as office:
        key = (await office.accounts.recover(*office.codes[1])).account.public_key
        for start in range(0, count, PEOPLE_CHUNK):
            numbers = range(start, min(start + PEOPLE_CHUNK, count))

            async def unit(tx: Tx, numbers: range = numbers) -> None:
                for number in numbers:
                    await insert_person(tx, number, key)

            await office.store.write(unit)


async def insert_person(tx: Tx, number: int, key: str) -> None:
    """Store someone with a name that many have in part."""
    first, last = FIRST[number % len(FIRST)], LAST[number % len(LAST)]
    account = Account(
        id=str(uuid.uuid4()),
        handle=f"{first}_{number}",
        display_name=f"{first.title()} {last}",
        bio="",
        privacy="public",
        status="",
        account_type="person",
        public_key=key,
        client_public_key=None,
        created_at=1,
        updated_at=1,
    )
    await insert_user(tx, account, Secrets("", ""))
    await claim_handle(tx, account.handle, account.id, 1)
