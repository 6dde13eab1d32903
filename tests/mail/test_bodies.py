from __future__ import annotations

import pytest

from folkmoot.accounts import Account
from folkmoot.core.ports import Tx
from folkmoot.mail.encryption import Bodies, SharedKeys
from folkmoot.mail.limits import MAX_CACHED_BOX
from folkmoot.mail.queries_pages import CopyRow, Start, copies_before
from tests.mail.support import PostOffice


async def read(office: PostOffice, bodies: Bodies, reader: Account) -> list[str | None]:
    async def query(tx: Tx) -> list[str | None]:
        rows: list[CopyRow] = await copies_before(tx, reader.id, None, Start(1 << 60), 100)
        return [await bodies.of(tx, reader, row) for row in rows]

    return await office.store.read(query)


def bodies_of(office: PostOffice, most: int) -> Bodies:
    return Bodies(SharedKeys(office.accounts.private_key), most=most)


async def test_no_more_bodies_are_kept_than_may_be_and_all_are_read(office, alice, bob):
    await office.write_some(alice, bob, 10)
    bodies = bodies_of(office, most=3)
    written = [f"number {number}" for number in reversed(range(10))]
    for _ in range(2):
        assert await read(office, bodies, bob) == written
        assert len(bodies) == 3


async def test_a_long_body_is_read_and_not_kept(office, alice, bob):
    long = "x" * MAX_CACHED_BOX
    await office.mail.send(alice, "bob", body=long)
    bodies = bodies_of(office, most=3)
    assert await read(office, bodies, bob) == [long]
    assert len(bodies) == 0


@pytest.mark.parametrize("column", ["ciphertext", "nonce", "sender_key"])
async def test_what_was_changed_at_rest_after_it_was_read_is_not_shown_again(office, column):
    alice, bob = await office.people("alice", "bob")
    await office.mail.send(alice, "bob", body="as it was")
    assert await office.bodies(bob) == ["as it was"]
    [(stored,)] = await office.rows(f"SELECT {column} FROM messages")
    changed = ("B" if stored[0] != "B" else "C") + stored[1:]
    await office.change(f"UPDATE messages SET {column} = ?", changed)
    assert await office.bodies(bob) == [None]
