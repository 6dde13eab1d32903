"""Rights as an operator looks at them: one person's, or everyone's in a table."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from folkmoot.accounts import parse_handle
from folkmoot.core.errors import UserNotFound
from folkmoot.gateway import queries_grants as queries
from folkmoot.gateway.access import Access, access, access_to
from folkmoot.gateway.grant_model import (
    GrantRow,
    HeldCapability,
    Overview,
    PersonAccess,
    PersonView,
    ServerAccess,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from folkmoot.core.kinds import Kind
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.gateway.granting import Granting
    from folkmoot.gateway.part import Row
    from folkmoot.gateway.rights import HubRights
    from folkmoot.gateway.settled import Held

PAGE: Final = 1_000
ACCESS_PAGE: Final = 200
"""Handles whose rights to a server are looked at for one answer."""


class GrantViews:
    """Shows what people hold; it changes nothing."""

    def __init__(self, rights: HubRights, granting: Granting, store: Store, clock: Clock) -> None:
        self._rights = rights
        self._granting = granting
        self._store = store
        self._clock = clock

    async def person(self, handle: str) -> PersonView:
        """What one handle holds, and where each of it is from."""
        settled, name = self._rights.settled, parse_handle(handle)
        try:
            account = await self._store.read(lambda tx: self._granting.find(tx, handle))
        except UserNotFound:
            if name is None or name not in settled.named or await self._leads(name):
                raise
            return PersonView(name, None, None, told((*settled.everyone, *settled.of(name))))
        held = told(self._rights.held(account))
        return PersonView(account.handle, account.id, account.account_type, held)

    async def overview(self, after: str = "") -> Overview:
        """A page of everyone who is named in the settings or was granted something."""
        settled, now = self._rights.settled, int(self._clock.now())

        async def query(tx: Tx) -> list[GrantRow]:
            granted = await queries.grant_counts(tx)
            names = sorted(name for name in settled.named | granted.keys() if name > after)
            owners = await queries.owners_of(tx, names[: PAGE + 1], now)
            return [self._row(name, owners.get(name), granted) for name in names[: PAGE + 1]]

        rows = await self._store.read(query, long=True)
        more = rows[PAGE - 1].handle if len(rows) > PAGE else None
        return Overview(told(settled.everyone), rows[:PAGE], more)

    async def access(
        self, namespace: str, rows: Sequence[Row], kind: Kind | None, after: str = ""
    ) -> ServerAccess:
        """A page of those who may use a server by more than everyone's rights, or are denied it.

        With a kind, of those who may call the one tool.
        """
        rights = self._rights

        async def query(tx: Tx) -> tuple[list[tuple[str, bool, list[Held]]], str | None]:
            granted = await queries.grant_counts(tx)
            names = sorted(name for name in rights.settled.named | granted.keys() if name > after)
            page = names[:ACCESS_PAGE]
            found = [(name, *await self._holds(tx, name)) for name in page]
            return found, page[-1] if len(names) > len(page) else None

        found, following = await self._store.read(query, long=True)
        everyone = rights.settled.everyone

        def told() -> ServerAccess:
            def of(held: Sequence[Held]) -> Access:
                return access(held, namespace, rows) if kind is None else access_to(held, kind)

            people = [
                PersonAccess(handle=name, account=has, access=of(held)) for name, has, held in found
            ]
            own = {"group", "settings", "granted"}
            return ServerAccess(
                namespace=namespace,
                tools=len(rows),
                everyone=of(everyone),
                people=[
                    each
                    for each in people
                    if any(reason.origin in own for reason in each.access.reasons)
                ],
                next=following,
            )

        return await asyncio.to_thread(told)

    async def _holds(self, tx: Tx, name: str) -> tuple[bool, list[Held]]:
        """Whether a handle is someone's, and what they hold, or what awaits them."""
        try:
            return True, self._rights.held(await self._granting.find(tx, name))
        except UserNotFound:
            settled = self._rights.settled
            return False, [*settled.everyone, *settled.of(name)]

    def _row(self, name: str, owner: str | None, granted: dict[str, int]) -> GrantRow:
        settled = self._rights.settled
        return GrantRow(
            handle=name,
            state="nobody" if owner is None else "account" if owner == name else "redirect",
            leads_to=owner if owner not in {None, name} else None,
            groups=list(settled.groups_of(name)),
            settings=len(settled.of(name)),
            granted=granted.get(name, 0),
        )

    async def _leads(self, name: str) -> bool:
        now = int(self._clock.now())
        return bool(await self._store.read(lambda tx: queries.owners_of(tx, [name], now)))


def told(held: Iterable[Held]) -> list[HeldCapability]:
    """Capabilities as they were written."""
    return [HeldCapability(it.capability.source, it.origin, it.name, it.at) for it in held]
