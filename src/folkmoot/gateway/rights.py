"""What people may do at the hub, ready to be asked at every call.

`HubRights` has the rights of every account; `Scoped` are those as a credential has them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from folkmoot.accounts.authentication import Ready
from folkmoot.accounts.model import principal_of, read_change
from folkmoot.accounts.queries import redirects_of
from folkmoot.accounts.queries_identities import groups_at
from folkmoot.accounts.registration import why_taken
from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, capability
from folkmoot.core.entity import Entity
from folkmoot.core.events import ACCOUNTS, GRANTS, GROUPS, SETTINGS, about
from folkmoot.core.kinds import Kind
from folkmoot.core.policy import NOBODY, Principal
from folkmoot.core.scopes import ALL, OPERATE, Need, scope
from folkmoot.gateway import queries
from folkmoot.gateway.configured_rights import (
    FINDERS,
    ConfiguredRights,
    HeldRight,
    distinct,
)
from folkmoot.gateway.limits import MAX_CACHED_RIGHTS
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.names.grammar import RESERVED_NAMES
from folkmoot.settings.backends import GatewaySpec

if TYPE_CHECKING:
    from folkmoot.accounts import Account, Accounts
    from folkmoot.core.capability import Capability, Source
    from folkmoot.core.ports import Clock, Event, Store, Tx, Unit
    from folkmoot.core.scopes import Scope

logger = logging.getLogger("folkmoot.gateway")


NO_RIGHTS: Final = Rights(["!*"])
"""Everything is denied, inside rooms too."""
NOBODY_MAY: Final = Rights(
    [
        "mcp.request.tools/call:msg/register",
        "mcp.request.tools/call:msg/recover",
        *FINDERS,
    ]
)
INBOX: Final = "mmp://mailboxes/inbox"
SAME_AS_TOOL: Final[Mapping[str, str]] = {INBOX: "msg/digest"}
"""Resources of the hub's own, and the tools that answer the same."""
PAGES: Final = "ui"
"""The namespace of the hub's own apps: pages that are the same for everyone."""
TOOLS: Final = "tools"
"""The scope of all that servers behind the hub have."""
SHOWN: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
"""What a scope is for, as far as a refusal repeats it."""


# To look a method of a base class up costs more than a part of what it does.
_allows: Final = Rights.allows

NO_NEEDS: Final[Mapping[str, Need]] = {}


