"""Names that nobody can simply take: those of backends, and those that await someone invited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from folkmoot.accounts import queries
from folkmoot.accounts.handles import RESERVED, is_official
from folkmoot.core.ports import Store, Tx


class ReservedNames:
    """What is reserved on one hub, beside the names that are so on every one.

    A backend's *namespace* is no one's handle. An *awaited* handle is an official one such as
    `support`, or one that the operator gave rights to: whoever has it keeps it, and otherwise it
    needs an invite made for it. Units read both, perhaps in another thread, so a set is replaced,
    never changed.
    """

    def __init__(self, namespaces: Iterable[str] = (), awaited: Iterable[str] = ()) -> None:
        self.namespaces = frozenset(namespaces)
        self.awaited = frozenset(awaited)

    def belongs_elsewhere(self, name: str) -> bool:
        """Whether a name can be no handle at all."""
        return name in RESERVED or name in self.namespaces

    def awaits(self, handle: str) -> bool:
        """Whether a handle is kept for someone with an invite that was made for it."""
        return handle in self.awaited or is_official(handle)

    async def reserve(self, store: Store, names: Iterable[str], now: int) -> dict[str, Standing]:
        """Let these be namespaces from now on, unless one of them is taken already.

        Answers how it is with those that are. A namespace has a row among the handles, so whoever
        registers at the same moment, at any hub, either has the name or finds it taken.
        """
        wanted = frozenset(names)
        fresh = wanted - self.namespaces
        self.namespaces |= fresh
        try:
            await store.write(lambda tx: do_reserve(tx, sorted(wanted), now))
        except NamesTaken as error:
            self.namespaces -= fresh
            return error.taken
        return {}

    async def keep_only(self, store: Store, names: Iterable[str]) -> None:
        """Let these be all namespaces there are; others are free from now on."""
        kept = frozenset(names)
        if await store.read(queries.namespaces) - kept:
            await store.write(lambda tx: queries.release_others(tx, kept))
        self.namespaces = kept


class Standing(NamedTuple):
    """How it is with a name that is not free: `live`, `redirect` or `reserved`, until when."""

    kind: str
    until: int | None
    handle: str | None
    """The present handle of whoever has it."""


async def standing(tx: Tx, name: str, now: int) -> Standing | None:
    """How it is with a name; nothing where it is free."""
    row = await tx.fetch_one(
        "SELECT h.kind, h.until, u.handle FROM handles h LEFT JOIN users u ON u.id = h.user_id "
        "WHERE h.handle = ? AND (h.kind = 'live' OR h.until > ?)",
        (name, now),
    )
    return None if row is None else Standing(*row)


async def takes_back(tx: Tx, handle: str, user_id: str, now: int) -> bool:
    """Whether a handle leads to this user, who gave it up a while ago."""
    return handle in await queries.redirects_of(tx, user_id, now)


class NamesTaken(Exception):
    """Some of the names are someone's, lead to someone, or were someone's until lately."""

    def __init__(self, taken: dict[str, Standing]) -> None:
        super().__init__()
        self.taken = taken


async def do_reserve(tx: Tx, names: Iterable[str], now: int) -> None:
    """Make all of the names namespaces, or none of them."""
    taken = {}
    for name in names:
        if not await queries.reserve(tx, name, now):
            taken[name] = await standing(tx, name, now) or Standing("reserved", now, None)
    if taken:
        raise NamesTaken(taken)
