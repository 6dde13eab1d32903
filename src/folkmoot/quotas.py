"""Quotas: how much each account and the whole hub have stored, and how much they may store.

What is stored is kept as *shares*, in the transaction that stores or removes it, so that a check
costs the same however much there is. A message of mail is its sender's until the sender deletes it.
From then on it is *kept* by its recipient, which takes nothing from what they may send, but is
bounded too: where they keep as much as an account may, it stays the sender's. So nobody fills
another's mailbox; those of many are bounded by the rate of sending and the hub's own quota. What is
said in a room is its author's, and also counts for whoever made the room.

Whoever comes near a quota is told, from `NEAR` on; whoever would exceed it gets `QuotaExceeded`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from folkmoot.core import errors as e
from folkmoot.settings.sections import QuotaSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from folkmoot.core.ports import Clock, Row, Store, Tx

NEAR: Final = 0.8
"""The part of a quota from which on its holder is warned."""
URGENT: Final = 0.9
"""The part from which on the warning also says what to do."""

MAIL_BYTES: Final = 512
"""What a message of mail takes beside its ciphertext: its row, two copies, and their indexes."""
ROOM_BYTES: Final = 256
"""What a room's message takes beside its own bytes: its id, its kind, and places in two indexes."""
MAIL_SIZE: Final = f"{MAIL_BYTES} + LENGTH(ciphertext)"

DISK_SECONDS: Final = 1.0
"""How long a look at the free space of the disk is good for."""

_ASK: Final = "ask the operator for more."
SENTENCES: Final = {
    "mail_bytes_per_account": "The mail you sent takes {used}, and one account may store {limit}. "
    "Delete some of it, or " + _ASK,
    "mail_bytes": "The hub stores {used} of mail, and may store {limit}. Delete mail you no longer "
    "need, or " + _ASK,
    "room_bytes_per_account": "Your messages in rooms take {used}, and one account may store "
    "{limit}. Delete rooms you no longer need, or " + _ASK,
    "owned_bytes": "The rooms of this room's owner take {used}, and those of one account may take "
    "{limit}. The owner can delete rooms, or " + _ASK,
    "all_rooms_bytes": "The hub stores {used} of room messages, and may store {limit}. Delete "
    "rooms you no longer need, or " + _ASK,
    "invites_per_account": "{used} of your invites are not claimed yet, and one account may have "
    "{limit} of them. Wait until some are, or " + _ASK,
    "guests_per_account": "You have invited {used} guests into rooms, and one account may have "
    "{limit}. Remove some, or " + _ASK,
    "tokens_per_account": "You would have {used} tokens, and one account may have {limit}. Revoke "
    "some, or " + _ASK,
    "min_free_disk_bytes": "The disk of the hub has {used} free, and {limit} must stay free, so "
    "nothing new is stored. Delete what you no longer need, and tell the operator.",
}
"""What happened and what to do, by the quota; amounts are filled in."""

WHAT: Final = {
    "mail_bytes_per_account": " as mail",
    "room_bytes_per_account": " in rooms",
}
COUNTED: Final = frozenset({"invites_per_account", "guests_per_account", "tokens_per_account"})
"""The quotas that are no bytes."""


ROOM_SIZE: Final = f"{ROOM_BYTES} + LENGTH(data)"
ROOM_AUTHOR: Final = "COALESCE(account, about, '')"

COUNTS: Final = {
    "mail": (
        "SELECT account, messages, bytes FROM mail_shares WHERE messages <> 0 OR bytes <> 0",
        f"SELECT from_id, COUNT(*), SUM({MAIL_SIZE}) FROM messages WHERE kept = 0 GROUP BY 1",  # noqa: S608
    ),
    "kept mail": (
        "SELECT account, 0, kept FROM mail_shares WHERE kept <> 0",
        f"SELECT to_id, 0, SUM({MAIL_SIZE}) FROM messages WHERE kept = 1 GROUP BY 1",  # noqa: S608
    ),
    "rooms": (
        "SELECT room_id, author, messages, bytes FROM room_shares",
        f"SELECT room_id, {ROOM_AUTHOR}, COUNT(*), SUM({ROOM_SIZE}) FROM room_messages GROUP BY 1, 2",  # noqa: E501, S608
    ),
}
"""What is kept, and how the same is counted."""


WRITTEN_IN_ROOMS: Final = "SELECT COALESCE(SUM(bytes), 0) FROM room_shares WHERE author = ?"
STORED_IN_OWN_ROOMS: Final = (
    "SELECT COALESCE(SUM(s.bytes), 0) FROM room_members m CROSS JOIN rooms r "
    "CROSS JOIN room_shares s WHERE m.account_id = ? AND m.role = 'owner' "
    "AND r.id = m.room_id AND r.created_by = m.account_id AND s.room_id = r.id"
)
MAIL_SENT: Final = "SELECT bytes FROM mail_shares WHERE account = ?"
USED_BY: Final = f"SELECT COALESCE(({MAIL_SENT}), 0), ({WRITTEN_IN_ROOMS}), ({STORED_IN_OWN_ROOMS})"


