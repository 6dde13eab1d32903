"""What the accounts need of others, and what others may do within an action of theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from folkmoot.accounts.model import Account
    from folkmoot.core.ports import Tx


class Sealer(Protocol):
    """Seals what must not lie readable in the database, each for its purpose and its row."""

    def seal(self, purpose: str, row: str, plaintext: bytes) -> str:
        """The sealed text, which opens only with the same purpose and row."""
        ...

    def open(self, purpose: str, row: str, sealed: str) -> bytes:
        """What was sealed; raises when it was changed or belongs elsewhere."""
        ...


Welcome: TypeAlias = "Callable[[Tx, Account, str | None, str | None], Awaitable[None]]"
"""Joins a registration's transaction: the new account, its inviter's id, the pending message."""

Farewell: TypeAlias = "Callable[[Tx, Account], Awaitable[None]]"
"""Joins a deletion's transaction, before the account itself is gone."""
