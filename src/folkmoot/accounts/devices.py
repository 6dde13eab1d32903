"""Programs on devices without a browser of their own: a person lets them in from another one.

The program shows a short code and asks every few seconds whether it was allowed. Its person types
that code at the hub, sees what is asked for, and decides. Then the program gets its tokens, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict

from folkmoot.accounts import queries_apps as queries
from folkmoot.accounts.apps import check_consent
from folkmoot.accounts.credentials import (
    hash_of,
    hash_secret,
    hash_user_code,
    new_secret,
    new_user_code,
)
from folkmoot.accounts.limits import (
    DEVICE_CODE_SECONDS,
    DEVICE_PAUSE_SECONDS,
    MAX_DEVICE_CODES,
    MAX_DEVICE_PAUSE_SECONDS,
)
from folkmoot.accounts.model import Secret
from folkmoot.accounts.queries_apps import AppCode
from folkmoot.core import errors as e
from folkmoot.core.oauth.tokens import DEVICE
from folkmoot.core.scopes import scope as scope_of

if TYPE_CHECKING:
    from folkmoot.accounts.apps import Apps
    from folkmoot.accounts.model import Account, AppClient, Credential, Pair
    from folkmoot.core.ports import Tx

WAITING: Final = "Nobody has allowed it yet. Ask again in a few seconds."
TOO_EARLY: Final = "The app asks too often. Wait five seconds longer each time."
TOO_LATE: Final = "Nobody allowed it in time. Start again."
REFUSED: Final = "The person did not allow it."
TOO_MANY: Final = "Too many devices wait for their people. Try again in a few minutes."


class DeviceCodes(Secret, frozen=True):
    """What a program on a device is given."""

    device_code: str
    user_code: str
    expires_in: int = DEVICE_CODE_SECONDS
    interval: int = DEVICE_PAUSE_SECONDS


class Devices(Struct, eq=False):
    """Connects programs on devices to accounts."""

    apps: Apps

    async def begin(self, client: AppClient, scope: str) -> DeviceCodes:
        """The codes for a program, which asks for this scope."""
        apps = self.apps
        apps.quotas.check_disk()
        made, now = DeviceCodes(new_secret("dc"), new_user_code()), int(apps.clock.now())
        code = AppCode(
            **asdict(client),
            scope=scope,
            expires_at=now + made.expires_in,
            user_hash=hash_user_code(made.user_code),
            pause=made.interval,
        )

        async def unit(tx: Tx) -> None:
            row = await tx.fetch_one(
                "SELECT 1 FROM app_grants WHERE user_hash IS NOT NULL LIMIT 1 OFFSET ?",
                (MAX_DEVICE_CODES - 1,),
            )
            if row is not None:
                raise e.OAuthError("temporarily_unavailable", TOO_MANY, 503)
            await queries.insert_code(tx, hash_secret(made.device_code), code)

        await apps.store.write(unit)
        return made

    async def find(self, user_code: str) -> AppCode:
        """What waits with a code that its person has typed."""
        hashed, now = hash_user_code(user_code), int(self.apps.clock.now())
        if hashed is None:
            raise e.DeviceCodeInvalid
        found = await self.apps.store.read(lambda tx: queries.find_code(tx, hashed, "user_hash"))
        if found is None or found.account_id is not None or found.expires_at <= now:
            raise e.DeviceCodeInvalid
        return found

    async def answer(
        self, account: Account, by: Credential, user_code: str, scope: str | None
    ) -> None:
        """Allow a program this scope, `by` the session of its person's browser; None refuses."""
        hashed, now = hash_user_code(user_code), int(self.apps.clock.now())
        given = scope_of(scope or "")

        async def unit(tx: Tx) -> None:
            if scope is not None:
                await check_consent(tx, account, by, given, now)
            done = await tx.execute(
                "UPDATE app_grants SET scope = ?, account_id = ?, parent_id = ? "
                "WHERE user_hash = ? AND account_id IS NULL AND expires_at > ?",
                (given.text, account.id, by.id, hashed, now),
            )
            if not done:
                raise e.DeviceCodeInvalid

        await self.apps.store.write(unit)

    async def exchange(self, code: str, *, client_id: str) -> Pair:
        """The first tokens of a program, once its person has allowed it."""
        hashed, now = hash_of(DEVICE, code), int(self.apps.clock.now())
        if hashed is None:
            raise e.GrantInvalid
        found = await self.apps.store.read(lambda tx: queries.find_code(tx, hashed))
        if found is None or found.client_id != client_id or found.credential_id is not None:
            raise e.GrantInvalid
        if found.expires_at <= now:
            raise e.OAuthError("expired_token", TOO_LATE)
        if not found.scope:
            raise e.OAuthError("access_denied", REFUSED)
        if found.account_id is None:
            await self._note(hashed, now, found.polled_at, found.pause)
        return await self.apps.spend(hashed, lambda found: bool(found.scope))

    async def _note(self, hashed: str, now: int, polled_at: int, pause: int) -> None:
        """Tell a program that nobody has decided yet, and to wait longer if it asks too often."""
        early = polled_at + pause > now
        longer = min(pause + DEVICE_PAUSE_SECONDS * early, MAX_DEVICE_PAUSE_SECONDS)
        if longer != pause or not early:

            async def unit(tx: Tx) -> None:
                await tx.execute(
                    "UPDATE app_grants SET polled_at = ?, pause = ? WHERE hash = ?",
                    (now, longer, hashed),
                )

            await self.apps.store.write(unit, any_order=True)
        if early:
            raise e.OAuthError("slow_down", TOO_EARLY)
        raise e.OAuthError("authorization_pending", WAITING)
