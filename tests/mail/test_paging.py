"""A page has a bound in bytes beside the one in entries, and the next begins where it ended."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import pytest

from folkmoot.accounts import Account
from folkmoot.core.ports import Row, SqlValue, Tx, Unit
from folkmoot.mail import Mail, MailPage
from folkmoot.mail.limits import MAX_PAGE_BYTES, MAX_THREADS_PAGE_BYTES
from folkmoot.store import SqliteStore
from tests.mail.support import PostOffice, pages, payload

T = TypeVar("T")

# Characters of a body of which thirteen make a page.
LONG = 60_000
# Of a row beside its box, and of the rows that are looked at beside it.
OVERHEAD = 4_096


class WeighingTx:
    """Passes statements on and adds up the text that they bring."""

    def __init__(self, tx: Tx, store: WeighingStore) -> None:
        self._tx = tx
        self._store = store

    async def fetch(self, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
        return self._store.weigh(await self._tx.fetch(sql, params))

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        row = await self._tx.fetch_one(sql, params)
        return None if row is None else self._store.weigh([row])[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class WeighingStore:
    """A real store that tells how much text and how many statements its last query took."""

    sole_writer = False

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.bus, self.write = store.bus, store.write
        self.weight = self.statements = 0

    def weigh(self, rows: list[Row]) -> list[Row]:
        self.statements += 1
        self.weight += sum(len(value) for row in rows for value in row if isinstance(value, str))
        return rows

    async def look_up(self, sql: str, key: str) -> Row | None:
        return await self.read(lambda tx: tx.fetch_one(sql, (key,)))

    async def read(self, query: Unit[T], *, long: bool = False) -> T:
        async def weighed(tx: Tx) -> T:
            self.weight = self.statements = 0
            return await query(WeighingTx(tx, self))

        return await self._store.read(weighed, long=long)


def weighing(office: PostOffice) -> tuple[WeighingStore, Mail]:
    store = WeighingStore(office.store)
    return store, Mail(store, office.bus, office.clock, office.accounts, office.vault)


def text(number: int, characters: int = LONG) -> str:
    return f"{number:03}".ljust(characters, "x")


async def write_long(office: PostOffice, sender: Account, to: Account, count: int) -> None:
    for number in range(count):
        await office.mail.send(sender, to.handle, body=text(number))


def numbers(page: MailPage) -> list[int]:
    return [int((message.body or "")[:3]) for message in page.messages]


def boxes(page: MailPage) -> int:
    """What the boxes of a page of one-byte characters add up to."""
    return sum(len(base64.b64encode(bytes(len(m.body or "") + 16))) for m in page.messages)


async def test_a_page_ends_where_its_boxes_reach_the_bound_and_the_next_goes_on(office, alice, bob):
    await write_long(office, alice, bob, 30)
    store, mail = weighing(office)
    for of_thread in (None, (await mail.threads(bob)).threads[0].id):
        seen: list[list[int]] = []
        ask = partial(mail.inbox, bob, thread_id=of_thread, limit=100, peek=True)
        async for page in pages(ask):
            assert boxes(page) <= MAX_PAGE_BYTES
            assert store.weight <= MAX_PAGE_BYTES + OVERHEAD * 30
            seen.append(numbers(page))
        assert [number for page in seen for number in page] == list(reversed(range(30)))
        assert [len(page) for page in seen] == [13, 13, 4]


async def test_a_conversation_has_the_same_bound(office, alice, bob):
    await write_long(office, alice, bob, 20)
    thread_id = (await office.mail.threads(alice)).threads[0].id
    first = await office.mail.thread(alice, thread_id, limit=100)
    assert numbers(first.page) == list(range(19, 6, -1))
    rest = await office.mail.thread(alice, thread_id, limit=100, cursor=first.page.next_cursor)
    assert numbers(rest.page) == list(range(6, -1, -1))
    assert rest.page.next_cursor is None


async def test_only_what_a_page_had_room_for_is_read_afterwards(office, alice, bob):
    await write_long(office, alice, bob, 20)
    page = await office.read(bob, limit=100)
    assert len(page.seqs) == len(page.messages) == 13
    assert (await office.mail.digest(bob)).total_unread == 7


async def test_waiting_brings_the_unread_in_pages_of_that_bound(office, alice, bob):
    await write_long(office, alice, bob, 20)
    first = await office.read(bob, limit=100, wait=1)
    assert numbers(first) == list(range(19, 6, -1))
    assert first.next_cursor is not None
    assert numbers(await office.read(bob, limit=100, wait=1)) == list(range(6, -1, -1))
    assert (await office.mail.digest(bob)).total_unread == 0


@pytest.mark.settings(max_body_characters=300000)
async def test_a_page_shows_one_message_however_long(office, alice, bob):
    bodies = [f"{number}" + "\U0001f600" * 299_999 for number in range(3)]
    for words in bodies:
        await office.mail.send(alice, "bob", body=words)
    shown = [page.messages async for page in pages(partial(office.mail.inbox, bob))]
    assert [[message.body for message in page] for page in shown] == [[it] for it in bodies[::-1]]


async def test_payloads_that_clients_encrypted_count_as_well_and_come_whole(office, alice, bob):
    sealed = payload(ciphertext=base64.b64encode(bytes(400_000)).decode())
    for _ in range(3):
        await office.mail.send(alice, "bob", encrypted_payload=sealed)
    page = await office.mail.inbox(bob)
    [message] = page.messages
    assert message.encrypted_payload == sealed
    assert page.next_cursor is not None


@pytest.mark.parametrize(("characters", "statements"), [(5, 1), (6_128, 1), (6_129, 101)])
async def test_a_hundred_boxes_of_up_to_eight_kibibytes_are_one_page_and_one_statement(
    office, alice, bob, characters, statements
):
    for number in range(101):
        await office.mail.send(alice, "bob", body=text(number, characters))
    store, mail = weighing(office)
    # Once before, so that the key of the pair is known.
    await mail.inbox(bob, limit=1)
    assert numbers(await mail.inbox(bob, limit=100)) == list(range(100, 0, -1))
    assert store.statements == statements


async def test_short_messages_among_long_ones_keep_their_place(office, alice, bob):
    lengths = [10, 90_000, 10, 10, 100_000, 6_000, 90_000] * 6
    for number, length in enumerate(lengths):
        await office.mail.send(alice, "bob", body=text(number, length))
    ask = partial(office.mail.inbox, bob, limit=20)
    seen = [message.body async for page in pages(ask) for message in page.messages]
    assert seen == [text(n, length) for n, length in enumerate(lengths)][::-1]


async def test_a_list_of_threads_opens_so_much_and_goes_on_by_its_cursor(office):
    reader, *peers = await office.people("reader", *(f"peer_{n:02}" for n in range(12)))
    for peer in peers:
        await office.mail.send(peer, "reader", body=peer.handle + "\U0001f600" * 99_000)
    store, mail = weighing(office)
    seen: list[str] = []
    lengths = []
    async for page in pages(partial(mail.threads, reader)):
        assert store.weight <= MAX_THREADS_PAGE_BYTES + OVERHEAD * 12
        for thread in page.threads:
            assert thread.last_message_body.startswith(thread.other_handle)
            assert len(thread.last_message_body) == 500
        seen += [thread.other_handle for thread in page.threads]
        lengths.append(len(page.threads))
    assert seen == [peer.handle for peer in reversed(peers)]
    assert lengths == [7, 5]
