"""The SQL of contacts, blocks and the search for people."""

from __future__ import annotations

from collections.abc import Sequence

from folkmoot.accounts.limits import MAX_USERS_COUNTED
from folkmoot.accounts.model import Account, Contact
from folkmoot.accounts.queries import ACCOUNT, LED_TO
from folkmoot.core.ports import Tx
from folkmoot.rows import insert, many, one

BLOCKS = "EXISTS (SELECT 1 FROM blocks b WHERE b.user_id = u.id AND b.blocked_id = ?)"
KNOWS = "EXISTS (SELECT 1 FROM contacts c WHERE c.user_id = u.id AND c.contact_id = ?)"


async def put_contact(tx: Tx, user_id: str, contact_id: str, sealed: str, now: int) -> None:
    """Add a contact, or give one that is there another nickname, which is sealed."""
    await insert(
        tx,
        "contacts",
        {"user_id": user_id, "contact_id": contact_id, "nickname": sealed, "created_at": now},
        "ON CONFLICT (user_id, contact_id) DO UPDATE SET nickname = excluded.nickname",
    )


async def delete_contact(tx: Tx, user_id: str, contact_id: str) -> bool:
    """Remove a contact, and answer whether it was one."""
    removed = await tx.execute(
        "DELETE FROM contacts WHERE user_id = ? AND contact_id = ?", (user_id, contact_id)
    )
    return removed == 1


async def has_contact(tx: Tx, user_id: str, contact_id: str) -> bool:
    """Whether a user has someone among their contacts."""
    row = await tx.fetch_one(
        "SELECT 1 FROM contacts WHERE user_id = ? AND contact_id = ?", (user_id, contact_id)
    )
    return row is not None


async def contacts_of(tx: Tx, user_id: str, *, after: str, limit: int) -> list[tuple[str, Contact]]:
    """Some contacts of a user by handle, each with its id, their nicknames sealed.

    Whoever is private and does not know the user is shown by handle alone. The cost grows with the
    number of the user's contacts.
    """
    # The cross join keeps SQLite from reading all users in the order of their handles.
    rows = await tx.fetch(
        "SELECT c.contact_id, u.handle, CASE WHEN u.privacy <> 'private' OR EXISTS "
        "(SELECT 1 FROM contacts b WHERE b.user_id = u.id AND b.contact_id = c.user_id) "
        "THEN u.display_name ELSE u.handle END, c.nickname, c.created_at "
        "FROM contacts c CROSS JOIN users u WHERE u.id = c.contact_id AND c.user_id = ? "
        "AND u.handle > ? ORDER BY u.handle LIMIT ?",
        (user_id, after, limit),
    )
    return [(row[0], Contact(*row[1:])) for row in rows]


async def put_block(tx: Tx, user_id: str, blocked_id: str) -> None:
    await tx.execute(
        "INSERT INTO blocks (user_id, blocked_id) VALUES (?, ?) "
        "ON CONFLICT (user_id, blocked_id) DO NOTHING",
        (user_id, blocked_id),
    )


async def delete_block(tx: Tx, user_id: str, blocked_id: str) -> None:
    """Unblock someone."""
    await tx.execute(
        "DELETE FROM blocks WHERE user_id = ? AND blocked_id = ?", (user_id, blocked_id)
    )


async def blocked_by(tx: Tx, user_id: str, *, after: str, limit: int) -> list[str]:
    """The handles of some of those whom a user blocks, in their order.

    The cost grows with the number of those.
    """
    return await many(
        tx,
        str,
        "SELECT u.handle FROM blocks b CROSS JOIN users u WHERE u.id = b.blocked_id "
        "AND b.user_id = ? AND u.handle > ? ORDER BY u.handle LIMIT ?",
        (user_id, after, limit),
    )


async def may_reach(tx: Tx, sender_id: str, recipient: Account) -> bool:
    """Whether the sender is not blocked and, unless the recipient is public, is a contact."""
    row = await tx.fetch_one(
        f"SELECT {BLOCKS}, {KNOWS} FROM users u WHERE u.id = ?",  # noqa: S608
        (sender_id, sender_id, recipient.id),
    )
    return row is not None and takes_mail(recipient, *row)


async def recipient_by_handle(
    tx: Tx, sender_id: str, handle: str, now: int
) -> tuple[Account, bool] | None:
    """The account this handle leads to, as `by_handle` finds it, and whether it may be reached."""
    row = await tx.fetch_one(
        f"SELECT {BLOCKS}, {KNOWS}, {ACCOUNT} {LED_TO}",
        (sender_id, sender_id, handle, now),
    )
    if row is None:
        return None
    account = Account(*row[2:])
    return account, takes_mail(account, *row[:2])


def takes_mail(recipient: Account, blocks: int, knows: int) -> bool:
    """Whether someone takes mail from a sender whom they block or not, and know or not."""
    return not blocks and bool(knows or recipient.privacy == "public")


async def rarest_first(tx: Tx, grams: Sequence[str]) -> list[str]:
    """The grams in the order of how many users have them, as far as they are counted."""
    if len(grams) == 1:
        return list(grams)
    most = MAX_USERS_COUNTED // len(grams)
    counts: dict[str, int] = {}
    for gram in grams:
        sql = "SELECT COUNT(*) FROM (SELECT 1 FROM user_grams WHERE gram = ? LIMIT ?) AS probed"
        counts[gram] = await one(tx, int, sql, (gram, most)) or 0
    return sorted(grams, key=counts.__getitem__)


async def with_grams(tx: Tx, grams: Sequence[str], *, after: str, limit: int) -> list[Account]:
    """Users who have all these grams, in the order of their ids; the first leads the search."""
    others = "".join(
        " AND EXISTS (SELECT 1 FROM user_grams o WHERE o.gram = ? AND o.user_id = g.user_id)"
        for _ in grams[1:]
    )
    return await many(
        tx,
        Account,
        f"SELECT {ACCOUNT} FROM user_grams g JOIN users u ON u.id = g.user_id "  # noqa: S608
        f"WHERE g.gram = ? AND g.user_id > ?{others} ORDER BY g.user_id LIMIT ?",
        (grams[0], after, *grams[1:], limit),
    )


async def not_private(tx: Tx, *, limit: int) -> list[Account]:
    """Some of the users whom everyone may find."""
    sql = f"SELECT {ACCOUNT} FROM users u WHERE u.privacy <> 'private' ORDER BY u.id LIMIT ?"  # noqa: S608
    return await many(tx, Account, sql, (limit,))


async def private_who_know(tx: Tx, viewer_id: str, *, after: str, limit: int) -> list[Account]:
    """The private users who have the viewer among their contacts, in the order of their ids."""
    return await many(
        tx,
        Account,
        f"SELECT {ACCOUNT} FROM contacts c JOIN users u ON u.id = c.user_id "  # noqa: S608
        "WHERE c.contact_id = ? AND c.user_id > ? AND u.privacy = 'private' "
        "ORDER BY c.user_id LIMIT ?",
        (viewer_id, after, limit),
    )
