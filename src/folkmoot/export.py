"""Everything the hub keeps of one person, as one JSON file for them to take away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile, mkstemp
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from folkmoot import decisions
from folkmoot.accounts import Account, Accounts
from folkmoot.asks.service import asks_of
from folkmoot.core import errors as e
from folkmoot.core.ports import Clock, Store, Tx
from folkmoot.mail import Mail, Thread
from folkmoot.rooms import queries, queries_members, queries_messages
from folkmoot.rooms.model import Membership, RoomRecord

FORMAT = "folkmoot-export/1"
PAGE = 100
ROOMS_PAGE = 100
MESSAGES_PAGE = 32
"""How many messages of a room are read at a time; each of them may be large."""
MOST_DECISIONS = 1_000_000


class Exported(Struct, frozen=True):
    handle: str
    threads: int
    messages: int
    rooms: int
    said: int
    """How many messages to rooms."""


Told = Callable[[int, int], None]
"""Told how many conversations are written, and how many there are."""


class Exporter(Struct, eq=False):
    """Writes what belongs to a person; reading it marks nothing as read."""

    store: Store
    clock: Clock
    accounts: Accounts
    mail: Mail

    async def export(
        self, handle: str, target: Path, *, overwrite: bool = False, told: Told | None = None
    ) -> Exported:
        """Write everything of a person into a file that appears when it is whole."""
        account = await self.store.read(lambda tx: self.accounts.resolve(tx, handle))
        try:
            part, name = await asyncio.to_thread(new_part, target, overwrite=overwrite)
        except OSError as error:
            raise e.ExportFailed(
                f"{target}: {(error.strerror or 'unwritable').lower()}."
            ) from error
        try:
            with part:
                written = await self._write(account, part, told or (lambda _done, _of: None))
            await asyncio.to_thread(name.replace, target)
        except OSError as error:
            raise e.ExportFailed(
                f"{target}: {(error.strerror or 'unwritable').lower()}."
            ) from error
        finally:
            with suppress(OSError):
                name.unlink()
        return written

    async def copy_of(self, account: Account) -> tuple[BinaryIO, int]:
        """Everything of a person in a file without a name, which is gone when it is closed."""
        try:
            file: BinaryIO = await asyncio.to_thread(TemporaryFile)
            try:
                await self._write(account, file, lambda _done, _of: None)
                size = await asyncio.to_thread(file.tell)
                await asyncio.to_thread(file.seek, 0)
            except BaseException:
                file.close()
                raise
        except OSError as error:
            raise e.ExportFailed(
                f"The copy: {(error.strerror or 'unwritable').lower()}."
            ) from error
        return file, size

    async def _write(self, account: Account, part: BinaryIO, told: Told) -> Exported:
        threads = messages = 0
        said = ExportCounts()
        async for piece, done, total, count in self._pieces(account, said):
            await asyncio.to_thread(part.write, piece)
            threads, messages = done, messages + count
            told(done, total)
        await asyncio.to_thread(sync, part)
        return Exported(account.handle, threads, messages, said.rooms, said.messages)

    async def _pieces(
        self, account: Account, said: ExportCounts
    ) -> AsyncIterator[tuple[bytes, int, int, int]]:
        """The file piece by piece, with the conversations done, their number and the messages."""
        belongings = await self.accounts.belongings(account.id)
        if belongings is None:
            raise e.UserNotFound
        head = {
            "format": FORMAT,
            "exported_at": int(self.clock.now()),
            **msgspec.structs.asdict(belongings),
        }
        yield msgspec.json.encode(head)[:-1] + b',"threads":[', 0, 0, 0
        seen: set[str] = set()
        # A conversation that gets mail meanwhile moves to the front: look again until none is new.
        while found := [it for it in await self._threads(account) if it.id not in seen]:
            total = len(seen) + len(found)
            for thread in found:
                opening = b"," if seen else b""
                seen.add(thread.id)
                opening += msgspec.json.encode(thread)[:-1] + b',"messages":['
                yield opening, len(seen) - 1, total, 0
                async for piece, count in self._messages(account, thread):
                    yield piece, len(seen) - 1, total, count
                yield b"]}", len(seen), total, 0
        yield b'],"rooms":[', len(seen), len(seen), 0
        async for piece in room_pieces(self.store, account, said):
            yield piece, len(seen), len(seen), 0
        decided = await self.store.read(lambda tx: decisions.page(tx, account.id, MOST_DECISIONS))
        asked = await self.store.read(lambda tx: asks_of(tx, account.id))
        told = [
            {
                **msgspec.to_builtins(it.ask),
                "bound": msgspec.Raw(it.ask.bound),
                "by": it.by,
                "to": it.to,
            }
            for it in asked
        ]
        ending = b'],"decisions":' + msgspec.json.encode(decided)
        ending += b',"asks":' + msgspec.json.encode(told) + b"}\n"
        yield ending, len(seen), len(seen), 0

    async def _threads(self, account: Account) -> list[Thread]:
        found: list[Thread] = []
        cursor: str | None = None
        while True:
            page = await self.mail.threads(account, limit=PAGE, cursor=cursor)
            found += page.threads
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def _messages(self, account: Account, thread: Thread) -> AsyncIterator[tuple[bytes, int]]:
        cursor: str | None = None
        opening = b""
        while True:
            read = await self.mail.thread(account, thread.id, limit=PAGE, cursor=cursor, peek=True)
            page = read.page
            if page.messages:
                yield opening + msgspec.json.encode(page.messages)[1:-1], len(page.messages)
                opening = b","
            cursor = page.next_cursor
            if cursor is None:
                return


def new_part(target: Path, *, overwrite: bool) -> tuple[BinaryIO, Path]:
    """A new file beside the target that its owner alone can read."""
    if target.exists() and not overwrite:
        raise e.ExportFailed(f"{target}: already exists.")
    handle, name = mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    return os.fdopen(handle, "wb"), Path(name)


def sync(part: BinaryIO) -> None:
    """Let what was written be on the disk."""
    part.flush()
    os.fsync(part.fileno())


class ExportCounts:
    def __init__(self) -> None:
        self.rooms = 0
        self.messages = 0


async def room_pieces(store: Store, account: Account, said: ExportCounts) -> AsyncIterator[bytes]:
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
    said: ExportCounts,
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
            limit=MESSAGES_PAGE,
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
    account: Account, record: RoomRecord, membership: Membership | None, said: ExportCounts
) -> bytes:
    """What an entry says before the messages."""
    entry: dict[str, Any] = {
        "name": record.name,
        "access": record.access,
        "role": None if membership is None else membership.role.value,
        "state": None if membership is None else membership.state,
        "read_seq": None if membership is None else membership.read_seq,
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
        (record, await queries_members.membership(tx, record.id, account.id))
        for record in await queries.rooms_after(tx, after, ROOMS_PAGE)
    ]