class HubRights(Entity):
    """The rights of everyone: defaults, settings, and what was granted while the hub runs.

    Rights belong to the account, and the scope of a credential narrows them. A handle in the
    settings is whoever has it, and whoever had it before for as long as it leads there. What was
    made is kept beside the credentials that are known, so `of` costs a look there; equal rights
    are one object. A change holds from the next call on.
    """

    store: Store
    clock: Clock
    accounts: Accounts
    needs: Mapping[str, Need] = NO_NEEDS
    _settled: ConfiguredRights = field(default_factory=lambda: ConfiguredRights(GatewaySpec()))
    _granted: dict[str, dict[str, int]] = {}
    _redirects: dict[str, dict[str, int]] = {}
    _companys: dict[str, dict[str, int]] = {}
    """The groups that people are in by what their company says, by account."""
    _interned: dict[frozenset[str], Rights] = {}
    _scoped: dict[tuple[Rights, str], Scoped] = {}
    _moment: int = 0
    """Grows with every change, so that what was read before one is known to be outdated."""
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._common = Rights(distinct(self._settled.everyone).values())
        self._ready = self.accounts.authentication.known.rights

    @classmethod
    async def open(
        cls,
        store: Store,
        clock: Clock,
        accounts: Accounts,
        spec: GatewaySpec | None = None,
        needs: Mapping[str, Need] = NO_NEEDS,
    ) -> HubRights:
        """The rights as they are stored and settled; they follow the accounts from now on."""
        rights = cls(store, clock, accounts, needs)
        store.bus.listen(ACCOUNTS, rights._account_changed)
        store.bus.listen(GRANTS, rights._grants_changed)
        store.bus.listen(GROUPS, rights._groups_changed)
        store.bus.listen_doubt(rights._doubt)
        rights._granted = await rights._read(queries.all_grants)
        rights._companys = await rights._read(lambda tx: groups_at(tx, accounts.groups_from))
        await rights.configure(spec or GatewaySpec())
        return rights

    @property
    def settled(self) -> ConfiguredRights:
        """The rights of the settings."""
        return self._settled

    @property
    def granted(self) -> dict[str, dict[str, int]]:
        """What was granted while the hub ran: by account, the patterns and when."""
        return self._granted

    def of(self, account: Account | None) -> tuple[Principal, Rights]:
        """An account as a principal, and its full rights."""
        principal = NOBODY if account is None else principal_of(account)
        return principal, self.of_principal(principal)

    def of_principal(self, principal: Principal) -> Rights:
        """The rights of a principal within its credential's scope."""
        known = self._ready.get(principal.account_id)
        if known is not None:
            found = known.get(principal.scope)
            if (
                found is not None
                and found.handle == principal.name
                and (found.until is None or self.clock.now() < found.until)
            ):
                return found.rights
        elif not principal.account_id:
            return NOBODY_MAY
        return self._make(principal)

    def groups_of(self, principal: Principal) -> frozenset[str]:
        """The groups of the settings that someone is in, by a former handle too."""
        known = self._settled.groups_of
        former = self._leading_to(principal.account_id)
        named = (name for it in (principal.name, *former) for name in known(it))
        return frozenset((*self._told_of(principal.account_id), *named))

    def names_of(self, principal: Principal) -> frozenset[str]:
        """The handles that lead to someone, as far as the settings name them, and @groups."""
        former = self._leading_to(principal.account_id)
        groups = (f"@{group}" for group in self.groups_of(principal))
        return frozenset((principal.name, *former, *groups))

    def company_members(self) -> dict[str, list[str]]:
        """The groups of the settings that people are in by what their company says, by account."""
        found = ((account_id, self._told_of(account_id)) for account_id in self._companys)
        return {account_id: sorted(groups) for account_id, groups in found if groups}

    def _told_of(self, account_id: str) -> set[str]:
        return self._companys.get(account_id, {}).keys() & self._settled.groups.keys()

    def held(self, account: Account) -> list[HeldRight]:
        """Everything an account holds, and where each of it is from."""
        return self._held(account.id, account.handle)

    async def configure(self, spec: GatewaySpec) -> None:
        """Go by other settings from now on, or raise a `SettingsError` and change nothing.

        Whoever has a handle by then is the one it means; nobody else takes it from then on.
        """
        settled = ConfiguredRights(spec)
        reserved = self.accounts.reserved
        async with self._changing:
            now = int(self.clock.now())
            self._redirects = await self._read(
                lambda tx: queries.redirects_from(tx, settled.named, now)
            )
            await reserved.keep_only(self.store, settled.namespaces)
            reserved.awaited = settled.named
            self._settled = settled
            self._common = Rights(distinct(settled.everyone).values())
            self._forget_everyone()
        self.store.bus.emit(SETTINGS, None)

    async def taken_namespaces(self, namespaces: Collection[str]) -> dict[str, str]:
        """Which of these cannot be a backend's, and why; if all can, they are kept from now on."""
        why = {name: "the name is reserved" for name in namespaces if name in RESERVED_NAMES}
        wanted = frozenset(namespaces) - why.keys()
        reserved, now = self.accounts.reserved, int(self.clock.now())
        taken = await reserved.reserve(self.store, wanted, now)
        why.update((name, why_taken(kept)) for name, kept in taken.items())
        return {
            name: f"No backend can have the namespace {name!r}: {reason}."
            for name, reason in sorted(why.items())
        }

    async def _read(self, query: Unit[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
        """Read what is stored of everyone, once more if something of it was changed meanwhile."""
        while True:
            moment = self._moment
            found = await self.store.read(query, long=True)
            if moment == self._moment:
                return found

    def _doubt(self) -> None:
        """Changes may have been missed: whoever is authenticated from now on is read again."""
        self.accounts.authentication.renew = self._renew

    async def _renew(self, account_id: str) -> None:
        """Go by what is stored of an account."""
        now = int(self.clock.now())

        async def query(tx: Tx) -> tuple[dict[str, int], ...]:
            leading = await redirects_of(tx, account_id, now)
            granted = await queries.grants_of(tx, account_id)
            groups = await groups_at(tx, self.accounts.groups_from, account_id)
            return granted, leading, groups.get(account_id, {})

        while True:
            moment = self._moment
            granted, leading, groups = await self.store.read(query)
            if moment == self._moment:
                break
        named = self._settled.named
        leading = {handle: until for handle, until in leading.items() if handle in named}
        tables = (self._granted, self._redirects, self._companys)
        for table, stored in zip(tables, (granted, leading, groups), strict=True):
            # What is as it was makes nobody else read again.
            if stored != table.get(account_id, {}):
                self._change(account_id, table, stored)

    def _account_changed(self, event: Event) -> None:
        changed = read_change(event)
        if changed.change in {"handle", "deleted"}:
            named = self._settled.named
            leading = {h: until for h, until in changed.redirects.items() if h in named}
            self._change(changed.id, self._redirects, leading)
        if changed.change == "deleted":
            self._change(changed.id, self._granted, {})
            self._change(changed.id, self._companys, {})

    def _grants_changed(self, event: Event) -> None:
        self._change(about(event), self._granted, event.data)

    def _groups_changed(self, event: Event) -> None:
        self._change(about(event), self._companys, event.data)

    def _change(
        self, account_id: str, table: dict[str, dict[str, int]], now: dict[str, int]
    ) -> None:
        """Go by something else from the next call on."""
        self._moment += 1
        self._ready.pop(account_id, None)
        if now:
            table[account_id] = now
        else:
            table.pop(account_id, None)

    def _held(self, account_id: str, handle: str) -> list[HeldRight]:
        held = [*self._settled.everyone, *self._settled.of(handle)]
        for former in self._leading_to(account_id):
            held += self._settled.of(former)
        for pattern, at in self._granted.get(account_id, {}).items():
            held.append(HeldRight(capability(pattern), "granted", at=at))
        for group in sorted(self._told_of(account_id)):
            held += self._settled.of_group(group)
        return held

    def _make(self, principal: Principal) -> Rights:
        account_id, handle = principal.account_id, principal.name
        redirects = self._leading_to(account_id)
        own = self._granted.get(account_id) or self._companys.get(account_id)
        if handle in self._settled.named or redirects or own:
            rights = self._intern(account_id, handle)
        else:
            rights = self._common
        tables = (self._ready, self._interned, self._scoped)
        if any(len(table) >= MAX_CACHED_RIGHTS for table in tables):
            self._forget_everyone()
        key = (rights, principal.scope)
        scoped = self._scoped.get(key)
        if scoped is None:
            scoped = self._scoped[key] = Scoped(rights, scope(principal.scope), self.needs)
        until = min(redirects.values(), default=None)
        self._ready.setdefault(account_id, {})[principal.scope] = Ready(handle, until, scoped)
        return scoped

    def _leading_to(self, account_id: str) -> dict[str, int]:
        """The named handles that an account gave up and that still lead to it."""
        redirects = self._redirects.get(account_id)
        if not redirects:
            return {}
        now = self.clock.now()
        return {handle: until for handle, until in redirects.items() if until > now}

    def _intern(self, account_id: str, handle: str) -> Rights:
        try:
            each = distinct(self._held(account_id, handle))
            key = frozenset(each)
            rights = self._interned.get(key)
            if rights is None:
                rights = self._interned[key] = Rights(each.values())
        except e.CapabilityError as error:
            # Some of it may be a deny: to leave anything out could allow what was denied.
            logger.error(  # noqa: TRY400 - there is nothing to trace
                "an account has more capabilities than are allowed, so it may do nothing",
                extra={"handle": handle, "reason": error.message},
            )
            return NO_RIGHTS
        return rights

    def _forget_everyone(self) -> None:
        self._ready.clear()
        self._interned.clear()
        self._scoped.clear()


class Scoped(Rights):
    """An account's rights within the scope of one credential.

    To run the hub, an account's own rights do not help: that right is the credential's alone, and
    a deny takes it away.
    """

    __slots__ = ("_narrow", "_needs", "_operating", "scope")

    def __init__(self, rights: Rights, scope: Scope, needs: Mapping[str, Need]) -> None:
        # What is compiled and found is the same whatever the scope: it is shared.
        for name in Rights.__slots__:
            setattr(self, name, getattr(rights, name))
        self.scope = scope
        self._needs = needs
        self._narrow = not scope.is_whole
        self.by_kind_alone = self.by_kind_alone and not self._narrow
        self._operating = operating(needs)

    @property
    def has_denies(self) -> bool:
        """Whether anything is denied, or outside the scope."""
        return self._denying or self._narrow

    def missing(self, kind: Kind, payload: Any = None) -> str:
        """The scope that a request needs and the credential has not; empty where it has all."""
        need = self._need(kind, payload)
        if need is None or self.scope.has(*need):
            return ""
        name, about = need
        return f"{name}:{about}" if SHOWN.fullmatch(about) else name

    def allows(self, kind: Kind, payload: Any = None, to: Sequence[str] = ()) -> bool:
        """Whether the account may do it, and the credential has it in its scope."""
        if kind.context in self._operating and kind.method == TOOLS_CALL:
            return self.scope.has(OPERATE) and not self.denies(kind, payload, to)
        if self._narrow and self.missing(kind, payload):
            return False
        return _allows(self, kind, payload, to)

    def may_deny(self, kind: Kind) -> bool:
        """Whether a request of this kind may be denied, or outside the scope."""
        return self._narrow or super().may_deny(kind)

    def lists(self, kind: Kind) -> bool:
        """Whether someone is shown what they may ask for, perhaps only about some rooms."""
        return self.in_scope(kind) and super().allows(kind)

    def in_scope(self, kind: Kind) -> bool:
        """Whether the scope has a request of this kind with some arguments."""
        need = self._need(kind, None)
        if need is None or self.scope.has(*need):
            return True
        known = self._needs.get(kind.context or "")
        if known is None or not known.about:
            return False
        lesser = known.lesser is not None and self.scope.may_have(known.lesser[2])
        return lesser or self.scope.may_have(known.scope)

    def covers(self, source: Source | Capability) -> bool:
        """Whether all that a capability allows is held; a narrow scope is asked each by each."""
        return not self._narrow and super().covers(source)

    def _need(self, kind: Kind, payload: Any) -> tuple[str, str] | None:
        """The scope that a request needs, and what for; None where it needs none.

        What is said in a room is judged as the operation that it is.
        """
        context = kind.context
        if context is None or kind.root != "mcp.request":
            return None
        name = context if kind.method == TOOLS_CALL else SAME_AS_TOOL.get(context, "")
        need = self._needs.get(name)
        if need is None:
            namespace, colon, _ = context.partition(":")
            if kind.method == TOOLS_CALL:
                return (TOOLS, namespace) if colon else (ALL, "")
            # What has no namespace is nothing: a server is asked by its canonical names.
            return (TOOLS, namespace) if colon and namespace != PAGES else None
        if not need.scope:
            return None
        name = need.scope
        if need.lesser is not None and argument(payload, need.lesser[0]) == need.lesser[1]:
            name = need.lesser[2]
        return name, argument(payload, need.about) if need.about else ""


def argument(payload: Any, name: str) -> str:
    """An argument of a call, if it is text."""
    params = payload.get("params") if type(payload) is dict else None
    arguments = params.get("arguments") if type(params) is dict else None
    value = arguments.get(name) if type(arguments) is dict else None
    return value if type(value) is str else ""


def operating(needs: Mapping[str, Need]) -> frozenset[str | None]:
    """The operations that run the hub."""
    return frozenset(name for name, need in needs.items() if need.scope == OPERATE)
