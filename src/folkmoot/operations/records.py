"""What operations leave behind: lines of the audit log, and decisions made outside rooms."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec.structs import replace

from folkmoot import decisions
from folkmoot.core import errors as e
from folkmoot.decisions import AskKind, NewDecision, Verdict

if TYPE_CHECKING:
    from folkmoot.core.ports import Tx
    from folkmoot.operations.call import Call, Caller, Services


logger = logging.getLogger("folkmoot.operations")


async def leave_line(
    services: Services, caller: Caller, action: str, about: str, detail: str = ""
) -> None:
    """Have in the audit log what someone did; never with what may be secret."""
    # The hub has it loaded; a command that only knows the table need not.
    from folkmoot import audit

    clock: Any = services.clock
    store, now = services.store, 0.0 if clock is None else clock.now()
    at = int(now) if services.offline else None
    line = audit.by_operator(action, caller.account, about, detail=detail or None, at=at)
    # A proxy has no table, and a stopped hub whose database is only copied is not written to.
    if store is not None:
        try:
            await store.write(lambda tx: audit.record(tx, [line], now, offline=services.offline))
        except e.StoreError as error:
            # It is done: a full disk, say, must not make a failure of a backup that was made.
            extra = {"action": line.action, "error": error.code}
            logger.warning("an audit line was not stored", extra=extra)
    if not services.offline:
        line.log()


async def remember_decision(
    call: Call,
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
    noted = NewDecision(
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
        await decisions.insert(tx, replace(noted, asked_by=None if row is None else row[0]))

    try:
        await store.write(unit)
    except e.StoreError as error:
        # It is done: a full disk must not make a failure of it.
        logger.warning("a decision was not noted", extra={"error": error.code})
