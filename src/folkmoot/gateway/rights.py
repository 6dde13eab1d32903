"""What people may do at the hub, ready to be asked at every call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from folkmoot.accounts import RESERVED
from folkmoot.accounts.events import read_change
from folkmoot.accounts.invites import why_taken
from folkmoot.accounts.queries import redirects_of
from folkmoot.core.capability import Rights, capability
from folkmoot.core.errors import CapabilityError, StoreError
from folkmoot.core.events import ACCOUNTS, GRANTS, SETTINGS, about
from folkmoot.core.policy import NOBODY, Principal, PrincipalType
from folkmoot.gateway import queries_grants as queries
from folkmoot.gateway.settled import FINDERS, Held, Settled, distinct
from folkmoot.settings.backends import GatewaySpec

if TYPE_CHECKING:
    from folkmoot.accounts import Account, Accounts
    from folkmoot.core.ports import Clock, Event, PeekingStore, Unit

logger = logging.getLogger("folkmoot.gateway")

MOST_KNOWN: Final = 10_000
"""Accounts whose rights are kept ready; when there are more, all are made anew as they call."""

NOBODY_MAY: Final = Rights(
    [
        "mcp.request.tools/call:msg/register",
        "mcp.request.tools/call:msg/recover",
        *FINDERS,
    ]
)
NO_RIGHTS: Final = Rights(["!*"])
"""Everything is denied, inside rooms too."""


class Known(NamedTuple):
    """An account's rights as they were made, and until when they are good."""

    handle: str
    until: float | None
    answer: tuple[Principal, Rights]


