"""Rights as an operator looks at them: one person's, or everyone's in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from folkmoot.accounts import parse_handle
from folkmoot.core.errors import UserNotFound
from folkmoot.gateway import queries_grants as queries
from folkmoot.gateway.grant_model import GrantRow, HeldCapability, Overview, PersonView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.gateway.granting import Granting
    from folkmoot.gateway.rights import HubRights
    from folkmoot.gateway.settled import Held

PAGE: Final = 1_000


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
