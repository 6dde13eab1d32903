"""What accounts have stored in rooms, known without asking the store for each message.

An account's amount is read from the store before its first message is judged, and what it stores
from then on is added. After anything was removed it is read anew.
"""

from __future__ import annotations

from typing import Final

from folkmoot.core.ports import Store, Tx
from folkmoot.quotas import ROOM_BYTES, Quotas, Use, stored_in_own_rooms, warning, written_in_rooms
from folkmoot.rooms.machine import BACKEND

MOST_KNOWN: Final = 100_000
"""Accounts whose amounts are remembered; with more, all are read anew."""


class RoomBudget:
    """The quotas of all stored rooms of a hub."""

    def __init__(self, store: Store, quotas: Quotas) -> None:
        self._store = store
        self._quotas = quotas
        self._written: dict[str, int] = {}
        self._owned: dict[str, int] = {}
        self._admitted = 0
        self._forgotten = 0
        """How often everything was forgotten, so that what is being read is known to be old."""

    def knows(self, author: str, owner: str | None) -> bool:
        """Whether a message of someone's can be judged without a look into the store."""
        if not self._quotas.limits.room_bytes_per_account:
            return True
        known = author in self._written or author.startswith(BACKEND)
        return known and (owner is None or owner in self._owned)

    async def read(self, author: str, owner: str | None) -> None:
        """Know what an author has stored, and what is stored in the rooms of an owner."""

        async def query(tx: Tx) -> tuple[int, int]:
            written = await written_in_rooms(tx, author)
            return written, 0 if owner is None else await stored_in_own_rooms(tx, owner)

        while not self.knows(author, owner):
            moment = self._forgotten
            written, owned = await self._store.read(query)
            if moment == self._forgotten:
                _remember(self._written, author, written)
                if owner is not None:
                    _remember(self._owned, owner, owned)

    def begin(self) -> None:
        """Messages of one sender come: what is admitted of them from now on counts together."""
        self._admitted = 0

    def check(self, author: str, owner: str | None, size: int) -> None:
        """Refuse a message of so many bytes that its author or the room's owner has no room for.

        What they have stored must be known.
        """
        quotas, limits = self._quotas, self._quotas.limits
        quotas.check_disk()
        self._admitted = size = self._admitted + size + ROOM_BYTES
        each = limits.room_bytes_per_account
        if each:
            # A backend answers for many; whose room it is pays for it.
            if not author.startswith(BACKEND):
                quotas.check("room_bytes_per_account", self._written[author] + size, each)
            if owner is not None:
                quotas.check("owned_bytes", self._owned[owner] + size, each)
        quotas.check("all_rooms_bytes", quotas.rooms_used + size, limits.all_rooms_bytes)

    def add(self, author: str, owner: str | None, size: int) -> None:
        """So many bytes of an author's are on their way into the store."""
        self._quotas.rooms_used += size
        if author in self._written:
            self._written[author] += size
        if owner in self._owned:
            self._owned[owner] += size

    def removed(self, size: int) -> None:
        """So many bytes were removed from the store."""
        self._quotas.rooms_used -= size
        self.forget()

    def forget(self) -> None:
        """What is remembered may be wrong by now: something was removed, or not stored."""
        self._forgotten += 1
        self._written.clear()
        self._owned.clear()

    def warning(self, account: str, owner: str | None) -> str | None:
        """What someone is told who comes into a room and has nearly used a quota up.

        Nothing where it is not known what they have stored.
        """
        each = self._quotas.limits.room_bytes_per_account
        if not each:
            return None
        used = self._written.get(account, 0)
        if account == owner:
            used = max(used, self._owned.get(account, 0))
        return warning("room_bytes_per_account", Use(used, each))


def _remember(known: dict[str, int], account: str, used: int) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[account] = used
