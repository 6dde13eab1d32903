"""The lines that operations leave in the audit log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from folkmoot.core.errors import StoreError

if TYPE_CHECKING:
    from folkmoot.operations.call import Caller, Services

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
        except StoreError as error:
            # It is done: a full disk, say, must not make a failure of a backup that was made.
            extra = {"action": line.action, "error": error.code}
            logger.warning("an audit line was not stored", extra=extra)
    if not services.offline:
        line.log()
