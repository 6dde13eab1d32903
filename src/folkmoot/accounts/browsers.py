"""Browser sessions: opened with a token, a recovery code or a one-time code, kept by a cookie.

A session is a credential of kind `browser`. It ends with the token it was opened with, when it was
not used for a while, and at the latest some time after it was opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from folkmoot.accounts import queries_credentials as queries
from folkmoot.accounts.authentication import audit_credential
from folkmoot.accounts.credentials import (
    ONE_TIME,
    hash_of,
    hash_secret,
    new_secret,
)
from folkmoot.accounts.limits import MAX_BROWSER_SESSIONS, MAX_ONE_TIME_CODES, ONE_TIME_CODE_SECONDS
from folkmoot.accounts.model import (
    Account,
    Credential,
    NewToken,
    OneTimeCode,
)
from folkmoot.accounts.queries import by_id as account_by_id
from folkmoot.accounts.queries_passkeys import of_account as passkeys_of
from folkmoot.audit import OPERATOR
from folkmoot.core import errors as e
from folkmoot.core.scopes import ALL, OPERATING

if TYPE_CHECKING:
    from folkmoot.accounts.model import SessionTimes
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.quotas import Quotas


class BrowserSessions(Struct, eq=False):
    """Opens browser sessions and makes the codes that open them."""

    store: Store
    clock: Clock
    quotas: Quotas
    times: SessionTimes

    async def open(
        self,
        account_id: str,
        parent_id: str = "",
        label: str = "",
        *,
        replaces: str = "",
        scope: str = "",
    ) -> NewToken | None:
        """A new session, in place of the one that the browser had; None where it may not be now.

        `parent_id` is the token that it is opened with; it can do no more, and ends with that.
        Without one it has the `scope` that an operator gave it. An operator's account runs the hub
        in it too, unless it is opened with a token and there is a passkey: programs have tokens.
        """
        self.quotas.check_disk()
        now, secret = int(self.clock.now()), new_secret("bs")

        async def unit(tx: Tx) -> tuple[Account, Credential] | None:
            account = await account_by_id(tx, account_id)
            parent = await queries.by_id(tx, parent_id) if parent_id else None
            if account is None or account.suspended_at is not None or (parent_id and not parent):
                return None
            opened_with = None if parent is None else parent.credential
            if opened_with is not None and opened_with.account_id != account_id:
                return None
            if replaces:
                await queries.remove(tx, account_id, replaces)
            await queries.remove_oldest_browsers(tx, account_id, MAX_BROWSER_SESSIONS - 1)
            if parent_id and await queries.by_id(tx, parent_id) is None:
                # It was among the oldest, or came from one of them.
                return None
            granted = (scope or ALL) if opened_with is None else opened_with.scope
            if account.operator_since is not None and granted == ALL:
                own = opened_with is None or opened_with.kind == "token"
                if own and not (opened_with and await passkeys_of(tx, account_id)):
                    granted = OPERATING
            latest = None if opened_with is None else opened_with.expires_at
            made = Credential(
                queries.new_id(),
                "browser",
                account_id,
                now,
                parent_id=parent_id or None,
                label=label,
                used_at=now,
                expires_at=self.times.until(now, now, latest),
                scope=granted,
            )
            await queries.insert(tx, made, hash_secret(secret))
            return account, made

        opened = await self.store.write(unit)
        if opened is None:
            return None
        account, made = opened
        audit_credential("browser.signed_in", account, made.id, account.handle)
        return NewToken(made, secret)

    async def came_from(self, credential_id: str, other_id: str) -> bool:
        """Whether a credential is another one, or came from it."""
        found = await self.store.read(lambda tx: queries.lineage(tx, credential_id))
        return any(each.id == other_id for each in found)

    async def close(self, account: Account, credential_id: str) -> None:
        """End a session that its browser signs out of; one that is gone is no error."""
        if await self.store.write(lambda tx: queries.remove(tx, account.id, credential_id)):
            audit_credential("browser.signed_out", account, credential_id, account.handle)

    async def create_code(self, account: Account, by: str = "", scope: str = "") -> OneTimeCode:
        """A code that opens one session soon; `by` is the credential that it is made with.

        Without one, an operator makes it, and may say the `scope` of the session.
        """
        self.quotas.check_disk()
        now, code = int(self.clock.now()), new_secret("oc")

        async def unit(tx: Tx) -> None:
            current = await account_by_id(tx, account.id)
            if current is None or (by and await queries.by_id(tx, by) is None):
                raise e.TokenInvalid
            if current.suspended_at is not None:
                raise e.AccountSuspended
            await queries.remove_codes(tx, account.id, now, MAX_ONE_TIME_CODES - 1)
            made = queries.Code(account.id, by or None, now + ONE_TIME_CODE_SECONDS, scope or None)
            await queries.insert_code(tx, hash_secret(code), made)

        await self.store.write(unit)
        audit_credential("browser.code_created", account, by, account.handle if by else OPERATOR)
        return OneTimeCode(code, now + ONE_TIME_CODE_SECONDS)

    async def use_code(self, code: str) -> tuple[Account, str, str]:
        """Take a code: whose it is, the credential it was made with, and the session's scope.

        Whoever gives it a second time, or too late, is refused.
        """
        hashed, now = hash_of(ONE_TIME, code.strip()), int(self.clock.now())
        known = "SELECT 1 FROM browser_codes WHERE hash = ?"
        if hashed is None or not await self.store.read(lambda tx: tx.fetch_one(known, (hashed,))):
            # A wrong guess never makes the writer work.
            raise e.OneTimeCodeInvalid

        async def unit(tx: Tx) -> tuple[Account, str, str] | None:
            found = await queries.consume_code(tx, hashed)
            account = None if found is None else await account_by_id(tx, found.account_id)
            if found is None or account is None or found.expires_at <= now:
                return None
            return account, found.parent_id or "", found.scope or ""

        taken = await self.store.write(unit)
        if taken is None:
            raise e.OneTimeCodeInvalid
        if taken[0].suspended_at is not None:
            raise e.AccountSuspended
        return taken
