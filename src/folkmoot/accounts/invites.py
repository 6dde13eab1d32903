"""How an invite is made."""

from __future__ import annotations

from folkmoot.accounts.queries_invites import insert_invite
from folkmoot.accounts.registration import access_own
from folkmoot.core.errors import ArgumentInvalid
from folkmoot.core.ports import Tx


def check_pending(message: str, most: int) -> bytes:
    """The bytes of a message that is to wait for whoever is invited."""
    if len(message) > most:
        raise ArgumentInvalid(
            f"message has {len(message):,} characters; at most {most:,} are allowed.",
            field="message",
        )
    try:
        return message.encode()
    except UnicodeEncodeError:
        raise ArgumentInvalid("message must be valid Unicode.", field="message") from None


async def do_invite(
    tx: Tx, code_hash: str, inviter_id: str | None, pending: str | None, now: int
) -> None:
    """Store an invite of someone who has an account, or of the operator."""
    if inviter_id is not None:
        await access_own(tx, inviter_id)
    await insert_invite(tx, code_hash, inviter_id, pending, now)
