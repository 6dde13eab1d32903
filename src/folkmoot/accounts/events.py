"""What is published of accounts: `account.ID`, after each change that others must know of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.core.events import ACCOUNTS, subject
from folkmoot.core.policy import Principal, PrincipalType

if TYPE_CHECKING:
    from folkmoot.accounts.model import Account
    from folkmoot.core.ports import Event, Tx

Change: TypeAlias = Literal["profile", "handle", "restored", "suspended", "recovered", "deleted"]

ENDING: Final = frozenset({"suspended", "recovered", "deleted"})
"""Changes after which no token that was valid before is."""
CLOSING: Final = frozenset({"suspended", "deleted"})
"""Changes after which nobody can use the account."""


class AccountChanged(Struct, frozen=True):
    """A change of an account, and who it is since."""

    id: str
    change: Change
    handle: str
    type: str
    redirects: dict[str, int] = {}
    """After a change of the handle: those before it that still lead here, and until when."""

    @property
    def ends_tokens(self) -> bool:
        """Whether no token that was valid before is valid now."""
        return self.change in ENDING

    @property
    def closes(self) -> bool:
        """Whether nobody can use the account now."""
        return self.change in CLOSING

    @property
    def principal(self) -> Principal:
        """Whose account it is, as policy knows them."""
        return Principal(self.id, self.handle, PrincipalType(self.type))


def publish_change(
    tx: Tx, account: Account, change: Change, redirects: dict[str, int] | None = None
) -> None:
    """Within a unit: have everyone told of a change once it is committed."""
    changed = AccountChanged(
        account.id, change, account.handle, account.account_type, redirects or {}
    )
    tx.publish(subject(ACCOUNTS, account.id), changed)


def read_change(event: Event) -> AccountChanged:
    """The change that an event tells of."""
    return msgspec.convert(event.data, AccountChanged)
