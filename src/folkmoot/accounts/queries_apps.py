"""The SQL of apps: their codes, grants and refresh tokens. Everything here runs within a unit."""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import asdict

from folkmoot.accounts import queries_credentials
from folkmoot.accounts.limits import DEVICE_CODE_SECONDS, GRANT_UNUSED_SECONDS
from folkmoot.accounts.model import AppClient, ConnectedApp
from folkmoot.core.ports import Tx
from folkmoot.rows import insert, many, one

UNUSED: Final = (
    "SELECT g.credential_id, c.account_id FROM app_grants g JOIN credentials c "
    "ON c.id = g.credential_id WHERE c.used_at <= ? ORDER BY c.used_at LIMIT ?"
)
APP: Final = (
    "g.client_id, g.client_name, g.redirect_host, g.resource, c.id, c.kind, c.scope, "
    "c.created_at, c.used_at"
)


class AppCode(AppClient, frozen=True):
    """What an app asks for or was allowed, as it is stored; without the text of its code."""

    scope: str
    """Empty where its person refused."""
    expires_at: int
    redirect_uri: str = ""
    code_challenge: str = ""
    user_hash: str | None = None
    """Of what the person types who finds it from another device; None once it is spent."""
    polled_at: int = 0
    pause: int = 0
    """How long the program on a device waits between its questions."""
    account_id: str | None = None
    """Who decided; None before."""
    parent_id: str | None = None
    """The browser session in which they did; None once it is spent."""
    credential_id: str | None = None
    """The grant that it was exchanged for."""

    @property
    def of_device(self) -> bool:
        """Whether a program asks with it again and again, until its person has decided."""
        return self.pause > 0


CODE: Final = ", ".join(AppCode.__struct_fields__)


async def insert_code(tx: Tx, hashed: str, code: AppCode) -> None:
    """Store a code."""
    await insert(tx, "app_grants", {"hash": hashed, **asdict(code)})


async def find_code(
    tx: Tx, hashed: str, by: Literal["hash", "user_hash"] = "hash"
) -> AppCode | None:
    """A code, spent or not."""
    return await one(tx, AppCode, f"SELECT {CODE} FROM app_grants WHERE {by} = ?", (hashed,))  # noqa: S608


async def hold_code(tx: Tx, hashed: str) -> AppCode | None:
    """A code, which whoever else exchanges it waits for until the unit is over."""
    sql = f"UPDATE app_grants SET hash = hash WHERE hash = ? RETURNING {CODE}"  # noqa: S608
    return await one(tx, AppCode, sql, (hashed,))


async def spend_code(tx: Tx, hashed: str, credential_id: str) -> None:
    """Note what a code was exchanged for; from now on it ends with that."""
    await tx.execute(
        "UPDATE app_grants SET credential_id = ?, parent_id = NULL, user_hash = NULL "
        "WHERE hash = ?",
        (credential_id, hashed),
    )


async def remove_codes(tx: Tx, account_id: str, kept: int) -> None:
    """Remove codes of an account that nobody has exchanged, but for the newest so many."""
    await tx.execute(
        "DELETE FROM app_grants WHERE hash IN (SELECT hash FROM app_grants WHERE account_id = ? "
        "AND credential_id IS NULL ORDER BY expires_at DESC, hash LIMIT 1000 OFFSET ?)",
        (account_id, kept),
    )


async def of_account(tx: Tx, account_id: str) -> list[ConnectedApp]:
    """The apps that an account is connected to, the last used first."""
    return await many(
        tx,
        ConnectedApp,
        f"SELECT {APP} FROM credentials c JOIN app_grants g ON g.credential_id = c.id "  # noqa: S608
        "WHERE c.account_id = ? ORDER BY c.used_at DESC, c.id DESC",
        (account_id,),
    )


async def insert_refresh(tx: Tx, hashed: str, grant_id: str, expires_at: int) -> None:
    """Store a refresh token."""
    values = {"hash": hashed, "grant_id": grant_id, "expires_at": expires_at}
    await insert(tx, "app_refresh", values)


async def grant_of(tx: Tx, hashed: str, client_id: str) -> str | None:
    """The grant of an access or refresh token, if it is this app's."""
    return await one(
        tx,
        str,
        "SELECT credential_id FROM app_grants WHERE client_id = ? AND credential_id IN "
        "(SELECT grant_id FROM app_refresh WHERE hash = ? "
        "UNION ALL SELECT parent_id FROM credentials WHERE hash = ?)",
        (client_id, hashed, hashed),
    )


async def use_refresh(tx: Tx, hashed: str, now: int) -> int | None:
    """Spend a refresh token that has not expired; when it was first spent."""
    return await one(
        tx,
        int,
        "UPDATE app_refresh SET spent_at = COALESCE(spent_at, ?) WHERE hash = ? "
        "AND expires_at > ? RETURNING spent_at",
        (now, hashed, now),
    )


async def remove_oldest_tokens(tx: Tx, grant_id: str, kept: int) -> None:
    """Remove tokens of a grant until it has so many of each sort; those that are spent go first."""
    await tx.execute(
        "DELETE FROM app_refresh WHERE hash IN (SELECT hash FROM app_refresh WHERE grant_id = ? "
        "ORDER BY spent_at IS NULL DESC, expires_at DESC, hash LIMIT 1000 OFFSET ?)",
        (grant_id, kept),
    )
    await tx.execute(
        "DELETE FROM credentials WHERE id IN (SELECT id FROM credentials WHERE parent_id = ? "
        "AND kind = 'app' ORDER BY expires_at DESC, id LIMIT 1000 OFFSET ?)",
        (grant_id, kept),
    )


async def any_over(tx: Tx, now: int) -> bool:
    """Whether some code or refresh token expired, or some grant was not used for too long.

    Codes are kept a while longer, so that a program on a device hears that it came too late.
    """
    if await tx.fetch_one(UNUSED, (now - GRANT_UNUSED_SECONDS, 1)) is not None:
        return True
    row = await tx.fetch_one(
        "SELECT 1 FROM app_grants WHERE credential_id IS NULL AND expires_at <= ? "
        "UNION ALL SELECT 1 FROM app_refresh WHERE expires_at <= ? LIMIT 1",
        (now - DEVICE_CODE_SECONDS, now),
    )
    return row is not None


async def remove_over(tx: Tx, now: int, most: int) -> None:
    """Remove some of those."""
    for grant_id, account_id in await tx.fetch(UNUSED, (now - GRANT_UNUSED_SECONDS, most)):
        await queries_credentials.remove(tx, account_id, grant_id)
    await tx.execute(
        "DELETE FROM app_grants WHERE hash IN (SELECT hash FROM app_grants "
        "WHERE credential_id IS NULL AND expires_at <= ? LIMIT ?)",
        (now - DEVICE_CODE_SECONDS, most),
    )
    await tx.execute(
        "DELETE FROM app_refresh WHERE hash IN (SELECT hash FROM app_refresh "
        "WHERE expires_at <= ? LIMIT ?)",
        (now, most),
    )
