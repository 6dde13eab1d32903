"""Audit lines of what an operator did while no hub ran.

They are stored in the same transaction as the change itself, and the hub logs them when it starts,
before anything else happens: a line may be logged twice after a crash, but is never lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.store import meta

if TYPE_CHECKING:
    from folkmoot.core.ports import Store, Tx

audit_logger = logging.getLogger("folkmoot.audit")

KEY: Final = "audit_pending"


class Line(Struct, frozen=True):
    """One audit line: what was done, by whom, about whom, and when."""

    action: str
    by: str
    about: str
    account: str | None = None
    detail: str | None = None
    at: int | None = None
    """Seconds since the epoch; None for a line that is logged at once."""

    def log(self) -> None:
        """Write it to the log."""
        extra: dict[str, Any] = {
            "by": self.by,
            "account": self.account,
            "about": self.about,
            "detail": self.detail,
        }
        if self.at is not None:
            extra["at"] = datetime.fromtimestamp(self.at, UTC).isoformat().replace("+00:00", "Z")
        audit_logger.info(self.action, extra=extra)


async def keep(tx: Tx, lines: Iterable[Line]) -> None:
    """Within a unit: keep lines until a hub starts."""
    if added := list(lines):
        await meta.put(tx, KEY, msgspec.json.encode([*await _kept(tx), *added]).decode())


async def log_kept(store: Store) -> None:
    """Log what was done while no hub ran."""
    kept = await store.read(_kept)
    if not kept:
        return
    for line in kept:
        line.log()

    async def unit(tx: Tx) -> None:
        await meta.remove(tx, KEY)

    await store.write(unit)


async def _kept(tx: Tx) -> list[Line]:
    text = await meta.get(tx, KEY)
    return [] if text is None else msgspec.json.decode(text, type=list[Line])
