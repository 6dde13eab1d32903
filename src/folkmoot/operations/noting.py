"""Noting what someone decided outside rooms; rooms note what is decided in them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec.structs import replace

from folkmoot import decisions
from folkmoot.core.errors import StoreError
from folkmoot.decisions import AskKind, Noted, Verdict

if TYPE_CHECKING:
    from folkmoot.core.ports import Tx
    from folkmoot.operations.call import Call

logger = logging.getLogger("folkmoot.operations")


async def note(
    call: Call[Any],
    kind: AskKind,
    decision: Verdict,
    about: str,
    what: str,
    *,
    by: str = "",
    **more: Any,
) -> None:
    """Remember a decision of the caller's; the operator at the socket is no account.

    `by` is the handle of whoever asked for it, where that is known.
    """
    account, store = call.caller.account, call.services.store
    if account is None or store is None:
        return
    now = call.services.clock.now()
    noted = Noted(
        account=account.id,
        id=str(uuid4()),
        at=now,
        kind=kind,
        decision=decision,
        about=about,
        what=what,
        ended_at=now,
        **more,
    )

    async def unit(tx: Tx) -> None:
        row = await tx.fetch_one("SELECT id FROM users WHERE handle = ?", (by,)) if by else None
        await decisions.note(tx, replace(noted, asked_by=None if row is None else row[0]))

    try:
        await store.write(unit)
    except StoreError as error:
        # It is done: a full disk must not make a failure of it.
        logger.warning("a decision was not noted", extra={"error": error.code})