class QuotaUse(NamedTuple):
    """How much of a quota is used; a limit of 0 is none."""

    used: int
    limit: int

    @property
    def part(self) -> float:
        """The part that is used: 0 where there is no limit."""
        return self.used / self.limit if self.limit else 0.0


class Report(NamedTuple):
    """How much of the hub's quotas is used, and how many accounts are near one of theirs."""

    mail: QuotaUse
    rooms: QuotaUse
    near_mail: int
    near_rooms: int


def in_bytes(size: int) -> str:
    """A number of bytes for people."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            digits = 0 if amount >= 10 or unit == "bytes" else 1
            return f"{amount:.{digits}f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def with_unit(quota: str, amount: int) -> str:
    """An amount of a quota, in its unit."""
    return f"{amount:,}" if quota in COUNTED else in_bytes(amount)


def warning(quota: str, use: QuotaUse) -> str | None:
    """What the holder of a quota is told who comes near its end."""
    if use.part < NEAR:
        return None
    told = f"{with_unit(quota, use.used)} of {with_unit(quota, use.limit)}"
    sentence = f"You have used {use.part:.0%} of what you can store{WHAT.get(quota, '')}: {told}."
    if use.part < URGENT:
        return sentence
    return f"{sentence} Delete what you no longer need, or ask the operator to raise it."


@dataclass(eq=False)
class Quotas:
    """The limits that hold, and what is known of how much is used.

    `mail_used` and `rooms_used` are what the hub stores as far as is known: `refresh` reads it from
    the store, and what is stored meanwhile is added.
    """

    limits: QuotaSettings = field(default_factory=QuotaSettings)
    disk: Disk | None = None
    mail_used: int = 0
    rooms_used: int = 0
    near_mail: int = 0
    near_rooms: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def check(self, quota: str, used: int, limit: int) -> None:
        """Refuse what would make the use of a quota this much, if that is too much."""
        if limit and used > limit:
            raise self.exceeded(quota, used, limit)

    def exceeded(self, quota: str, used: int, limit: int) -> e.QuotaExceeded:
        """The error that says which quota is used up, and what to do."""
        setting = "room_bytes_per_account" if quota == "owned_bytes" else quota
        self.refused[setting] += 1
        sentence = SENTENCES[quota].format(
            used=with_unit(quota, used), limit=with_unit(quota, limit)
        )
        return e.QuotaExceeded(sentence, quota=setting, limit=limit, used=used)

    def check_disk(self) -> None:
        """Refuse to store anything new while the disk is nearly full."""
        least = self.limits.min_free_disk_bytes
        if self.disk is None or not least:
            return
        free = self.disk.free()
        if free < least:
            raise self.exceeded("min_free_disk_bytes", free, least)

    async def refresh(self, store: Store) -> Report:
        """Read anew how much is used."""
        found = await store.read(lambda tx: report(tx, self.limits), long=True)
        self.mail_used, self.rooms_used = found.mail.used, found.rooms.used
        self.near_mail, self.near_rooms = found.near_mail, found.near_rooms
        return found


@dataclass(eq=False)
class Disk:
    """The free space of the disk that the data folder is on."""

    folder: Path
    clock: Clock
    _free: int = 0
    _until: float = float("-inf")

    def free(self) -> int:
        """How many bytes are free, as seen within the last second."""
        now = self.clock.monotonic()
        if now >= self._until:
            status = os.statvfs(self.folder)
            self._free, self._until = status.f_bavail * status.f_frsize, now + DISK_SECONDS
        return self._free


ADD_MAIL: Final = (
    "INSERT INTO mail_shares (account, messages, bytes) VALUES (?, 1, ?) "
    "ON CONFLICT (account) DO UPDATE SET messages = mail_shares.messages + 1, "
    "bytes = mail_shares.bytes + excluded.bytes RETURNING bytes"
)
"""Notes a message that an account sent; what all its messages take now."""


KEEP_MAIL: Final = (
    "INSERT INTO mail_shares (account, messages, bytes, kept) VALUES (?, 0, 0, ?) "
    "ON CONFLICT (account) DO UPDATE SET kept = mail_shares.kept + excluded.kept"
)


async def fitting_mail(tx: Tx, deleted: Iterable[Row], most: int) -> list[int]:
    """Which messages their recipients have room to keep, given as place, recipient and size."""
    fitting: list[int] = []
    kept: dict[str, int] = {}
    for seq, recipient, size in deleted:
        if recipient not in kept:
            kept[recipient] = await _number(
                tx, "SELECT kept FROM mail_shares WHERE account = ?", recipient
            )
        if not most or kept[recipient] + size <= most:
            kept[recipient] += size
            fitting.append(seq)
    return fitting


async def keep_mail(tx: Tx, sender: str, kept: Sequence[Row]) -> None:
    """Note messages of a sender that count as kept now, given as recipient and size."""
    await subtract_mail(tx, ((sender, recipient, 0, size) for recipient, size in kept))
    sizes: Counter[str] = Counter()
    for recipient, size in kept:
        sizes[recipient] += size
    for account, size in sizes.items():
        await tx.execute(KEEP_MAIL, (account, size))


async def subtract_mail(tx: Tx, removed: Iterable[Row]) -> None:
    """Note messages that count no longer, given as sender, recipient, whether kept, and size."""
    messages: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for sender, recipient, is_kept, size in removed:
        if is_kept:
            kept[recipient] += size
        else:
            messages[sender] += 1
            sizes[sender] += size
    for account, size in kept.items():
        await tx.execute(KEEP_MAIL, (account, -size))
    for account, count in messages.items():
        await tx.execute(
            "UPDATE mail_shares SET messages = messages - ?, bytes = bytes - ? WHERE account = ?",
            (count, sizes[account], account),
        )


async def written_in_rooms(tx: Tx, author: str) -> int:
    """The bytes an author has in all rooms; the cost grows with the rooms it wrote in."""
    return await _number(tx, WRITTEN_IN_ROOMS, author)


async def stored_in_own_rooms(tx: Tx, account: str) -> int:
    """The bytes in all rooms that an account made; the cost grows with those rooms' authors."""
    return await _number(tx, STORED_IN_OWN_ROOMS, account)


