"""Invites: a code that may be claimed once, and the message that waits for whoever claims it."""

from __future__ import annotations

from typing import NamedTuple

from folkmoot.accounts.model import InviteRecord, InviteState
from folkmoot.core.errors import InviteClaimed, InviteUnknown
from folkmoot.core.ports import Tx

PURPOSE = "pending_message"
"""What a waiting message is sealed for; its row is the hash of the code."""


class Claim(NamedTuple):
    """Who invited (nobody, when it was the operator), and the sealed message that waits."""

    inviter_id: str | None
    pending: str | None


async def insert_invite(
    tx: Tx, code_hash: str, created_by: str | None, pending: str | None, now: int
) -> None:
    """Store an invite that nobody has claimed."""
    await tx.execute(
        "INSERT INTO invites (code_hash, created_by, pending, created_at, claimed_by, claimed_at) "
        "VALUES (?, ?, ?, ?, NULL, NULL)",
        (code_hash, created_by, pending, now),
    )


async def claim_invite(tx: Tx, code_hash: str | None, claimed_by: str, now: int) -> Claim:
    """Claim an invite for a new user; raises when it is unknown or was claimed before."""
    row = await tx.fetch_one(
        "SELECT created_by, pending FROM invites WHERE code_hash = ?", (code_hash,)
    )
    if row is None:
        raise InviteUnknown
    claimed = await tx.execute(
        "UPDATE invites SET claimed_by = ?, claimed_at = ?, pending = NULL "
        "WHERE code_hash = ? AND claimed_at IS NULL",
        (claimed_by, now, code_hash),
    )
    if not claimed:
        raise InviteClaimed
    return Claim(*row)


async def state_of_invite(tx: Tx, code_hash: str) -> InviteState:
    """Whether a code is unknown, claimed or valid."""
    row = await tx.fetch_one("SELECT claimed_at FROM invites WHERE code_hash = ?", (code_hash,))
    if row is None:
        return "unknown"
    return "valid" if row[0] is None else "claimed"


async def invites_of(tx: Tx, user_id: str) -> list[InviteRecord]:
    """The invites a user has made."""
    rows = await tx.fetch(
        "SELECT created_at, claimed_at FROM invites WHERE created_by = ? ORDER BY created_at",
        (user_id,),
    )
    return [InviteRecord(*row) for row in rows]
