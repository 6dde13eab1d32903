"""The SQL of users, their names, and the index that finds them. All of it runs within a unit."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import asdict

from folkmoot.accounts.limits import MAX_GRAM, MAX_QUERY_GRAMS
from folkmoot.accounts.model import Account, PersonRow
from folkmoot.audit import like
from folkmoot.core.ports import SqlValue, Tx
from folkmoot.rows import insert, many, one


def fold(text: str) -> str:
    """The text without its case. It folds character by character, so what contained still does."""
    return text.casefold()


def grams_of(*names: str) -> set[str]:
    return {
        folded[start : start + length]
        for folded in map(fold, names)
        for length in range(1, MAX_GRAM + 1)
        for start in range(len(folded) - length + 1)
    }


def grams_in_query(folded: str) -> list[str]:
    """The grams a name must hold to contain the query: a few, spread over the whole of it."""
    if len(folded) <= MAX_GRAM:
        return [folded]
    grams = sorted({folded[at : at + MAX_GRAM] for at in range(len(folded) - MAX_GRAM + 1)})
    return grams[:: -(-len(grams) // MAX_QUERY_GRAMS)]


ACCOUNT = ", ".join(f"u.{name}" for name in Account.__struct_fields__)

LED_TO = (
    "FROM handles h JOIN users u ON u.id = h.user_id "
    "WHERE h.handle = ? AND (h.kind = 'live' OR (h.kind = 'redirect' AND h.until > ?))"
)
"""The user a handle leads to: its live owner, or whoever had it within 30 days."""

CHANGEABLE = frozenset({
    "handle", "display_name", "bio", "privacy", "status", "client_public_key", "payload_formats",
    "suspended_at", "operator_since",
})  # fmt: skip


class Secrets(NamedTuple):
    """What is stored of an account's secrets: hashes, and a sealed private key."""

    recovery_hash: str
    private_key: str


async def by_id(tx: Tx, user_id: str) -> Account | None:
    return await one(tx, Account, f"SELECT {ACCOUNT} FROM users u WHERE u.id = ?", (user_id,))  # noqa: S608


async def by_handle(tx: Tx, handle: str, now: int) -> Account | None:
    """The account this handle leads to: its live owner, or whoever had it within 30 days."""
    return await one(tx, Account, f"SELECT {ACCOUNT} {LED_TO}", (handle, now))


async def secrets_of(tx: Tx, user_id: str) -> Secrets | None:
    """The hashes and the sealed private key of an account."""
    sql = "SELECT recovery_hash, private_key FROM users WHERE id = ?"
    return await one(tx, Secrets, sql, (user_id,))


async def insert_user(tx: Tx, account: Account, secrets: Secrets) -> None:
    await insert(tx, "users", {**asdict(account), **secrets._asdict()})
    await count_users(tx, 1)
    await index_names(tx, account)


async def update_user(tx: Tx, user_id: str, changes: dict[str, SqlValue], now: int) -> Account:
    """Change some columns of an existing account and return the new row."""
    assert changes.keys() <= CHANGEABLE  # noqa: S101 - the names become SQL
    columns = ", ".join(f"{name} = ?" for name in (*changes, "updated_at"))
    await tx.execute(
        f"UPDATE users SET {columns} WHERE id = ?",  # noqa: S608
        (*changes.values(), now, user_id),
    )
    account = await by_id(tx, user_id)
    if account is None:
        raise LookupError(user_id)
    return account


async def delete_user(tx: Tx, user_id: str, until: int) -> None:
    """Remove an account with all that refers to it; its names stay reserved for a while."""
    await tx.execute(
        "UPDATE handles SET kind = 'reserved', until = ? WHERE user_id = ? AND kind = 'live'",
        (until, user_id),
    )
    await tx.execute(
        "UPDATE handles SET kind = 'reserved', user_id = NULL WHERE user_id = ?", (user_id,)
    )
    await count_users(tx, -await tx.execute("DELETE FROM users WHERE id = ?", (user_id,)))


async def claim_handle(tx: Tx, handle: str, user_id: str, now: int) -> bool:
    """Make a handle the user's, unless it is someone's, leads to someone else or is reserved."""
    taken = await tx.execute(
        "INSERT INTO handles (handle, user_id, kind, until) VALUES (?, ?, 'live', NULL) "
        "ON CONFLICT (handle) "
        "DO UPDATE SET user_id = excluded.user_id, kind = 'live', until = NULL "
        "WHERE handles.kind <> 'live' AND (handles.until <= ? "
        "OR (handles.kind = 'redirect' AND handles.user_id = excluded.user_id))",
        (handle, user_id, now),
    )
    return taken == 1