async def used_by(tx: Tx, account: str) -> tuple[int, int]:
    """The bytes of mail that an account sent, and of its room quota, as far as still stored."""
    row = await tx.fetch_one(USED_BY, (account, account, account))
    mail, written, owned = row or (0, 0, 0)
    return mail, max(written, owned)


async def report(tx: Tx, limits: QuotaSettings) -> Report:
    """How much is used of everything. The cost grows with accounts and rooms, not with messages."""
    mail = await _number(tx, "SELECT COALESCE(SUM(bytes + kept), 0) FROM mail_shares")
    rooms = await _number(tx, "SELECT COALESCE(SUM(bytes), 0) FROM room_shares")
    return Report(
        QuotaUse(mail, limits.mail_bytes),
        QuotaUse(rooms, limits.all_rooms_bytes),
        len(await heaviest_mail(tx, limits)),
        len(await heaviest_in_rooms(tx, limits)),
    )


async def heaviest_mail(tx: Tx, limits: QuotaSettings) -> list[Row]:
    """The accounts near their quota of mail, with their use."""
    most = limits.mail_bytes_per_account
    if not most:
        return []
    return await tx.fetch(
        "SELECT u.handle, s.bytes FROM mail_shares s CROSS JOIN users u "
        "WHERE u.id = s.account AND s.bytes >= ? ORDER BY s.bytes DESC",
        (int(most * NEAR),),
    )


async def heaviest_in_rooms(tx: Tx, limits: QuotaSettings) -> list[Row]:
    """The accounts near their quota of rooms, with their use."""
    most = limits.room_bytes_per_account
    if not most:
        return []
    return await tx.fetch(
        "SELECT u.handle, MAX(x.bytes) FROM ("
        "SELECT author AS account, SUM(bytes) AS bytes FROM room_shares GROUP BY author UNION ALL "
        "SELECT r.created_by, SUM(s.bytes) FROM rooms r CROSS JOIN room_shares s "
        "WHERE s.room_id = r.id GROUP BY r.created_by) AS x CROSS JOIN users u "
        "WHERE u.id = x.account AND x.bytes >= ? GROUP BY u.handle ORDER BY 2 DESC",
        (int(most * NEAR),),
    )


async def differences(tx: Tx) -> list[str]:
    """Where what is kept differs from what counting gives. The cost grows with all messages."""
    found = []
    for what, (kept, counted) in COUNTS.items():
        wrong = {*await tx.fetch(kept)} ^ {*await tx.fetch(counted)}
        if wrong:
            found.append(f"{what}: {len({row[:-2] for row in wrong})} of the shares")
    return found


async def _number(tx: Tx, sql: str, *params: Any) -> int:
    row = await tx.fetch_one(sql, params)
    return 0 if row is None else int(row[0])
