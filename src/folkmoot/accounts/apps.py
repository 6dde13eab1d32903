"""Apps that a person lets use their account: the grants, and the tokens that come of them.

A person consents in a browser; the app gets a code for that, and exchanges it for a pair of tokens.
The *grant* is the credential that lasts. Its *access tokens* open the account for an hour; a
*refresh token* gets the next pair. For a short while after its first use a refresh token gets
further pairs, since several processes of an app may share one. Later use means that it was stolen:
the grant ends, as it does when its code is used twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict

from folkmoot.accounts import queries_apps as queries
from folkmoot.accounts import queries_credentials as credentials
from folkmoot.accounts.authentication import audit_credential
from folkmoot.accounts.credentials import (
    hash_grant,
    hash_of,
    hash_secret,
    new_secret,
)
from folkmoot.accounts.limits import (
    APP_CODE_SECONDS,
    MAX_APP_CODES,
    MAX_GRANTS,
    MAX_LABEL,
    MAX_TOKENS_OF_GRANT,
)
from folkmoot.accounts.model import (
    Account,
    AppClient,
    ConnectedApp,
    Credential,
    CredentialKind,
    Pair,
    usable,
)
from folkmoot.accounts.queries import by_id as account_by_id
from folkmoot.accounts.queries_apps import AppCode
from folkmoot.core import errors as e
from folkmoot.core.oauth.authorize import is_ours
from folkmoot.core.oauth.scopes import narrowed
from folkmoot.core.oauth.tokens import ACCESS, CODE, REFRESH
from folkmoot.core.scopes import OPERATE
from folkmoot.core.scopes import scope as scope_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.core.scopes import Scope
    from folkmoot.quotas import Quotas
    from folkmoot.settings import SignInSettings

NEVER: Final = ("account", OPERATE)
"""The scopes that no app can have: with them it could make credentials that outlast it."""
ONLY_PEOPLE: Final = "Only a person can connect an app, in a browser where they are signed in."


class GrantUse(Struct, frozen=True):
    """What came of a code or refresh token."""

    account: Account
    grant_id: str
    pair: Pair | None
    """None where it was used before, so that the grant has ended."""


class Apps(Struct, eq=False):
    """Connects apps to accounts, and gives them their tokens."""

    store: Store
    clock: Clock
    quotas: Quotas
    options: SignInSettings

    async def code(
        self,
        account: Account,
        by: Credential,
        client: AppClient,
        *,
        redirect_uri: str,
        code_challenge: str,
        scope: str,
    ) -> str:
        """A code for an app that a person consents to, `by` the session of their browser.

        The app can do no more than that session. Which scopes there are is not checked here.
        """
        self.quotas.check_disk()
        now, code, wanted = int(self.clock.now()), new_secret("ac"), scope_of(scope)

        async def unit(tx: Tx) -> None:
            await check_consent(tx, account, by, wanted, now)
            await queries.remove_codes(tx, account.id, MAX_APP_CODES - 1)
            made = AppCode(
                **asdict(client),
                scope=wanted.text,
                expires_at=now + APP_CODE_SECONDS,
                redirect_uri=redirect_uri,
                code_challenge=code_challenge,
                account_id=account.id,
                parent_id=by.id,
            )
            await queries.insert_code(tx, hash_secret(code), made)

        await self.store.write(unit)
        return code

    async def exchange(
        self,
        code: str,
        *,
        client_id: str,
        redirect_uri: str,
        challenge_of: Callable[[str], bool],
        resource: str = "",
    ) -> Pair:
        """The first tokens of an app for its code, which makes the grant.

        `challenge_of` says whether what the app shows fits the code's challenge. Where the app
        names a `resource`, it must be the one that its person was shown.
        """
        hashed, now = hash_of(CODE, code), int(self.clock.now())
        # A wrong guess never makes the writer work.
        if hashed is None or not await self.store.read(lambda tx: queries.find_code(tx, hashed)):
            raise e.GrantInvalid
        return await self.spend(
            hashed,
            lambda found: (
                found.expires_at > now
                and found.client_id == client_id
                and redirect_uri in ("", found.redirect_uri)
                and (not resource or is_ours(resource, found.resource))
                and challenge_of(found.code_challenge)
            ),
        )

    async def spend(self, hashed: str, is_good: Callable[[AppCode], bool]) -> Pair:
        """The first tokens for a code that is good, which makes the grant."""
        self.quotas.check_disk()

        async def unit(tx: Tx) -> GrantUse | None:
            found = await queries.hold_code(tx, hashed)
            account = found and found.account_id and await account_by_id(tx, found.account_id)
            if not found or not account:
                return None
            if found.credential_id is not None:
                # It can ask once more before it has read the answer.
                if found.of_device:
                    return None
                await credentials.remove(tx, account.id, found.credential_id)
                return GrantUse(account, found.credential_id, None)
            if account.suspended_at is not None or not is_good(found):
                return None
            opened = await self._open(tx, account, found)
            await queries.spend_code(tx, hashed, opened.grant_id)
            return opened

        used = await self.store.write(unit)
        if used is None:
            raise e.GrantInvalid
        pair = check_used(used)
        audit_credential("app.connected", used.account, used.grant_id, used.account.handle)
        return pair

    async def _open(self, tx: Tx, account: Account, code: AppCode) -> GrantUse:
        """Within a unit: a new grant. One too many ends the one that was not used for longest."""
        now = int(self.clock.now())
        for each in (await queries.of_account(tx, account.id))[MAX_GRANTS - 1 :]:
            await credentials.remove(tx, account.id, each.id)
        label = "".join(filter(str.isprintable, code.client_name))[:MAX_LABEL]
        kind: CredentialKind = "device" if code.of_device else "app"
        grant = Credential(
            credentials.new_id(), kind, account.id, now, label=label, used_at=now, scope=code.scope
        )
        await credentials.insert(tx, grant, hash_grant(grant.id))
        pair = await self._issue(tx, account, grant.id, code.scope, now)
        return GrantUse(account, grant.id, pair)

    async def _issue(self, tx: Tx, account: Account, grant_id: str, scope: str, now: int) -> Pair:
        """Within a unit: one more pair of tokens of a grant."""
        access, refresh = new_secret("at"), new_secret("rt")
        until = now + self.options.access_seconds
        token = Credential(
            credentials.new_id(),
            "app",
            account.id,
            now,
            parent_id=grant_id,
            expires_at=until,
            scope=scope,
        )
        await credentials.insert(tx, token, hash_secret(access))
        await queries.insert_refresh(
            tx, hash_secret(refresh), grant_id, now + self.options.refresh_seconds
        )
        await queries.remove_oldest_tokens(tx, grant_id, MAX_TOKENS_OF_GRANT)
        return Pair(access, refresh, scope, self.options.access_seconds)

    async def refresh(self, token: str, *, client_id: str, scope: str = "") -> Pair:
        """The next tokens of an app for a refresh token.

        The access token has the `scope` that is asked for, at most that of the grant.
        """
        hashed, now = hash_of(REFRESH, token), int(self.clock.now())
        if hashed is None:
            raise e.GrantInvalid
        grant_id = await self.store.read(lambda tx: queries.grant_of(tx, hashed, client_id))
        if grant_id is None:
            raise e.GrantInvalid

        async def unit(tx: Tx) -> GrantUse:
            # The grant first: whoever refreshes or ends it at the same moment waits here.
            await credentials.store_last_use(tx, [grant_id], now)
            found = await credentials.by_id(tx, grant_id)
            spent_at = await queries.use_refresh(tx, hashed, now)
            if found is None or (account := usable(found)) is None or spent_at is None:
                raise e.GrantInvalid
            grant = found.credential
            if spent_at + self.options.refresh_window_seconds < now:
                await credentials.remove(tx, account.id, grant.id)
                return GrantUse(account, grant.id, None)
            wanted = narrowed(grant.scope, scope)
            pair = await self._issue(tx, account, grant.id, wanted, now)
            return GrantUse(account, grant.id, pair)

        return check_used(await self.store.write(unit, any_order=True))

    async def revoke(self, token: str, *, client_id: str) -> None:
        """End the grant of an access or refresh token of this app; any other text is no error."""
        hashed = hash_of(ACCESS, token) or hash_of(REFRESH, token)
        if hashed is None:
            return
        grant_id = await self.store.read(lambda tx: queries.grant_of(tx, hashed, client_id))
        if grant_id is None:
            return

        async def unit(tx: Tx) -> Account | None:
            found = await credentials.by_id(tx, grant_id)
            account = None if found is None else found.account
            if account is not None:
                await credentials.remove(tx, account.id, grant_id)
            return account

        account = await self.store.write(unit)
        if account is not None:
            audit_credential("app.revoked", account, grant_id, account.handle)

    async def list(self, account: Account) -> list[ConnectedApp]:
        """The apps that an account is connected to, the last used first."""
        return await self.store.read(lambda tx: queries.of_account(tx, account.id))


async def check_consent(tx: Tx, account: Account, by: Credential, wanted: Scope, now: int) -> None:
    """Within a unit: refuse whoever cannot give an app this scope, `by` the session they are in."""
    here = await credentials.by_id(tx, by.id)
    if here is None or (here.credential.expires_at or now + 1) <= now:
        raise e.TokenInvalid
    person, is_browser = here.account, here.credential.kind == "browser"
    if person is None or person.account_type != "person" or not is_browser:
        raise e.AccessDenied(ONLY_PEOPLE)
    if person.id != account.id:
        raise e.TokenInvalid
    if person.suspended_at is not None:
        raise e.AccountSuspended
    held = scope_of(here.credential.scope)
    if not wanted.words or not held.covers(wanted) or any(map(wanted.may_have, NEVER)):
        raise e.OAuthError(
            "invalid_scope",
            f"An app can have neither {' nor '.join(NEVER)}, and no scope that your "
            f"session has not: {held.text}.",
        )


def check_used(used: GrantUse) -> Pair:
    """The tokens that something was exchanged for; what was used before is refused, and noted."""
    if used.pair is None:
        audit_credential("app.replayed", used.account, used.grant_id, used.account.handle)
        raise e.GrantInvalid
    return used.pair
