"""Rights as operators grant, revoke and see them while the hub runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import field

from folkmoot.accounts.queries import by_handle, by_id
from folkmoot.accounts.registration import standing
from folkmoot.audit import Line, by_operator, record
from folkmoot.core import errors as e
from folkmoot.core.capability import Capability, Rights
from folkmoot.core.entity import Entity
from folkmoot.gateway import queries
from folkmoot.gateway.access import (
    Access,
    GrantedView,
    GrantRow,
    GroupAccess,
    HeldCapability,
    Overview,
    PersonAccess,
    PersonView,
    Revoked,
    ServerAccess,
    access,
    access_to,
)
from folkmoot.gateway.configured_rights import compiled, covers_nothing, distinct, key_of
from folkmoot.gateway.limits import MAX_ACCESS_PAGE, MAX_GRANTS, MAX_GRANTS_PAGE
from folkmoot.gateway.mapping import canonical_pattern
from folkmoot.names.grammar import parse_handle
from folkmoot.names.safe_names import spelled_out
from folkmoot.taskgroups import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from folkmoot.accounts import Account, Accounts, HandleInvite
    from folkmoot.core.kinds import Kind
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.gateway.configured_rights import HeldRight
    from folkmoot.gateway.part import Row
    from folkmoot.gateway.rights import HubRights


class NotGranted(Exception):
    """What was to be revoked was not granted."""


class Granting(Entity):
    """Changes and shows what people were granted; a change is on the disk before it holds.

    `canonical` knows tools by the names that clients list. Audit lines are stored with the change.
    Where no hub runs (`offline`) the next one logs them.
    """

    rights: HubRights
    store: Store
    clock: Clock
    accounts: Accounts
    canonical: Callable[[str], str | None] = lambda _: None
    offline: bool = False
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def grant(
        self, handle: str, patterns: Sequence[str], *, by: Account | None = None
    ) -> GrantedView:
        """Grant some capabilities, denies among them, or none of them if one is wrong.

        Of this and the others, `by` is the operator, where it is not the one of the hub's machine.
        """
        wanted = {key_of(each.source): each for each in map(compiled, self.meant(patterns))}
        return await uninterrupted(self._grant(handle, wanted, by))

    async def revoke(
        self,
        handle: str,
        patterns: Sequence[str],
        *,
        everything: bool = False,
        by: Account | None = None,
    ) -> Revoked:
        """Revoke what was granted while the hub ran: some of it, or everything."""
        wanted = [self._meanings(text) for text in patterns]
        return await uninterrupted(self._revoke(handle, wanted, everything=everything, by=by))

    async def invite(self, handle: str, seconds: int, *, by: Account | None = None) -> HandleInvite:
        """Make an invite for a handle that nobody has."""
        made = await self.accounts.invite_for(handle, seconds)
        lines = [by_operator("account.invited", by, made.handle, at=self._at())]
        await self.store.write(lambda tx: self._record(tx, lines))
        self._log(lines)
        return made

    async def find(self, tx: Tx, handle: str) -> Account:
        """Within a unit: who has a handle now, or `UserNotFound` with what the operator can do."""
        name = parse_handle(handle)
        if name is None:
            raise e.UserNotFound(f"{handle!r} is not a valid handle.")
        now = int(self.clock.now())
        kept = await standing(tx, name, now)
        account = await by_handle(tx, name, now)
        if account is not None and account.handle == name:
            return account
        if account is not None:
            raise e.UserNotFound(f"@{name} is now @{account.handle}. Use that handle.")
        if kept is None and name in self.rights.settled.named:
            raise e.UserNotFound(
                f"Nobody has the handle @{name} yet. 'folkmoot invite --for {name}' creates an "
                "invite for it."
            )
        raise e.UserNotFound(f"Nobody has the handle @{name}.")

    def _meanings(self, text: str) -> list[str]:
        """The grants that a text may name: that of a backend means whatever of it was granted."""
        meant = [key_of(compiled(each).source) for each in self.meant([text])]
        namespaces = self.rights.settled.namespaces
        return [*meant, text] if text.removeprefix("!") in namespaces else meant

    def meant(self, patterns: Iterable[str]) -> Iterator[str]:
        """The patterns that an operator's texts stand for."""
        namespaces = self.rights.settled.namespaces
        for pattern in spelled_out(patterns, namespaces, self.canonical):
            yield canonical_pattern(pattern, namespaces)

    async def _grant(
        self, handle: str, wanted: dict[str, Capability], by: Account | None
    ) -> GrantedView:
        async with self._changing:
            account = await self.store.read(lambda tx: self.find(tx, handle))
            self._check_number(account, wanted)
            now = int(self.clock.now())

            async def unit(tx: Tx) -> list[str]:
                if await by_id(tx, account.id) is None:
                    raise e.UserNotFound(f"Nobody has the handle @{account.handle}.")
                new = [
                    pattern
                    for pattern in wanted
                    if await queries.insert_grant(tx, account.id, pattern, now)
                ]
                if await queries.count_grants(tx) > MAX_GRANTS:
                    raise e.TooManyCapabilities(
                        f"A hub has at most {MAX_GRANTS:,} grants. Use a group in the settings "
                        "for what many people share."
                    )
                await self._record(tx, self._lines("hub.grant", account, new, by))
                await queries.publish_grants(tx, account.id)
                return new

            new = await self.store.write(unit)
        self._log(self._lines("hub.grant", account, new, by))
        here = self.rights.settled.namespaces
        warnings = [covers_nothing(each, here) for each in wanted.values()]
        return GrantedView(
            account.handle,
            new,
            [pattern for pattern in wanted if pattern not in new],
            [warning for warning in warnings if warning],
        )

    async def _revoke(
        self, handle: str, wanted: list[list[str]], *, everything: bool, by: Account | None
    ) -> Revoked:
        async with self._changing:
            account = await self.store.read(lambda tx: self.find(tx, handle))

            async def unit(tx: Tx) -> list[str]:
                leaving = await queries.delete_all_grants(tx, account.id) if everything else []
                for meanings in wanted:
                    gone = [pattern for pattern in meanings if pattern in leaving]
                    found = await queries.delete_grants(tx, account.id, meanings)
                    if not found and not gone:
                        raise NotGranted(meanings[0])
                    leaving += found
                await self._record(tx, self._lines("hub.revoke", account, leaving, by))
                await queries.publish_grants(tx, account.id)
                return leaving

            try:
                leaving = await self.store.write(unit)
            except NotGranted as error:
                raise e.CommandInvalid(self._why_not(account, error.args[0])) from None
        self._log(self._lines("hub.revoke", account, leaving, by))
        return Revoked(account.handle, leaving)

    def _check_number(self, account: Account, wanted: dict[str, Capability]) -> None:
        held = distinct(self.rights.held(account))
        try:
            Rights((held | wanted).values())
        except e.TooManyCapabilities as error:
            raise e.TooManyCapabilities(f"@{account.handle}: {error.message}") from None

    def _why_not(self, account: Account, pattern: str) -> str:
        """Why something cannot be revoked."""
        for held in self.rights.held(account):
            if key_of(held.capability.source) == pattern:
                where = WHERE[held.origin].format(held.name)
                return f"Nothing was revoked: @{account.handle} has {pattern} {where}."
        return f"Nothing was revoked: @{account.handle} was not granted {pattern}."

    def _lines(
        self, action: str, account: Account, patterns: Iterable[str], by: Account | None
    ) -> list[Line]:
        at = self._at()
        return [by_operator(action, by, account.handle, account.id, each, at) for each in patterns]

    def _at(self) -> int | None:
        return int(self.clock.now()) if self.offline else None

    async def _record(self, tx: Tx, lines: list[Line]) -> None:
        await record(tx, lines, self.clock.now(), offline=self.offline)

    def _log(self, lines: Iterable[Line]) -> None:
        """Write lines to the log; offline they are stored already, and this process has no log."""
        if not self.offline:
            for line in lines:
                line.log()


