"""The rooms in an export: what someone is to each, may do there, and said there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec

from folkmoot.accounts import Account
from folkmoot.core.ports import Store, Tx
from folkmoot.rooms import queries, queries_messages
from folkmoot.rooms.model import Membership, RoomRecord

ROOMS = 100
MESSAGES = 32
"""How many are read at a time; each of them may be large."""


class Said:
    """How much has been written."""

    def __init__(self) -> None:
        self.rooms = 0
        self.messages = 0


async def room_pieces(store: Store, account: Account, said: Said) -> AsyncIterator[bytes]:
    """The entries of a JSON array: every room the account is something to or said something in.

    Rooms that are in memory alone keep nothing, so they have nothing to give.
    """
    last = 0
    while found := await store.read(partial(_rooms, after=last, account=account), long=True):
        last = found[-1][0].id
        for record, membership in found:
            async for piece in _room(store, account, record, membership, said):
                yield piece


async def _room(
    store: Store,
    account: Account,
    record: RoomRecord,
    membership: Membership | None,
    said: Said,
) -> AsyncIterator[bytes]:
    begun = membership is not None
    if begun:
        yield _opening(account, record, membership, said)
    count, after = 0, 0
    while True:
        query = partial(
            queries_messages.said_in,
            room_id=record.id,
            account_id=account.id,
            after=after,
            limit=MESSAGES,
        )
        page = await store.read(query, long=True)
        if page.messages and not begun:
            begun = True
            yield _opening(account, record, membership, said)
        if page.messages:
            yield (b"," if count else b"") + b",".join(one.data for one in page.messages)
            count += len(page.messages)
        if page.next is None:
            break
        after = page.next
    said.messages += count
    if begun:
        yield b"]}"


def _opening(
    account: Account, record: RoomRecord, membership: Membership | None, said: Said
) -> bytes:
    """What an entry says before the messages."""
    entry: dict[str, Any] = {
        "name": record.name,
        "access": record.access,
        "role": None if membership is None else membership.role.value,
        "state": None if membership is None else membership.state,
        "granted": record.grants.get(account.id, ()),
        "created_by_you": record.created_by == account.id,
    }
    said.rooms += 1
    comma = b"," if said.rooms > 1 else b""
    return comma + msgspec.json.encode(entry)[:-1] + b',"messages":['


async def _rooms(
    tx: Tx, *, after: int, account: Account
) -> list[tuple[RoomRecord, Membership | None]]:
    return [
        (record, await queries.membership(tx, record.id, account.id))
        for record in await queries.rooms_after(tx, after, ROOMS)
    ]
