"""Who is behind which secret, kept in memory so that a request need not ask the database."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.accounts.model import Identity

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights

MOST_KNOWN: Final = 10_000


class Ready(Struct, frozen=True, gc=False):
    """What an account may do with a credential of some scope, and until when that is so."""

    handle: str
    until: float | None
    rights: Rights


class KnownIdentities:
    """Those seen last, by the hashes of their secrets; what was changed is never in it."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._by_hash: OrderedDict[str, Identity] = OrderedDict()
        self._hashes: dict[str, str] = {}
        """By the id of the credential."""
        self._of_account: dict[str | None, set[str]] = {}
        """Hashes by account."""
        self.rights: dict[str, dict[str, Ready]] = {}
        """By account, and by the scope of the credential; made and bounded by whoever knows what
        was granted.
        """
        self.moment = 0
        """Grows with every change: what was read at an earlier moment may be outdated."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def get(self, hashed: str) -> Identity | None:
        """Who is behind the secret that has this hash, if that is known."""
        identity = self._by_hash.get(hashed)
        if identity is not None:
            self._by_hash.move_to_end(hashed)
        return identity

    def get_by_id(self, credential_id: str) -> Identity | None:
        """Who is behind a credential, if that is known."""
        hashed = self._hashes.get(credential_id)
        return None if hashed is None else self.get(hashed)

    def put(self, hashed: str, identity: Identity, *, read_at: int) -> None:
        """Remember what was read, unless something has changed since the moment of reading."""
        if read_at != self.moment:
            return
        self._by_hash[hashed] = identity
        self._hashes[identity.credential.id] = hashed
        self._of_account.setdefault(identity.credential.account_id, set()).add(hashed)
        if len(self._by_hash) > self._most:
            self._drop(next(iter(self._by_hash)))

    def forget(self, credential_id: str, account_id: str | None) -> None:
        """A credential has ended, and with it those that it is the parent of."""
        self.moment += 1
        for hashed in tuple(self._of_account.get(account_id, ())):
            credential = self._by_hash[hashed].credential
            if credential_id in {credential.id, credential.parent_id}:
                self._drop(hashed)

    def forget_account(self, account_id: str) -> None:
        """An account was changed: what was read of it before is not remembered any more."""
        self.moment += 1
        self.rights.pop(account_id, None)
        for hashed in tuple(self._of_account.get(account_id, ())):
            self._drop(hashed)

    def _drop(self, hashed: str) -> None:
        credential = self._by_hash.pop(hashed).credential
        del self._hashes[credential.id]
        others = self._of_account[credential.account_id]
        others.discard(hashed)
        if not others:
            del self._of_account[credential.account_id]
