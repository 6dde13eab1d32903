"""Invites: a code that may be claimed once, and the message that waits for whoever claims it.

The operator may make one *for a handle*: it opens that name alone, whoever may register, and ends.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from folkmoot.accounts.model import InviteRecord, InviteState, OpenInvite
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.rows import insert, many, one

PURPOSE = "pending_message"
"""What a waiting message is sealed for; its row is the hash of the code."""


ID = "i_"
ID_DIGITS = 24
INVITE_ID = re.compile(f"{ID}[0-9a-f]{{{ID_DIGITS}}}")
"""The public name of an invite: how the hash of its code begins."""
NEVER = 2**62


class Invite(NamedTuple):
    """An invite as it is stored."""

    inviter_id: str | None
    """None for an operator's."""
    pending: str | None
    """The sealed message that waits in it."""
    handle: str | None
    """The handle it was made for, if it was."""
    claimed_at: int | None
    until: int | None

    def state(self, now: int) -> InviteState:
        """Whether it is claimed, expired or valid."""
        if self.claimed_at is not None:
            return "claimed"
        return "valid" if self.until is None or self.until > now else "expired"


async def find_invite(tx: Tx, code_hash: str) -> Invite | None:
    """The invite of a code."""
    sql = "SELECT created_by, pending, handle, claimed_at, until FROM invites WHERE code_hash = ?"
    return await one(tx, Invite, sql, (code_hash,))


async def insert_invite(
    tx: Tx, code_hash: str, created_by: str | None, pending: str | None, now: int
) -> None:
    """Store an invite that nobody has claimed."""
    values = {
        "code_hash": code_hash,
        "created_by": created_by,
        "pending": pending,
        "created_at": now,
    }
    await insert(tx, "invites", values)


async def replace_invite_for(tx: Tx, code_hash: str, handle: str, until: int, now: int) -> None:
    """Store an invite for a handle; an earlier one that nobody has claimed is void."""
    await insert(
        tx,
        "invites",
        {"code_hash": code_hash, "created_at": now, "handle": handle, "until": until},
        "ON CONFLICT (handle) WHERE claimed_at IS NULL AND handle IS NOT NULL DO UPDATE SET "
        "code_hash = excluded.code_hash, created_at = excluded.created_at, until = excluded.until",
    )


async def claim_invite(tx: Tx, code_hash: str, claimed_by: str, handle: str, now: int) -> Invite:
    """Claim an invite for a new user; raises when it is unknown, too late or was claimed before."""
    invite = await find_invite(tx, code_hash)
    if invite is None:
        raise e.InviteUnknown
    claimed = await tx.execute(
        "UPDATE invites SET claimed_by = ?, claimed_at = ?, pending = NULL "
        "WHERE code_hash = ? AND claimed_at IS NULL",
        (claimed_by, now, code_hash),
    )
    if not claimed:
        raise e.InviteClaimed
    if invite.until is not None and invite.until <= now:
        raise e.InviteUnknown("This invite has expired. Ask for another.")
    if invite.handle not in {None, handle}:
        raise e.InviteUnknown("This invite was made for another handle.")
    return invite


async def count_open(tx: Tx, user_id: str, most: int) -> int:
    """How many invites of a user nobody has claimed, counted up to so many."""
    sql = (
        "SELECT COUNT(*) FROM (SELECT 1 FROM invites WHERE created_by = ? AND claimed_at IS NULL "
        "LIMIT ?) AS counted"
    )
    return await one(tx, int, sql, (user_id, most)) or 0


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
    sql = "SELECT created_at, claimed_at FROM invites WHERE created_by = ? ORDER BY created_at"
    return await many(tx, InviteRecord, sql, (user_id,))
