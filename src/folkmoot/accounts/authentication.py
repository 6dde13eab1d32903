"""Who is behind a secret, and the credentials that an account has: made, listed, revoked.

Those who were seen last are known, so that a request need not ask the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from folkmoot.accounts import queries_apps, queries_consents
from folkmoot.accounts import queries_credentials as queries
from folkmoot.accounts.credentials import BROWSER, hash_of, hash_secret, new_secret
from folkmoot.accounts.limits import (
    MAX_CACHED_IDENTITIES,
    MAX_LABEL,
    MAX_TOKEN_SECONDS,
    SIGN_IN_SECONDS,
    UPKEEP_SECONDS,
)
from folkmoot.accounts.model import (
    Account,
    Credential,
    Identity,
    NewToken,
    SessionTimes,
)
from folkmoot.accounts.queries import by_id as account_by_id
from folkmoot.audit import OPERATOR, audit_logger
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import ACCOUNTS, CREDENTIALS, about
from folkmoot.core.scopes import OPERATE, WHOLE
from folkmoot.core.scopes import scope as scope_of
from folkmoot.telemetry.logs import REQUEST, request_fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.core.capability import Rights
    from folkmoot.core.ports import Clock, Event, RoomOwners, Store, Tx
    from folkmoot.quotas import Quotas

logger = logging.getLogger("folkmoot.accounts")

CONFIRM: Final = (
    "To create a token in a browser, use your passkey, or give one of your tokens once more."
)


class Ready(Struct, frozen=True, gc=False):
    """What an account may do with a credential of some scope, and until when that is so."""

    handle: str
    until: float | None
    rights: Rights


class KnownIdentities(Entity):
    """A cache of identities by the hash of their secret; a changed account is dropped from it."""

    most: int = MAX_CACHED_IDENTITIES
    rights: dict[str, dict[str, Ready]] = {}
    """By account, and by the scope of the credential; made and bounded by whoever knows what was
    granted.
    """
    moment: int = 0
    """Grows with every change: what was read at an earlier moment may be outdated."""
    _by_hash: OrderedDict[str, Identity] = field(default_factory=OrderedDict)
    _hashes: dict[str, str] = {}
    """By the id of the credential."""
    _of_account: dict[str | None, set[str]] = {}
    """Hashes by account."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def get(self, hashed: str) -> Identity | None:
        """The identity cached for this hash of a secret, if any."""
        identity = self._by_hash.get(hashed)
        if identity is not None:
            self._by_hash.move_to_end(hashed)
        return identity

    def get_by_id(self, credential_id: str) -> Identity | None:
        """Who is behind a credential, if that is known."""
        hashed = self._hashes.get(credential_id)
        return None if hashed is None else self.get(hashed)

    def put(self, hashed: str, identity: Identity, *, read_at: int) -> None:
        """Remember what was read, unless something has changed since the moment of reading."""
        if read_at != self.moment:
            return
        self._by_hash[hashed] = identity
        self._hashes[identity.credential.id] = hashed
        self._of_account.setdefault(identity.credential.account_id, set()).add(hashed)
        if len(self._by_hash) > self.most:
            self._drop(next(iter(self._by_hash)))

    def forget(self, credential_id: str, account_id: str | None = None) -> None:
        """Drop a credential that ended, or that must be read again.

        With its `account_id` also what came from it: the access tokens of a grant end unheard.
        """
        self.moment += 1
        if (hashed := self._hashes.get(credential_id)) is not None:
            self._drop(hashed)
        if account_id is not None:
            for hashed in tuple(self._of_account.get(account_id, ())):
                if self._by_hash[hashed].credential.parent_id == credential_id:
                    self._drop(hashed)

    def forget_account(self, account_id: str) -> None:
        """An account was changed: what was read of it before is not remembered any more."""
        self.moment += 1
        self.rights.pop(account_id, None)
        for hashed in tuple(self._of_account.get(account_id, ())):
            self._drop(hashed)

    def forget_all(self) -> None:
        """Nothing that was read before is remembered any more."""
        self.moment += 1
        for table in (self._by_hash, self._hashes, self._of_account, self.rights):
            table.clear()

    def _drop(self, hashed: str) -> None:
        credential = self._by_hash.pop(hashed).credential
        del self._hashes[credential.id]
        others = self._of_account[credential.account_id]
        others.discard(hashed)
        if not others:
            del self._of_account[credential.account_id]


