"""Invites: a code that may be claimed once, and the message that waits for whoever claims it.

The operator may make one *for a handle*: it opens that name alone, whoever may register, and ends.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from folkmoot.accounts.model import InviteRecord, InviteState, OpenInvite
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx

PURPOSE = "pending_message"
"""What a waiting message is sealed for; its row is the hash of the code."""


ID = "i_"
ID_DIGITS = 24
INVITE_ID = re.compile(f"{ID}[0-9a-f]{{{ID_DIGITS}}}")
"""The public name of an invite: how the hash of its code begins."""
NEVER = 2**62


class Claim(NamedTuple):
    """The inviter (none for an operator's invite) and the sealed message waiting in an invite."""

    inviter_id: str | None
    pending: str | None
    handle: str | None = None
    """The handle the invite was made for, if it was."""


async def insert_invite(
    tx: Tx, code_hash: str, created_by: str | None, pending: str | None, now: int
) -> None:
    """Store an invite that nobody has claimed."""
    await tx.execute(
        "INSERT INTO invites (code_hash, created_by, pending, created_at, claimed_by, claimed_at) "
        "VALUES (?, ?, ?, ?, NULL, NULL)",
        (code_hash, created_by, pending, now),
    )


async def replace_invite_for(tx: Tx, code_hash: str, handle: str, until: int, now: int) -> None:
    """Store an invite for a handle; an earlier one that nobody has claimed is void."""
    await tx.execute(
        "INSERT INTO invites (code_hash, created_by, pending, created_at, claimed_by, claimed_at, "
        "handle, until) VALUES (?, NULL, NULL, ?, NULL, NULL, ?, ?) "
        "ON CONFLICT (handle) WHERE claimed_at IS NULL AND handle IS NOT NULL DO UPDATE SET "
        "code_hash = excluded.code_hash, created_at = excluded.created_at, until = excluded.until",
        (code_hash, now, handle, until),
    )


async def claim_invite(
    tx: Tx, code_hash: str | None, claimed_by: str, handle: str, now: int
) -> Claim:
    """Claim an invite for a new user; raises when it is unknown, too late or was claimed before."""
    row = await tx.fetch_one(
        "SELECT created_by, pending, handle, until FROM invites WHERE code_hash = ?", (code_hash,)
    )
    if row is None:
        raise e.InviteUnknown
    claimed = await tx.execute(
        "UPDATE invites SET claimed_by = ?, claimed_at = ?, pending = NULL "
        "WHERE code_hash = ? AND claimed_at IS NULL",
        (claimed_by, now, code_hash),
    )
    if not claimed:
        raise e.InviteClaimed
    claim, until = Claim(*row[:3]), row[3]
    if until is not None and until <= now:
        raise e.InviteUnknown("This invite has expired. Ask for another.")
    if claim.handle not in {None, handle}:
        raise e.InviteUnknown("This invite was made for another handle.")
    return claim


async def waiting_invite(tx: Tx, code_hash: str) -> Claim | None:
    """The inviter and message that an unclaimed invite holds."""
    row = await tx.fetch_one(
        "SELECT created_by, pending, handle FROM invites WHERE code_hash = ?", (code_hash,)
    )
    return None if row is None else Claim(*row)


async def handle_of_invite(tx: Tx, code_hash: str | None) -> str | None:
    """The handle an invite was made for, claimed or not."""
    row = await tx.fetch_one("SELECT handle FROM invites WHERE code_hash = ?", (code_hash,))
    return None if row is None else row[0]


async def state_of_invite(tx: Tx, code_hash: str, now: int) -> InviteState:
    """Whether a code is unknown, claimed, expired or valid."""
    row = await tx.fetch_one(
        "SELECT claimed_at, until FROM invites WHERE code_hash = ?", (code_hash,)
    )
    if row is None:
        return "unknown"
    claimed_at, until = row
    if claimed_at is not None:
        return "claimed"
    return "valid" if until is None or until > now else "expired"


async def count_open(tx: Tx, user_id: str, most: int) -> int:
    """How many invites of a user nobody has claimed, counted up to so many."""
    row = await tx.fetch_one(
        "SELECT COUNT(*) FROM (SELECT 1 FROM invites WHERE created_by = ? AND claimed_at IS NULL "
        "LIMIT ?) AS counted",
        (user_id, most),
    )
    return 0 if row is None else int(row[0])


async def open_invites(
    tx: Tx, by: str | None, before: tuple[int, str] | None, now: int, limit: int
) -> list[OpenInvite]:
    """Invites that nobody has used yet, of one user or all, the newest first."""
    at, last = before or (NEVER, "")
    rows = await tx.fetch(
        "SELECT i.code_hash, i.created_at, i.until, i.handle, u.handle, i.pending IS NOT NULL "  # noqa: S608
        "FROM invites i LEFT JOIN users u ON u.id = i.created_by "
        "WHERE i.claimed_at IS NULL AND (i.until IS NULL OR i.until > ?) "
        "AND (i.created_at < ? OR (i.created_at = ? AND i.code_hash < ?)) "
        f"{'' if by is None else 'AND i.created_by = ? '}"
        "ORDER BY i.created_at DESC, i.code_hash DESC LIMIT ?",
        (now, at, at, last.removeprefix(ID), *(() if by is None else (by,)), limit),
    )
    return [
        OpenInvite(f"{ID}{hashed[:ID_DIGITS]}", made, until, handle, inviter, bool(waits))
        for hashed, made, until, handle, inviter, waits in rows
    ]


async def remove_open(tx: Tx, invite_id: str, by: str | None, now: int) -> bool:
    """Remove an invite, unless claimed or expired: one made by `by`, or without `by` anyone's."""
    start = invite_id.removeprefix(ID)
    # The hash of a code of 128 bits: its beginning names one, and tells nothing of the code.
    removed = await tx.execute(
        "DELETE FROM invites WHERE code_hash >= ? AND code_hash < ? AND claimed_at IS NULL "  # noqa: S608
        f"AND (until IS NULL OR until > ?) {'' if by is None else 'AND created_by = ?'}",
        (start, f"{start}g", now, *(() if by is None else (by,))),
    )
    return removed == 1


async def invites_of(tx: Tx, user_id: str) -> list[InviteRecord]:
    """The invites a user has made."""
    rows = await tx.fetch(
        "SELECT created_at, claimed_at FROM invites WHERE created_by = ? ORDER BY created_at",
        (user_id,),
    )
    return [InviteRecord(*row) for row in rows]
