"""How an invite is made, and what its link shows before it is claimed."""

from __future__ import annotations

from datetime import UTC, datetime

from folkmoot.accounts import queries
from folkmoot.accounts.model import HubInvitation, Policy
from folkmoot.accounts.queries_invites import (
    PURPOSE,
    count_open,
    insert_invite,
    replace_invite_for,
    state_of_invite,
    waiting_invite,
)
from folkmoot.accounts.registration import ReservedNames, Standing, access_own, standing
from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Tx
from folkmoot.quotas import Quotas


def check_pending(message: str, most: int) -> bytes:
    """The bytes of a message that is to wait for whoever is invited."""
    if len(message) > most:
        raise e.ArgumentInvalid(
            f"message has {len(message):,} characters; at most {most:,} are allowed.",
            setting="mail.max_body_characters",
            field="message",
        )
    try:
        return message.encode()
    except UnicodeEncodeError:
        raise e.ArgumentInvalid("message must be valid Unicode.", field="message") from None


async def do_invite(
    tx: Tx,
    code_hash: str,
    inviter_id: str | None,
    pending: str | None,
    now: int,
    quotas: Quotas,
) -> None:
    """Store an invite of someone who has an account, or of the operator."""
    if inviter_id is not None:
        await access_own(tx, inviter_id)
        most = quotas.limits.invites_per_account
        if most:
            open_ = await count_open(tx, inviter_id, most)
            quotas.check("invites_per_account", open_ + 1, most)
    await insert_invite(tx, code_hash, inviter_id, pending, now)


async def access_invitation(
    tx: Tx, code_hash: str, now: int, sealer: Sealer, policy: Policy
) -> HubInvitation:
    """What an invite shows to someone who has its code."""
    state = await state_of_invite(tx, code_hash, now)
    claim = await waiting_invite(tx, code_hash) if state == "valid" else None
    if claim is None:
        return HubInvitation(state)
    inviter = await queries.by_id(tx, claim.inviter_id) if claim.inviter_id else None
    message = None
    if claim.pending is not None:
        message = sealer.open(PURPOSE, code_hash, claim.pending).decode()
    return HubInvitation(
        state,
        handle=claim.handle,
        inviter=None if inviter is None else inviter.handle,
        inviter_name=None if inviter is None else inviter.display_name,
        message=message,
        opens=policy != "closed" or claim.handle is not None,
    )


async def do_invite_for(
    tx: Tx, code_hash: str, handle: str, until: int, now: int, reserved: ReservedNames
) -> None:
    """Store the operator's invite for a handle that someone can still have."""
    if reserved.belongs_elsewhere(handle):
        raise e.HandleTaken(f"@{handle} cannot be anyone's handle: the name belongs to the hub.")
    kept = await standing(tx, handle, now)
    if kept is not None:
        raise e.HandleTaken(f"@{handle} cannot be invited: {why_taken(kept)}.")
    await replace_invite_for(tx, code_hash, handle, until, now)


def why_taken(kept: Standing) -> str:
    """Why a name is not free, as half a sentence for the operator."""
    if kept.kind == "live":
        return "an account has this handle"
    day = datetime.fromtimestamp(kept.until or 0, UTC).date()
    if kept.kind == "redirect":
        return f"it leads to @{kept.handle}, who had it before, until {day}"
    return f"an account that had it was deleted, and it stays reserved until {day}"
