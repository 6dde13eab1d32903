"""The SQL of credentials. Everything here runs within a unit.

A credential is looked up by the hash of its secret, so how long that takes tells nothing of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from hmac import compare_digest
from typing import Final, NamedTuple

from msgspec.structs import asdict

from folkmoot import rows
from folkmoot.accounts.model import (
    Account,
    Credential,
    Identity,
    SessionTimes,
    principal_of,
)
from folkmoot.accounts.queries import ACCOUNT
from folkmoot.core.events import CREDENTIALS, TOKENS, subject
from folkmoot.core.policy import NOBODY
from folkmoot.core.ports import Row, SqlValue, Tx
from folkmoot.rows import many, one

CREDENTIAL: Final = ", ".join(f"c.{name}" for name in Credential.__struct_fields__)
FIELDS: Final = len(Credential.__struct_fields__)
SESSION: Final = "session"
ACCESS: Final = "kind = 'app' AND parent_id IS NOT NULL"
"""The access tokens of apps: nobody lists them, and their end tells nobody anything."""


IDENTITY: Final = (
    f"SELECT c.hash, {CREDENTIAL}, {ACCOUNT} FROM credentials c "  # noqa: S608
    "LEFT JOIN users u ON u.id = c.account_id WHERE "
)
"""To be read by `identity`."""
BY_HASH: Final = f"{IDENTITY}c.hash = ?"
BY_ID: Final = f"{IDENTITY}c.id = ?"


def new_id() -> str:
    """The id of a new credential: it may be shown and logged."""
    return f"c_{secrets.token_hex(12)}"


def identity(row: Row) -> Identity:
    """Who is behind a credential; a guest has no account."""
    credential = Credential(*row[1 : 1 + FIELDS])
    if credential.account_id is None:
        return Identity(credential, None, NOBODY)
    account = Account(*row[1 + FIELDS :])
    return Identity(credential, account, principal_of(account, credential.scope))


def identity_of(row: Row | None, hashed: str) -> Identity | None:
    """Who is behind the secret with this hash, by what was looked up."""
    return None if row is None or not compare_digest(row[0], hashed) else identity(row)


async def names_of(tx: Tx, ids: Sequence[str]) -> dict[str, str]:
    """What people call these credentials and passkeys; those that are gone are left out."""
    marks = ", ".join("?" * len(ids))
    rows = await tx.fetch(
        f"SELECT id, label, kind FROM credentials WHERE id IN ({marks}) "  # noqa: S608
        f"UNION ALL SELECT id, name, 'passkey' FROM passkeys WHERE id IN ({marks})",
        (*ids, *ids),
    )
    return {id_: label or f"a {kind}" for id_, label, kind in rows}


async def by_id(tx: Tx, credential_id: str) -> Identity | None:
    """Who is behind a credential."""
    row = await tx.fetch_one(BY_ID, (credential_id,))
    return None if row is None else identity(row)


async def insert(tx: Tx, credential: Credential, hashed: str) -> None:
    await rows.insert(tx, "credentials", {**asdict(credential), "hash": hashed})
    shown = credential.kind != SESSION and not credential.is_access
    if credential.account_id is not None and shown:
        publish_tokens(tx, credential.account_id, credential.id, "created")


async def of_account(tx: Tx, account_id: str) -> list[Credential]:
    """The credentials of an account that a person made, the oldest first."""
    return await many(
        tx,
        Credential,
        f"SELECT {CREDENTIAL} FROM credentials c WHERE c.account_id = ? "  # noqa: S608
        f"AND c.kind <> 'session' AND NOT ({ACCESS}) ORDER BY c.created_at, c.id",
        (account_id,),
    )


async def count_of(tx: Tx, account_id: str) -> int:
    """The number of an account's tokens; browsers, sessions and apps have limits of their own."""
    sql = (
        "SELECT COUNT(*) FROM credentials WHERE account_id = ? "
        "AND kind NOT IN ('session', 'browser', 'app', 'device')"
    )
    return await one(tx, int, sql, (account_id,)) or 0


async def lineage(tx: Tx, credential_id: str) -> list[Credential]:
    """A credential and all that it came from, itself first."""
    found: list[Credential] = []
    wanted: str | None = credential_id
    while wanted and (each := await by_id(tx, wanted)) is not None:
        found.append(each.credential)
        wanted = found[-1].parent_id
    return found


async def _remove(tx: Tx, which: str, *values: SqlValue) -> int:
    """Remove credentials and all that came from them, and have everyone told of each.

    The database removes what came from them by itself, but tells nobody. Nobody is told of access
    tokens: what is open with one belongs to its grant.
    """
    ended = await many(
        tx,
        Credential,
        f"WITH RECURSIVE ended (id) AS (SELECT id FROM credentials WHERE {which} "  # noqa: S608
        "UNION SELECT c.id FROM credentials c JOIN ended e ON c.parent_id = e.id) "
        f"SELECT {CREDENTIAL} FROM credentials c JOIN ended e ON c.id = e.id",
        values,
    )
    if ended:
        await tx.execute(f"DELETE FROM credentials WHERE {which}", values)  # noqa: S608
    for each in ended:
        if each.is_access:
            continue
        tx.publish(subject(CREDENTIALS, each.id), {"account": each.account_id})
        if each.account_id is not None and each.kind != SESSION:
            publish_tokens(tx, each.account_id, each.id, "ended")
    return len(ended)