class Authentication(Entity):
    """All credentials of accounts; most are answered from memory."""

    store: Store
    clock: Clock
    quotas: Quotas
    times: SessionTimes
    owners: RoomOwners | None = None
    renew: Callable[[str], Awaitable[None]] | None = None
    """Awaited with each account that was not remembered: reads what it was granted again."""
    known: KnownIdentities = field(default_factory=KnownIdentities)
    """The one table of those who were authenticated, and of what they may do."""
    _used: set[str] = set()
    _browsers: set[str] = set()

    def __post_init__(self) -> None:
        self.store.bus.listen(ACCOUNTS, self._account_changed)
        self.store.bus.listen(CREDENTIALS, self._credential_ended)
        self.store.bus.listen_doubt(self.known.forget_all)

    def _account_changed(self, event: Event) -> None:
        self.known.forget_account(about(event))

    def _credential_ended(self, event: Event) -> None:
        self.known.forget(about(event), event.data["account"])

    async def by_hash(self, hashed: str) -> Identity | None:
        """Who is behind the secret with this hash, also where the account is suspended."""
        identity = self.known.get(hashed)
        if identity is None:
            moment = self.known.moment
            row = await self.store.look_up(queries.BY_HASH, hashed)
            identity = queries.identity_of(row, hashed)
            if identity is not None:
                await self._remember(hashed, identity, moment)
        identity = self._checked(identity)
        info = REQUEST.get()
        if info is not None and identity is not None:
            info.account_id = identity.credential.account_id
            info.credential_id = identity.credential.lasting_id
        return identity

    async def by_browser(self, secret: str) -> Identity | None:
        """Who is behind the secret of a browser session, also where the account is suspended."""
        hashed = hash_of(BROWSER, secret)
        return None if hashed is None else await self.by_hash(hashed)

    async def by_id(self, credential_id: str) -> Identity | None:
        """Who is behind a credential, also where the account is suspended."""
        identity = self.known.get_by_id(credential_id)
        if identity is None:
            moment = self.known.moment
            found = await self.store.read(lambda tx: tx.fetch_one(queries.BY_ID, (credential_id,)))
            if found is not None:
                identity = queries.identity(found)
                await self._remember(found[0], identity, moment)
        return self._checked(identity)

    async def _remember(self, hashed: str, identity: Identity, moment: int) -> None:
        if self.renew is not None and identity.account is not None:
            await self.renew(identity.account.id)
        self.known.put(hashed, identity, read_at=moment)

    def _checked(self, identity: Identity | None) -> Identity | None:
        if identity is None:
            return None
        credential = identity.credential
        if credential.expires_at is not None and credential.expires_at <= self.clock.now():
            return None
        if credential.kind == "browser":
            self._browsers.add(credential.id)
        else:
            self._used.add(credential.parent_id or credential.id)
        return identity

    async def list(self, account: Account) -> list[Credential]:
        """The credentials that an account has; sessions are part of their tokens.

        What was used here since the last upkeep is not stored yet.
        """
        found = await self.store.read(lambda tx: queries.of_account(tx, account.id))
        now = int(self.clock.now())
        return [replace(it, used_at=now) if it.id in self._used else it for it in found]

    async def create(
        self,
        account: Account,
        label: str = "",
        *,
        expires_in: int | None = None,
        scope: str = "",
        by: str = "",
        confirmed: Credential | None = None,
        present: bool = False,
        operated: bool = False,
    ) -> NewToken:
        """Make one more token for an account; its secret is told this once.

        One that is made with another, whose id is `by`, may do no more and must expire no later;
        without a `scope` it may do the same. In a browser its person must be `present`, by a
        passkey, or a token `confirmed`: the new one may do no more than that, and lasts no longer.
        Which scopes there are is not checked here. One that is `operated` is made by the operator;
        only such a one may run the hub.
        """
        if len(label) > MAX_LABEL or not label.isprintable():
            raise e.ArgumentInvalid(
                f"label must be at most {MAX_LABEL} characters on one line.", field="label"
            )
        if expires_in is not None and not 1 <= expires_in <= MAX_TOKEN_SECONDS:
            raise e.ArgumentInvalid(
                f"expires_in must be from 1 to {MAX_TOKEN_SECONDS} seconds.", field="expires_in"
            )
        self.quotas.check_disk()
        now, token = int(self.clock.now()), new_secret("sk")
        until = None if expires_in is None else now + expires_in

        async def unit(tx: Tx) -> Credential:
            current = await account_by_id(tx, account.id)
            if current is None or current.suspended_at is not None:
                raise e.TokenInvalid
            asking = await queries.by_id(tx, by) if by else None
            if by and asking is None:
                raise e.TokenInvalid
            used = None if asking is None else asking.credential
            in_browser = used is not None and used.kind == "browser"
            if in_browser and confirmed is None and not present:
                raise e.ConfirmationInvalid(CONFIRM)
            if confirmed is not None and await queries.by_id(tx, confirmed.id) is None:
                raise e.TokenInvalid
            held = WHOLE if used is None else scope_of(used.scope)
            wanted = scope_of(scope or " ".join(held.words - {OPERATE}))
            for each in (held, WHOLE if confirmed is None else scope_of(confirmed.scope)):
                if not operated and (not each.covers(wanted) or wanted.has(OPERATE)):
                    raise e.ArgumentInvalid(
                        "A token that you create can have no scope that the token you use has "
                        f"not: {each.text}.",
                        field="scope",
                    )
            # It can outlast the session it is made in, but not the token that confirms it.
            lender = confirmed if in_browser else used
            latest = None if lender is None else lender.expires_at
            if latest is not None and (until is None or until > latest):
                raise e.ArgumentInvalid(
                    "The token you use expires, so one that you create with it must too: give "
                    f"expires_in, at most {max(1, latest - now)} seconds.",
                    field="expires_in",
                )
            most = self.quotas.limits.tokens_per_account
            if most:
                there = await queries.count_of(tx, account.id)
                self.quotas.check("tokens_per_account", there + 1, most)
            # Times are whole seconds; what is made in a session is younger than that.
            began = now if used is None else max(now, used.created_at + in_browser)
            made = Credential(
                queries.new_id(),
                "token",
                account.id,
                began,
                label=label,
                expires_at=until,
                scope=wanted.text,
            )
            await queries.insert(tx, made, hash_secret(token))
            return made

        made = await self.store.write(unit)
        audit_credential(
            "token.created", account, made.id, OPERATOR if operated else account.handle
        )
        return NewToken(made, token)

    async def revoke(
        self,
        account: Account,
        credential_id: str,
        *,
        operated: bool = False,
        by: Account | None = None,
    ) -> None:
        """End one of an account's credentials, and at once all that is open with it.

        Where it is `operated` an operator ends it: `by`, or the one of the hub's own machine.
        """

        async def unit(tx: Tx) -> None:
            if not await queries.remove(tx, account.id, credential_id):
                raise e.CredentialNotFound

        await self.store.write(unit)
        who = OPERATOR if operated and by is None else (by or account).handle
        audit_credential("token.revoked", account, credential_id, who, by)

    async def end(self, account_id: str, credential_id: str) -> None:
        """End the credential of a session that is over; one that is gone is no error."""
        await self.store.write(lambda tx: queries.remove(tx, account_id, credential_id))

    async def bind(self, token_id: str, session_hash: str, until: int) -> Credential | None:
        """Let a session be signed in for as long as a token is good; None where it is not now."""
        now = int(self.clock.now())

        async def unit(tx: Tx) -> Credential | None:
            found = await queries.by_id(tx, token_id)
            if found is None:
                return None
            token = found.credential
            # The session may have been signed in before, as another account's.
            await queries.remove_hash(tx, session_hash)
            made = Credential(
                queries.new_id(),
                "session",
                token.account_id,
                now,
                parent_id=token.id,
                expires_at=until if token.expires_at is None else min(until, token.expires_at),
                scope=token.scope,
            )
            await queries.insert(tx, made, session_hash)
            return made

        return await self.store.write(unit)

    async def run(self) -> None:
        """Do the upkeep until cancelled; what fails is tried again in the next round."""
        try:
            while True:
                await asyncio.sleep(UPKEEP_SECONDS)
                await self.upkeep()
        finally:
            await self.upkeep()

    async def store_uses(self) -> None:
        """Store which credentials were used here since it was done last."""
        now, used, browsers = int(self.clock.now()), sorted(self._used), self._browsers
        self._used.clear()
        self._browsers = set()

        async def renew(tx: Tx) -> None:
            for credential_id in sorted(browsers):
                await queries.renew_browser(tx, credential_id, now, self.times)

        if used:
            await self.store.write(lambda tx: queries.store_last_use(tx, used, now))
        if browsers:
            await self.store.write(renew)
            # What is known of them says when they would have ended.
            for credential_id in browsers:
                self.known.forget(credential_id)

    async def upkeep(self) -> None:
        """Store which credentials were used, and remove those whose time is over.

        Where several processes use the database, one of them removes.
        """
        now = int(self.clock.now())
        try:
            await self.store_uses()
            if self.owners is not None and not await self.owners.is_first():
                return
            # A hub that has nothing to remove writes nothing.
            while await self.store.read(lambda tx: queries.any_expired(tx, now)):
                await self.store.write(lambda tx: queries.remove_expired(tx, now, 500))
            while await self.store.read(lambda tx: queries_apps.any_over(tx, now)):
                await self.store.write(lambda tx: queries_apps.remove_over(tx, now, 500))
            left = now - SIGN_IN_SECONDS
            if await self.store.read(lambda tx: queries_consents.any_left(tx, left)):
                await self.store.write(lambda tx: queries_consents.remove_left(tx, left))
        except e.StoreError as error:
            logger.warning("the upkeep of credentials failed", extra={"error": error.code})


def audit_credential(
    action: str, account: Account, credential_id: str, by: str, operator: Account | None = None
) -> None:
    """Have in the audit log what someone did to a credential of an account.

    An `operator` who has an account did it as that; whose credential it was is told beside.
    """
    who = operator or account
    extra = {"by": by, "account": who.id, "about": credential_id}
    if who.id != account.id or by == OPERATOR:
        extra["of"] = account.handle
    extra |= request_fields(who.id)
    audit_logger.info(action, extra=extra)
