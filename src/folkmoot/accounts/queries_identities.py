"""The SQL of what people are at their company's provider. Everything here runs within a unit."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from folkmoot import rows
from folkmoot.accounts.model import CompanyAccount
from folkmoot.core.events import GROUPS, subject
from folkmoot.core.ports import Tx


class Key(NamedTuple):
    """Somebody, as a provider knows them for good."""

    issuer: str
    subject: str


async def use(tx: Tx, key: Key, groups: Collection[str], now: int) -> str | None:
    """Note a sign-in and the groups it tells; the id of the account, None for nobody's."""
    row = await tx.fetch_one(
        "SELECT account_id, member_of FROM identities WHERE issuer = ? AND subject = ?", key
    )
    if row is None:
        return None
    account_id, told = str(row[0]), encoded(groups)
    await tx.execute(
        "UPDATE identities SET member_of = ?, used_at = ? WHERE issuer = ? AND subject = ?",
        (told, now, *key),
    )
    if told != row[1]:
        await publish(tx, key, account_id)
    return account_id


async def insert(tx: Tx, key: Key, account_id: str, groups: Collection[str], now: int) -> None:
    """Let an account be somebody's for good."""
    values = {
        **key._asdict(),
        "account_id": account_id,
        "member_of": encoded(groups),
        "created_at": now,
        "used_at": now,
    }
    await rows.insert(tx, "identities", values)
    await publish(tx, key, account_id)


async def of_account(tx: Tx, account_id: str) -> list[CompanyAccount]:
    """What an account's person is at providers, the oldest first."""
    known = await tx.fetch(
        "SELECT issuer, subject, member_of, created_at, used_at FROM identities "
        "WHERE account_id = ? ORDER BY created_at, issuer, subject",
        (account_id,),
    )
    return [
        CompanyAccount(issuer, subject, decoded(groups), created_at, used_at)
        for issuer, subject, groups, created_at, used_at in known
    ]


async def groups_at(tx: Tx, issuer: str, account_id: str = "") -> dict[str, dict[str, int]]:
    """The groups that a provider told of an account, or of everybody, with when: by account."""
    found: dict[str, dict[str, int]] = {}
    told = await tx.fetch(
        "SELECT account_id, member_of, used_at FROM identities "
        "WHERE issuer = ? AND (account_id = ? OR ? = '')",
        (issuer, account_id, account_id),
    )
    for each, groups, used_at in told:
        for group in decoded(groups):
            found.setdefault(each, {})[group] = used_at
    return found


async def publish(tx: Tx, key: Key, account_id: str) -> None:
    found = await groups_at(tx, key.issuer, account_id)
    tx.publish(subject(GROUPS, account_id), found.get(account_id, {}))


def encoded(groups: Collection[str]) -> str:
    return msgspec.json.encode(sorted(groups)).decode()


def decoded(groups: str) -> list[str]:
    return msgspec.json.decode(groups, type=list[str])