async def remove(tx: Tx, account_id: str, credential_id: str) -> bool:
    """Remove one credential of an account, and all that came from it."""
    which = f"id = ? AND account_id = ? AND NOT ({ACCESS})"
    return await _remove(tx, which, credential_id, account_id) > 0


async def remove_oldest_browsers(tx: Tx, account_id: str, kept: int) -> None:
    """Remove browser sessions until an account has so many: those unused for longest first."""
    rows = await tx.fetch(
        "SELECT id FROM credentials WHERE account_id = ? AND kind = 'browser' "
        "ORDER BY used_at DESC, id DESC LIMIT 1000 OFFSET ?",
        (account_id, kept),
    )
    for (credential_id,) in rows:
        await remove(tx, account_id, credential_id)


async def remove_operating(tx: Tx, account_id: str) -> int:
    """Remove what opens an account as one that runs the hub, and how many credentials that were."""
    operates = "account_id = ? AND ' ' || scope || ' ' LIKE '% operate %'"
    await tx.execute(f"DELETE FROM browser_codes WHERE {operates}", (account_id,))  # noqa: S608
    return await _remove(tx, operates, account_id)


async def remove_all(tx: Tx, account_id: str) -> None:
    """Remove every credential of an account; whoever does so publishes that of the account."""
    await tx.execute("DELETE FROM credentials WHERE account_id = ?", (account_id,))


async def remove_hash(tx: Tx, hashed: str) -> None:
    """Remove the credential with this hash, if there is one."""
    await _remove(tx, "hash = ?", hashed)


async def any_expired(tx: Tx, now: int) -> bool:
    """Whether the time of some is over."""
    row = await tx.fetch_one(
        "SELECT 1 FROM credentials WHERE expires_at IS NOT NULL AND expires_at <= ? LIMIT 1", (now,)
    )
    return row is not None


async def remove_expired(tx: Tx, now: int, most: int) -> None:
    """Remove some of those whose time is over."""
    await _remove(
        tx,
        "id IN (SELECT id FROM credentials WHERE expires_at IS NOT NULL AND expires_at <= ? "
        "ORDER BY expires_at, id LIMIT ?)",
        now,
        most,
    )


async def store_last_use(tx: Tx, credential_ids: Iterable[str], now: int) -> None:
    """Note when these were used last."""
    for credential_id in credential_ids:
        await tx.execute("UPDATE credentials SET used_at = ? WHERE id = ?", (now, credential_id))


async def renew_browser(tx: Tx, credential_id: str, now: int, times: SessionTimes) -> None:
    """Let a browser session that was used go on."""
    row = await tx.fetch_one(
        "SELECT c.created_at, p.expires_at FROM credentials c "
        "LEFT JOIN credentials p ON p.id = c.parent_id WHERE c.id = ? AND c.kind = 'browser'",
        (credential_id,),
    )
    if row is not None:
        await tx.execute(
            "UPDATE credentials SET used_at = ?, expires_at = ? WHERE id = ?",
            (now, times.until(row[0], now, row[1]), credential_id),
        )


class Code(NamedTuple):
    """A one-time code as it is stored."""

    account_id: str
    parent_id: str | None
    expires_at: int
    scope: str | None
    """Of the session, where an operator said it."""


async def insert_code(tx: Tx, hashed: str, code: Code) -> None:
    """Store a one-time code."""
    await rows.insert(tx, "browser_codes", {"hash": hashed, **code._asdict()})


async def consume_code(tx: Tx, hashed: str) -> Code | None:
    """Remove a one-time code and return its row; of two concurrent callers only one gets it."""
    sql = f"DELETE FROM browser_codes WHERE hash = ? RETURNING {', '.join(Code._fields)}"  # noqa: S608
    return await one(tx, Code, sql, (hashed,))


async def remove_codes(tx: Tx, account_id: str, now: int, kept: int) -> None:
    """Remove all codes whose time is over, and of one account those beyond so many."""
    await tx.execute("DELETE FROM browser_codes WHERE expires_at <= ?", (now,))
    await tx.execute(
        "DELETE FROM browser_codes WHERE hash IN (SELECT hash FROM browser_codes "
        "WHERE account_id = ? ORDER BY expires_at DESC, hash LIMIT 1000 OFFSET ?)",
        (account_id, kept),
    )


def publish_tokens(tx: Tx, account_id: str, credential_id: str, change: str) -> None:
    """Have an account's owner told that a credential of theirs was created, or ended."""
    tx.publish(subject(TOKENS, account_id), {"id": credential_id, "change": change})
