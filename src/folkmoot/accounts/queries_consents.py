"""The SQL of consents at servers behind the hub. Everything here runs within a unit."""

from __future__ import annotations

from typing import Final

from folkmoot.accounts.model import Consent, Secret
from folkmoot.core.events import CONSENTS, subject
from folkmoot.core.ports import Tx
from folkmoot.rows import many, one

VIEW: Final = (
    "namespace, issuer, scope, created_at, expires_at, "
    "CASE WHEN tokens = '' THEN 'lapsed' ELSE 'live' END"
)
KEY: Final = "WHERE namespace = ? AND holder = ?"


class ConsentRow(Secret, frozen=True):
    """A consent as it is stored."""

    account_id: str
    """Who consented."""
    scope: str
    tokens: str
    pending: str
    version: int
    """Counts how often the tokens changed."""
    leased_until: int


ROW: Final = ", ".join(ConsentRow.__struct_fields__)


async def find(tx: Tx, namespace: str, holder: str) -> ConsentRow | None:
    """What is stored of a consent."""
    return await one(tx, ConsentRow, f"SELECT {ROW} FROM consents {KEY}", (namespace, holder))  # noqa: S608


async def of_account(tx: Tx, account_id: str) -> list[Consent]:
    """The consents of an account, those that lapsed too."""
    return await many(
        tx,
        Consent,
        f"SELECT {VIEW} FROM consents WHERE account_id = ? AND version > 0 "  # noqa: S608
        "ORDER BY namespace, holder",
        (account_id,),
    )


async def standing(tx: Tx, namespace: str, holder: str) -> Consent | None:
    """A consent, one that lapsed too."""
    sql = f"SELECT {VIEW} FROM consents {KEY} AND version > 0"  # noqa: S608
    return await one(tx, Consent, sql, (namespace, holder))


async def begin(
    tx: Tx, namespace: str, holder: str, account_id: str, pending: str, now: int
) -> None:
    """Note a sign-in that was begun; one that was begun before is forgotten."""
    await tx.execute(
        "INSERT INTO consents (namespace, holder, account_id, issuer, scope, tokens, pending, "
        "version, created_at, expires_at, leased_until) "
        "VALUES (?, ?, ?, '', '', '', ?, 0, ?, NULL, 0) "
        "ON CONFLICT (namespace, holder) DO UPDATE SET pending = excluded.pending, "
        "created_at = CASE WHEN consents.version = 0 THEN excluded.created_at "
        "ELSE consents.created_at END",
        (namespace, holder, account_id, pending, now),
    )


async def take_pending(tx: Tx, namespace: str, holder: str, pending: str) -> bool:
    """Forget a sign-in that comes to its end; whether this was the first to try."""
    changed = await tx.execute(
        f"UPDATE consents SET pending = '' {KEY} AND pending = ?",  # noqa: S608
        (namespace, holder, pending),
    )
    return changed == 1


async def put(
    tx: Tx,
    namespace: str,
    holder: str,
    *,
    account_id: str,
    issuer: str,
    scope: str,
    tokens: str,
    now: int,
    expires_at: int | None,
) -> bool:
    """Store the tokens of a new consent; not where its row has gone, with its account."""
    changed = await tx.execute(
        "UPDATE consents SET account_id = ?, issuer = ?, scope = ?, tokens = ?, created_at = ?, "  # noqa: S608
        f"expires_at = ?, version = version + 1, leased_until = 0 {KEY}",
        (account_id, issuer, scope, tokens, now, expires_at, namespace, holder),
    )
    if changed:
        _publish(tx, account_id, namespace, "consented")
    return changed == 1


async def lease(tx: Tx, namespace: str, holder: str, version: int, now: int, until: int) -> bool:
    """Let the caller alone renew tokens of this version for a while; whether it can."""
    changed = await tx.execute(
        f"UPDATE consents SET leased_until = ? {KEY} AND version = ? AND leased_until <= ?",  # noqa: S608
        (until, namespace, holder, version, now),
    )
    return changed == 1


async def renew(
    tx: Tx, namespace: str, holder: str, version: int, tokens: str, expires_at: int | None
) -> bool:
    """Store renewed tokens in place of those of this version."""
    changed = await tx.execute(
        "UPDATE consents SET tokens = ?, expires_at = ?, version = version + 1, "  # noqa: S608
        f"leased_until = 0 {KEY} AND version = ?",
        (tokens, expires_at, namespace, holder, version),
    )
    return changed == 1


async def release(tx: Tx, namespace: str, holder: str, version: int) -> None:
    """Let others try to renew."""
    await tx.execute(
        f"UPDATE consents SET leased_until = 0 {KEY} AND version = ?",  # noqa: S608
        (namespace, holder, version),
    )


async def lapse(tx: Tx, namespace: str, holder: str, version: int) -> None:
    """Forget tokens of this version, which the server takes no more, and tell their person."""
    rows = await tx.fetch(
        "UPDATE consents SET tokens = '', expires_at = NULL, version = version + 1, "  # noqa: S608
        f"leased_until = 0 {KEY} AND version = ? RETURNING account_id",
        (namespace, holder, version),
    )
    for (account_id,) in rows:
        _publish(tx, str(account_id), namespace, "lapsed")


async def remove(tx: Tx, namespace: str, holder: str) -> bool:
    """Forget a consent at a server; whether there was one."""
    rows = await tx.fetch(
        f"DELETE FROM consents {KEY} RETURNING account_id, version",  # noqa: S608
        (namespace, holder),
    )
    for account_id, _ in rows:
        _publish(tx, str(account_id), namespace, "removed")
    return any(version for _, version in rows)


async def any_left(tx: Tx, before: int) -> bool:
    """Whether someone began to sign in before then, and did not end."""
    row = await tx.fetch_one(
        "SELECT 1 FROM consents WHERE version = 0 AND created_at <= ? LIMIT 1", (before,)
    )
    return row is not None


async def remove_left(tx: Tx, before: int) -> None:
    """Forget who began to sign in before then, and did not end."""
    await tx.execute("DELETE FROM consents WHERE version = 0 AND created_at <= ?", (before,))


async def client_at(tx: Tx, issuer: str) -> str | None:
    """What the hub is to an authorization server, sealed."""
    return await one(tx, str, "SELECT client FROM registrations WHERE issuer = ?", (issuer,))


async def put_client(tx: Tx, issuer: str, client: str) -> None:
    """Remember what the hub is to an authorization server."""
    await tx.execute(
        "INSERT INTO registrations (issuer, client) VALUES (?, ?) "
        "ON CONFLICT (issuer) DO UPDATE SET client = excluded.client",
        (issuer, client),
    )


async def forget_client(tx: Tx, issuer: str) -> None:
    """Register anew at the next sign-in."""
    await tx.execute("DELETE FROM registrations WHERE issuer = ?", (issuer,))


def _publish(tx: Tx, account_id: str, namespace: str, change: str) -> None:
    tx.publish(subject(CONSENTS, account_id), {"namespace": namespace, "change": change})
