"""What an operator does about rights while the hub runs: grants, revokes, looks, invites."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from folkmoot.accounts import parse_handle
from folkmoot.accounts.queries import by_handle, by_id
from folkmoot.accounts.reserved import standing
from folkmoot.audit import Line, by_operator, record
from folkmoot.core.capability import Capability, Rights
from folkmoot.core.errors import (
    CommandInvalid,
    TooManyCapabilities,
    UserNotFound,
)
from folkmoot.gateway import queries_grants as queries
from folkmoot.gateway.grant_model import Granted, Revoked
from folkmoot.gateway.mapping import canonical_pattern
from folkmoot.gateway.patterns import compiled, covers_nothing
from folkmoot.gateway.settled import distinct, key_of
from folkmoot.names.wire import spelled_out

if TYPE_CHECKING:
    from folkmoot.accounts import Account, Accounts, HandleInvite
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.gateway.rights import HubRights

T = TypeVar("T")

MOST_GRANTS: Final = 100_000
"""Grants on one hub: all of them are in memory. Groups in the settings have no such limit."""


class NotGranted(Exception):
    """What was to be revoked was not granted."""


class Granting:
    """Changes and shows what people were granted; a change is on the disk before it holds.

    `canonical` knows tools by the names that clients list. Audit lines are stored with the change.
    Where no hub runs (`offline`) the next one logs them.
    """

    def __init__(
        self,
        rights: HubRights,
        store: Store,
        clock: Clock,
        accounts: Accounts,
        *,
        canonical: Callable[[str], str | None] = lambda _: None,
        offline: bool = False,
    ) -> None:
        self._canonical = canonical
        self._offline = offline
        self._rights = rights
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._changing = asyncio.Lock()

    async def grant(
        self, handle: str, patterns: Sequence[str], *, by: Account | None = None
    ) -> Granted:
        """Grant some capabilities, denies among them, or none of them if one is wrong.

        Of this and the others, `by` is the operator, where it is not the one of the hub's machine.
        """
        wanted = {key_of(each.source): each for each in map(compiled, self._meant(patterns))}
        return await to_its_end(self._grant(handle, wanted, by))

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
        return await to_its_end(self._revoke(handle, wanted, everything=everything, by=by))

    async def invite(self, handle: str, seconds: int, *, by: Account | None = None) -> HandleInvite:
        """Make an invite for a handle that nobody has."""
        made = await self._accounts.invite_for(handle, seconds)
        lines = [by_operator("account.invited", by, made.handle, at=self._at())]
        await self._store.write(lambda tx: self._record(tx, lines))
        self._log(lines)
        return made

    async def find(self, tx: Tx, handle: str) -> Account:
        """Within a unit: who has a handle now, or `UserNotFound` with what the operator can do."""
        name = parse_handle(handle)
        if name is None:
            raise UserNotFound(f"{handle!r} is not a valid handle.")
        now = int(self._clock.now())
        kept = await standing(tx, name, now)
        account = await by_handle(tx, name, now)
        if account is not None and account.handle == name:
            return account
        if account is not None:
            raise UserNotFound(f"@{name} is now @{account.handle}. Use that handle.")
        if kept is None and name in self._rights.settled.named:
            raise UserNotFound(
                f"Nobody has the handle @{name} yet. 'folkmoot invite --for {name}' creates an "
                "invite for it."
            )
        raise UserNotFound(f"Nobody has the handle @{name}.")

    def _meanings(self, text: str) -> list[str]:
        """The grants that a text may name: that of a backend means whatever of it was granted."""
        meant = [key_of(compiled(each).source) for each in self._meant([text])]
        namespaces = self._rights.settled.namespaces
        return [*meant, text] if text.removeprefix("!") in namespaces else meant

    def _meant(self, patterns: Iterable[str]) -> Iterator[str]:
        namespaces = self._rights.settled.namespaces
        for pattern in spelled_out(patterns, namespaces, self._canonical):
            yield canonical_pattern(pattern, namespaces)

    async def _grant(
        self, handle: str, wanted: dict[str, Capability], by: Account | None
    ) -> Granted:
        async with self._changing:
            account = await self._store.read(lambda tx: self.find(tx, handle))
            self._check_number(account, wanted)
            now = int(self._clock.now())

            async def unit(tx: Tx) -> list[str]:
                if await by_id(tx, account.id) is None:
                    raise UserNotFound(f"Nobody has the handle @{account.handle}.")
                new = [
                    pattern
                    for pattern in wanted
                    if await queries.insert_grant(tx, account.id, pattern, now)
                ]
                if await queries.count_grants(tx) > MOST_GRANTS:
                    raise TooManyCapabilities(
                        f"A hub has at most {MOST_GRANTS:,} grants. Use a group in the settings "
                        "for what many people share."
                    )
                await self._record(tx, self._lines("hub.grant", account, new, by))
                await queries.publish_grants(tx, account.id)
                return new

            new = await self._store.write(unit)
        self._log(self._lines("hub.grant", account, new, by))
        here = self._rights.settled.namespaces
        warnings = [covers_nothing(each, here) for each in wanted.values()]
        return Granted(
            account.handle,
            new,
            [pattern for pattern in wanted if pattern not in new],
            [warning for warning in warnings if warning],
        )

    async def _revoke(
        self, handle: str, wanted: list[list[str]], *, everything: bool, by: Account | None
    ) -> Revoked:
        async with self._changing:
            account = await self._store.read(lambda tx: self.find(tx, handle))

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
                leaving = await self._store.write(unit)
            except NotGranted as error:
                raise CommandInvalid(self._why_not(account, error.args[0])) from None
        self._log(self._lines("hub.revoke", account, leaving, by))
        return Revoked(account.handle, leaving)

    def _check_number(self, account: Account, wanted: dict[str, Capability]) -> None:
        held = distinct(self._rights.held(account))
        try:
            Rights((held | wanted).values())
        except TooManyCapabilities as error:
            raise TooManyCapabilities(f"@{account.handle}: {error.message}") from None

    def _why_not(self, account: Account, pattern: str) -> str:
        """Why something cannot be revoked."""
        for held in self._rights.held(account):
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
        return int(self._clock.now()) if self._offline else None

    async def _record(self, tx: Tx, lines: list[Line]) -> None:
        await record(tx, lines, self._clock.now(), offline=self._offline)

    def _log(self, lines: Iterable[Line]) -> None:
        """Write lines to the log; offline they are stored already, and this process has no log."""
        if not self._offline:
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


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that must not stop between the disk and the log; be cancelled afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise
