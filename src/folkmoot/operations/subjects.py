"""Whose account an operator means, and the audit lines that are stored with its change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.core import errors as e
from folkmoot.names.grammar import parse_handle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.accounts import Account
    from folkmoot.audit import Line
    from folkmoot.core.ports import Tx
    from folkmoot.operations.call import Call, Services


async def find(services: Services, handle: str) -> Account:
    from folkmoot.accounts.queries import by_handle

    name = parse_handle(handle)
    if name is None:
        raise e.CommandInvalid(f"{handle!r} is not a valid handle.")
    now = int(services.clock.now())
    account = await services.store.read(lambda tx: by_handle(tx, name, now))
    if account is None:
        raise e.UserNotFound(f"Nobody has the handle @{name}.")
    if account.handle != name:
        raise e.UserNotFound(f"@{name} is @{account.handle} now; use that handle.")
    return account


def recording(
    call: Call, action: str, lines: list[Line], reason: str = ""
) -> Callable[[Tx, Account], Awaitable[None]]:
    """What stores the audit line in the change's own transaction, and keeps it for the log."""
    from folkmoot import audit

    services, by = call.services, call.caller.account

    async def record(tx: Tx, account: Account) -> None:
        now = services.clock.now()
        at = int(now) if services.offline else None
        # A unit may be run again: the last line is the one that was committed.
        lines[:] = [audit.by_operator(action, by, account.handle, account.id, reason or None, at)]
        await audit.record(tx, lines, now, offline=services.offline)

    return record


def log(services: Services, lines: list[Line]) -> None:
    """Write lines to the log; without a hub this process has none, and the next hub logs them."""
    if not services.offline:
        for line in lines:
            line.log()