WHERE: Final = {
    "default": "as every account does; deny it to take it away",
    "everyone": "because the backend {} is for everyone; deny it to take it away",
    "group": "from the group {} in the settings file; change it there",
    "settings": "from [grants] in the settings file; change it there",
    "granted": "",
}
"""Where a capability is from that was not granted here, and what can be done about it."""


class GrantViews(Entity):
    """Shows people's rights, and changes nothing."""

    rights: HubRights
    granting: Granting
    store: Store
    clock: Clock

    async def person(self, handle: str) -> PersonView:
        """The rights of one handle, with the origin of each."""
        settled, name = self.rights.settled, parse_handle(handle)
        try:
            account = await self.store.read(lambda tx: self.granting.find(tx, handle))
        except e.UserNotFound:
            if name is None or name not in settled.named or await self._leads(name):
                raise
            return PersonView(
                name, None, None, held_capabilities((*settled.everyone, *settled.of(name)))
            )
        held = held_capabilities(self.rights.held(account))
        return PersonView(account.handle, account.id, account.account_type, held)

    async def overview(self, after: str = "") -> Overview:
        """A page of everyone who is named in the settings or was granted something."""
        settled, now = self.rights.settled, int(self.clock.now())

        async def query(tx: Tx) -> list[GrantRow]:
            granted, members = await queries.grant_counts(tx), await self._members(tx)
            known = settled.named | granted.keys() | members.keys()
            names = sorted(name for name in known if name > after)[: MAX_GRANTS_PAGE + 1]
            owners = await queries.owners_of(tx, names, now)
            return [
                self._row(name, owners.get(name), granted, members.get(name, [])) for name in names
            ]

        rows = await self.store.read(query, long=True)
        more = rows[MAX_GRANTS_PAGE - 1].handle if len(rows) > MAX_GRANTS_PAGE else None
        return Overview(held_capabilities(settled.everyone), rows[:MAX_GRANTS_PAGE], more)

    async def access(
        self, namespace: str, rows: Sequence[Row], kind: Kind | None, after: str = ""
    ) -> ServerAccess:
        """A page of those who may use a server by more than everyone's rights, or are denied it.

        With a kind, of those who may call the one tool.
        """
        rights = self.rights

        async def query(tx: Tx) -> tuple[list[tuple[str, bool, list[HeldRight]]], str | None]:
            granted, members = await queries.grant_counts(tx), await self._members(tx)
            known = rights.settled.named | granted.keys() | members.keys()
            names = sorted(name for name in known if name > after)
            page = names[:MAX_ACCESS_PAGE]
            found = [(name, *await self._holds(tx, name)) for name in page]
            return found, page[-1] if len(names) > len(page) else None

        found, following = await self.store.read(query, long=True)
        everyone = rights.settled.everyone

        def told() -> ServerAccess:
            def of(held: Sequence[HeldRight]) -> Access:
                return access(held, namespace, rows) if kind is None else access_to(held, kind)

            groups = [
                GroupAccess(name=name, members=len(who), access=of(rights.settled.of_group(name)))
                for name, who in ({} if after else rights.settled.groups).items()
            ]
            people = [
                PersonAccess(handle=name, account=has, access=of(held)) for name, has, held in found
            ]
            own = {"group", "settings", "granted"}
            return ServerAccess(
                namespace=namespace,
                tools=len(rows),
                everyone=of(everyone),
                groups=[each for each in groups if each.access.reasons],
                people=[
                    each
                    for each in people
                    if any(reason.origin in own for reason in each.access.reasons)
                ],
                next=following,
            )

        return await asyncio.to_thread(told)

    async def _holds(self, tx: Tx, name: str) -> tuple[bool, list[HeldRight]]:
        """Whether a handle has an account, and its rights or those that wait for it."""
        try:
            return True, self.rights.held(await self.granting.find(tx, name))
        except e.UserNotFound:
            settled = self.rights.settled
            return False, [*settled.everyone, *settled.of(name)]

    async def _members(self, tx: Tx) -> dict[str, list[str]]:
        """Handles of those who are in groups by what their company says, and which."""
        groups = self.rights.company_members()
        handles = await queries.handles_of(tx, groups)
        return {handle: groups[account_id] for account_id, handle in handles.items()}

    def _row(
        self, name: str, owner: str | None, granted: dict[str, int], groups: list[str]
    ) -> GrantRow:
        settled = self.rights.settled
        return GrantRow(
            handle=name,
            state="nobody" if owner is None else "account" if owner == name else "redirect",
            leads_to=owner if owner not in {None, name} else None,
            groups=[*settled.groups_of(name), *groups],
            settings=len(settled.of(name)),
            granted=granted.get(name, 0),
        )

    async def _leads(self, name: str) -> bool:
        now = int(self.clock.now())
        return bool(await self.store.read(lambda tx: queries.owners_of(tx, [name], now)))


def held_capabilities(held: Iterable[HeldRight]) -> list[HeldCapability]:
    return [HeldCapability(it.capability.source, it.origin, it.name, it.at) for it in held]