async def give_up_handle(tx: Tx, user_id: str, wanted: str, until: int) -> str | None:
    """Let a user's handle lead to them for a while, and answer it; nothing if it is the wanted."""
    return await one(
        tx,
        str,
        "UPDATE handles SET kind = 'redirect', until = ? "
        "WHERE user_id = ? AND kind = 'live' AND handle <> ? RETURNING handle",
        (until, user_id, wanted),
    )


async def rename(tx: Tx, user_id: str, before: str, handle: str, now: int) -> bool:
    """Write another handle into an account, unless someone else did so first."""
    changed = await tx.execute(
        "UPDATE users SET handle = ?, updated_at = ? WHERE id = ? AND handle = ?",
        (handle, now, user_id, before),
    )
    return changed == 1


async def reserve(tx: Tx, name: str, now: int) -> bool:
    """Make a name a namespace, unless it is someone's, leads to someone or was so until lately."""
    reserved = await tx.execute(
        "INSERT INTO handles (handle, user_id, kind, until) VALUES (?, NULL, 'namespace', NULL) "
        "ON CONFLICT (handle) DO UPDATE SET user_id = NULL, kind = 'namespace', until = NULL "
        "WHERE handles.kind = 'namespace' OR (handles.kind <> 'live' AND handles.until <= ?)",
        (name, now),
    )
    return reserved == 1


async def namespaces(tx: Tx) -> frozenset[str]:
    """The names that are namespaces."""
    rows = await tx.fetch("SELECT handle FROM handles WHERE kind = 'namespace'")
    return frozenset(name for (name,) in rows)


async def release_others(tx: Tx, kept: frozenset[str]) -> None:
    """Let all names be free that were namespaces, but for these."""
    for name in sorted(await namespaces(tx) - kept):
        await tx.execute("DELETE FROM handles WHERE handle = ? AND kind = 'namespace'", (name,))


async def redirects_of(tx: Tx, user_id: str, now: int) -> dict[str, int]:
    """The old handles that still lead to a user, and until when."""
    rows = await tx.fetch(
        "SELECT handle, until FROM handles WHERE user_id = ? AND kind = 'redirect' AND until > ? "
        "ORDER BY until, handle",
        (user_id, now),
    )
    return dict(rows)


async def index_names(tx: Tx, account: Account) -> None:
    """Bring the search index up to date; whom strangers may not find is not in it at all."""
    private = account.privacy == "private"
    wanted = set() if private else grams_of(account.handle, account.display_name)
    rows = await tx.fetch("SELECT gram FROM user_grams WHERE user_id = ?", (account.id,))
    present = {row[0] for row in rows}
    for gram in present - wanted:
        await tx.execute(
            "DELETE FROM user_grams WHERE gram = ? AND user_id = ?", (gram, account.id)
        )
    for gram in wanted - present:
        await tx.execute(
            "INSERT INTO user_grams (gram, user_id) VALUES (?, ?) "
            "ON CONFLICT (gram, user_id) DO NOTHING",
            (gram, account.id),
        )


PERSON_ROW = (
    "SELECT u.handle, u.display_name, u.account_type, u.created_at, u.suspended_at, "
    "u.operator_since, "
    "COALESCE((SELECT s.bytes FROM mail_shares s WHERE s.account = u.id), 0), "
    "COALESCE((SELECT SUM(s.bytes) FROM room_shares s WHERE s.author = u.id), 0), "
    "(SELECT COUNT(*) FROM room_members m WHERE m.account_id = u.id AND m.state = 'member'), "
    "(SELECT MAX(c.used_at) FROM credentials c WHERE c.account_id = u.id) "
    "FROM users u WHERE "
)


async def people_after(
    tx: Tx, handle: str, limit: int, *, suspended: bool, text: str = ""
) -> list[PersonRow]:
    """Some accounts in the order of their handles: those that are suspended, or that have a text.

    The text may be in the handle or in the name, in whichever case.
    """
    tests: list[str] = []
    if suspended:
        tests.append("AND u.suspended_at IS NOT NULL ")
    pattern: tuple[SqlValue, ...] = ()
    if text:
        tests.append("AND LOWER(u.handle || ' ' || u.display_name) LIKE LOWER(?) ESCAPE '\\' ")
        pattern = (like(f"*{text}*"),)
    sql = f"{PERSON_ROW}u.handle > ? {''.join(tests)}ORDER BY u.handle LIMIT ?"
    return await many(tx, PersonRow, sql, (handle, *pattern, limit))


async def person_row(tx: Tx, user_id: str) -> PersonRow | None:
    """One account as a row of the operator's list of people."""
    return await one(tx, PersonRow, f"{PERSON_ROW}u.id = ?", (user_id,))


async def count_users(tx: Tx, change: int = 0) -> int:
    """How many accounts there are, after adding the change to it."""
    if change:
        await tx.execute(
            "INSERT INTO counters (name, value) VALUES ('users', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value",
            (change,),
        )
    return await one(tx, int, "SELECT value FROM counters WHERE name = 'users'") or 0