class HubRights:
    """The rights of everyone: defaults, settings, and what was granted while the hub runs.

    Rights belong to the account. A handle in the settings is whoever has it, and whoever had it
    before for as long as it leads there. `of` costs a look into a dict; equal rights are one
    object. A change holds from the next call on.
    """

    def __init__(self, store: PeekingStore, clock: Clock, accounts: Accounts) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._settled = Settled(GatewaySpec())
        self._common = Rights(distinct(self._settled.everyone).values())
        self._granted: dict[str, dict[str, int]] = {}
        self._redirects: dict[str, dict[str, int]] = {}
        self._known: dict[str, Known] = {}
        self._interned: dict[frozenset[str], Rights] = {}
        self._unknown: set[str] = set()
        """Accounts whose rights could not be read when they were changed."""
        self._moment = 0
        """Grows with every change, so that what was read before one is known to be outdated."""
        self._changing = asyncio.Lock()

    @classmethod
    async def open(
        cls, store: PeekingStore, clock: Clock, accounts: Accounts, spec: GatewaySpec | None = None
    ) -> HubRights:
        """The rights as they are stored and settled; they follow the accounts from now on."""
        rights = cls(store, clock, accounts)
        store.bus.listen(ACCOUNTS, rights._account_changed)
        store.bus.listen(GRANTS, rights._grants_changed)
        rights._granted = await rights._read(queries.all_grants)
        await rights.configure(spec or GatewaySpec())
        return rights

    @property
    def settled(self) -> Settled:
        """What the settings say."""
        return self._settled

    @property
    def granted(self) -> dict[str, dict[str, int]]:
        """What was granted while the hub ran: by account, the patterns and when."""
        return self._granted

    def of(self, account: Account | None) -> tuple[Principal, Rights]:
        """Who calls as policy knows them, and what they may do."""
        if account is None:
            return NOBODY, NOBODY_MAY
        known = self._ready(account.id, account.handle)
        if known is not None:
            return known.answer
        type_ = PrincipalType(account.account_type)
        return self._make(Principal(account.id, account.handle, type_))

    def of_principal(self, principal: Principal) -> Rights:
        """What someone may do who has an account, as a room or another part knows them."""
        known = self._ready(principal.account_id, principal.name)
        return (self._make(principal) if known is None else known.answer)[1]

    def groups_of(self, principal: Principal) -> frozenset[str]:
        """The groups of the settings that someone is in, by a former handle too."""
        known = self._settled.groups_of
        former = self._leading_to(principal.account_id)
        return frozenset(name for it in (principal.name, *former) for name in known(it))

    def held(self, account: Account) -> list[Held]:
        """Everything an account holds, and where each of it is from."""
        return self._held(account.id, account.handle)

    async def configure(self, spec: GatewaySpec) -> None:
        """Go by other settings from now on, or raise a `SettingsError` and change nothing.

        Whoever has a handle by then is the one it means; nobody else takes it from then on.
        """
        settled = Settled(spec)
        reserved = self._accounts.reserved
        async with self._changing:
            now = int(self._clock.now())
            self._redirects = await self._read(
                lambda tx: queries.redirects_from(tx, settled.named, now)
            )
            reserved.awaited, reserved.namespaces = settled.named, settled.namespaces
            self._settled = settled
            self._common = Rights(distinct(settled.everyone).values())
            self._forget_everyone()
        self._store.bus.emit(SETTINGS, None)

    async def taken_namespaces(self, namespaces: Collection[str]) -> dict[str, str]:
        """Which of these cannot be a backend's, and why; if all can, they are kept from now on."""
        why = {name: "the name is reserved" for name in namespaces if name in RESERVED}
        wanted = frozenset(namespaces) - why.keys()
        reserved, now = self._accounts.reserved, int(self._clock.now())
        taken = await reserved.reserve(self._store, wanted, now)
        why.update((name, why_taken(kept)) for name, kept in taken.items())
        return {
            name: f"No backend can have the namespace {name!r}: {reason}."
            for name, reason in sorted(why.items())
        }

    async def _read(self, query: Unit[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
        """Read what is stored of everyone, once more if something of it was changed meanwhile."""
        while True:
            moment = self._moment
            found = await self._store.read(query, long=True)
            if moment == self._moment:
                return found

    def _account_changed(self, event: Event) -> None:
        changed = read_change(event)
        if changed.change in {"handle", "deleted"}:
            self._read_again(changed.id)

    def _grants_changed(self, event: Event) -> None:
        self._read_again(about(event))

    def _read_again(self, account_id: str) -> None:
        """Know what is stored of an account now: it was changed, or what it was granted."""
        self._moment += 1
        self._known.pop(account_id, None)
        now = int(self._clock.now())
        try:
            granted = self._store.peek(lambda tx: queries.grants_of(tx, account_id))
            redirects = self._store.peek(lambda tx: redirects_of(tx, account_id, now))
        except StoreError as error:
            self._unknown.add(account_id)
            logger.error(  # noqa: TRY400 - there is nothing to trace
                "the rights of an account could not be read, so it may do nothing",
                extra={"account": account_id, "error": error.code},
            )
            return
        self._unknown.discard(account_id)
        named = {h: until for h, until in redirects.items() if h in self._settled.named}
        put(self._granted, account_id, granted)
        put(self._redirects, account_id, named)

    def _ready(self, account_id: str, handle: str) -> Known | None:
        known = self._known.get(account_id)
        if (
            known is not None
            and known.handle == handle
            and (known.until is None or self._clock.now() < known.until)
        ):
            return known
        return None

    def _held(self, account_id: str, handle: str) -> list[Held]:
        held = [*self._settled.everyone, *self._settled.of(handle)]
        for former in self._leading_to(account_id):
            held += self._settled.of(former)
        for pattern, at in self._granted.get(account_id, {}).items():
            held.append(Held(capability(pattern), "granted", at=at))
        return held

    def _make(self, principal: Principal) -> tuple[Principal, Rights]:
        account_id, handle = principal.account_id, principal.name
        if account_id in self._unknown:
            self._read_again(account_id)
            if account_id in self._unknown:
                return principal, NO_RIGHTS
        redirects = self._leading_to(account_id)
        if handle in self._settled.named or redirects or self._granted.get(account_id) is not None:
            rights = self._intern(account_id, handle)
        else:
            rights = self._common
        if len(self._known) >= MOST_KNOWN or len(self._interned) >= MOST_KNOWN:
            self._forget_everyone()
        until = min(redirects.values(), default=None)
        self._known[account_id] = Known(handle, until, (principal, rights))
        return principal, rights

    def _leading_to(self, account_id: str) -> dict[str, int]:
        """The named handles that an account gave up and that still lead to it."""
        redirects = self._redirects.get(account_id)
        if not redirects:
            return {}
        now = self._clock.now()
        return {handle: until for handle, until in redirects.items() if until > now}

    def _intern(self, account_id: str, handle: str) -> Rights:
        try:
            each = distinct(self._held(account_id, handle))
            key = frozenset(each)
            rights = self._interned.get(key)
            if rights is None:
                rights = self._interned[key] = Rights(each.values())
        except CapabilityError as error:
            # Some of it may be a deny: to leave anything out could allow what was denied.
            logger.error(  # noqa: TRY400 - there is nothing to trace
                "an account has more capabilities than are allowed, so it may do nothing",
                extra={"handle": handle, "reason": error.message},
            )
            return NO_RIGHTS
        return rights

    def _forget_everyone(self) -> None:
        self._known.clear()
        self._interned.clear()


def put(table: dict[str, dict[str, int]], key: str, value: dict[str, int]) -> None:
    """Keep a value that is not empty."""
    if value:
        table[key] = value
    else:
        table.pop(key, None)
