"""The SQL of passkeys, and of what can be used once. Everything here runs within a unit."""

from __future__ import annotations

from typing import Final

from msgspec.structs import asdict

from folkmoot import rows
from folkmoot.accounts.model import Passkey
from folkmoot.accounts.queries_credentials import publish_tokens
from folkmoot.core.ports import Tx


class StoredPasskey(Passkey, frozen=True):
    """A passkey as it is stored, with the key that its signatures are checked by."""

    account_id: str
    credential_id: str
    """What the authenticator calls it."""
    public_key: str
    sign_count: int


PASSKEY: Final = ", ".join(Passkey.__struct_fields__)
ROW: Final = ", ".join(StoredPasskey.__struct_fields__)


async def insert(tx: Tx, made: StoredPasskey) -> bool:
    """Store a passkey, unless the authenticator's is known already."""
    stored = await rows.insert(
        tx, "passkeys", asdict(made), "ON CONFLICT (credential_id) DO NOTHING"
    )
    if stored:
        publish_tokens(tx, made.account_id, made.id, "created")
    return stored


async def by_credential(tx: Tx, credential_id: str) -> StoredPasskey | None:
    """The passkey that an authenticator calls so."""
    sql = f"SELECT {ROW} FROM passkeys WHERE credential_id = ?"  # noqa: S608
    return await rows.one(tx, StoredPasskey, sql, (credential_id,))


async def of_account(tx: Tx, account_id: str) -> list[Passkey]:
    """The passkeys of an account, the oldest first."""
    sql = f"SELECT {PASSKEY} FROM passkeys WHERE account_id = ? ORDER BY created_at, id"  # noqa: S608
    return await rows.many(tx, Passkey, sql, (account_id,))


async def credential_ids(tx: Tx, account_id: str, rp_id: str) -> list[str]:
    """What authenticators call the passkeys of an account."""
    sql = "SELECT credential_id FROM passkeys WHERE account_id = ? AND rp_id = ? ORDER BY id"
    return await rows.many(tx, str, sql, (account_id, rp_id))


async def use(tx: Tx, passkey_id: str, sign_count: int, now: int) -> bool:
    """Note that a passkey was used; one whose count does not go on was copied.

    Those that are kept on several devices do not count.
    """
    used = await tx.execute(
        "UPDATE passkeys SET used_at = ?, sign_count = ? WHERE id = ? "
        "AND (sign_count < ? OR (sign_count = 0 AND ? = 0))",
        (now, sign_count, passkey_id, sign_count, sign_count),
    )
    return used == 1


async def rename(tx: Tx, account_id: str, passkey_id: str, name: str) -> Passkey | None:
    """Give a passkey of an account another name."""
    sql = f"UPDATE passkeys SET name = ? WHERE id = ? AND account_id = ? RETURNING {PASSKEY}"  # noqa: S608
    return await rows.one(tx, Passkey, sql, (name, passkey_id, account_id))


async def remove(tx: Tx, account_id: str, passkey_id: str) -> None:
    """Remove a passkey of an account."""
    await tx.execute(
        "DELETE FROM passkeys WHERE id = ? AND account_id = ?", (passkey_id, account_id)
    )
    publish_tokens(tx, account_id, passkey_id, "ended")


async def remove_all(tx: Tx, account_id: str) -> None:
    """Remove every passkey of an account; whoever does so publishes that of the account."""
    await tx.execute("DELETE FROM passkeys WHERE account_id = ?", (account_id,))


async def spend(tx: Tx, hashed: str, until: int, now: int) -> bool:
    """Use up what can be used once until a time; False where it was used before."""
    await tx.execute("DELETE FROM spent WHERE until <= ?", (now,))
    values = {"hash": hashed, "until": until}
    return await rows.insert(tx, "spent", values, "ON CONFLICT (hash) DO NOTHING")
