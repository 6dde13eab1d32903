"""What accounts have stored in rooms, known without asking the store for each message.

An account's amount is read from the store when it is first needed, and what it stores from then on
is added. After anything was removed it is read anew.
"""

from __future__ import annotations

from typing import Final

from folkmoot.core.ports import PeekingStore
from folkmoot.quotas import ROOM_BYTES, Quotas, Use, stored_in_own_rooms, warning, written_in_rooms
from folkmoot.rooms.machine import BACKEND, Append
from folkmoot.rooms.shares import author_of, size_of

MOST_KNOWN: Final = 100_000
"""Accounts whose amounts are remembered; with more, all are read anew."""


class RoomBudget:
    """The quotas of all stored rooms of a hub."""

    def __init__(self, store: PeekingStore, quotas: Quotas) -> None:
        self._store = store
        self._quotas = quotas
        self._written: dict[str, int] = {}
        self._owned: dict[str, int] = {}

    def check(self, author: str, owner: str | None, size: int) -> None:
        """Refuse a message of so many bytes that its author or the room's owner has no room for."""
        quotas, limits = self._quotas, self._quotas.limits
        quotas.check_disk()
        size += ROOM_BYTES
        each = limits.room_bytes_per_account
        if each:
            # A backend answers for many; whose room it is pays for it.
            if not author.startswith(BACKEND):
                quotas.check("room_bytes_per_account", self._written_by(author) + size, each)
            if owner is not None:
                quotas.check("owned_bytes", self._owned_by(owner) + size, each)
        quotas.check("all_rooms_bytes", quotas.rooms_used + size, limits.all_rooms_bytes)

    def add(self, message: Append, owner: str | None) -> None:
        """A message is on its way into the store."""
        size, author = size_of(message), author_of(message)
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
        self._written.clear()
        self._owned.clear()

    def warning(self, account: str, owner: str | None) -> str | None:
        """What someone is told who comes into a room and has nearly used a quota up."""
        each = self._quotas.limits.room_bytes_per_account
        if not each:
            return None
        used = self._written_by(account)
        if account == owner:
            used = max(used, self._owned_by(account))
        return warning("room_bytes_per_account", Use(used, each))

    def _written_by(self, author: str) -> int:
        used = self._written.get(author)
        if used is None:
            used = self._store.peek(lambda tx: written_in_rooms(tx, author))
            _remember(self._written, author, used)
        return used

    def _owned_by(self, account: str) -> int:
        used = self._owned.get(account)
        if used is None:
            used = self._store.peek(lambda tx: stored_in_own_rooms(tx, account))
            _remember(self._owned, account, used)
        return used


def _remember(known: dict[str, int], account: str, used: int) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[account] = used
