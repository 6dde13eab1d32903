"""Which token is whose, kept in memory so that a request need not ask the database."""

from __future__ import annotations

from collections import OrderedDict

from folkmoot.accounts.model import Account

MOST_KNOWN = 10_000


class KnownTokens:
    """The accounts seen last by the hashes of their tokens; a changed account is never in it."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._accounts: OrderedDict[str, Account] = OrderedDict()
        self._hashes: dict[str, str] = {}
        self.moment = 0
        """Grows with every change: what was read at an earlier moment may be outdated."""

    def __len__(self) -> int:
        return len(self._accounts)

    def get(self, token_hash: str) -> Account | None:
        """The account whose token has this hash, if it is known."""
        account = self._accounts.get(token_hash)
        if account is not None:
            self._accounts.move_to_end(token_hash)
        return account

    def put(self, token_hash: str, account: Account, *, read_at: int) -> None:
        """Remember what was read, unless something has changed since the moment of reading."""
        if read_at != self.moment:
            return
        self._drop(account.id)
        self._accounts[token_hash] = account
        self._hashes[account.id] = token_hash
        if len(self._accounts) > self._most:
            _, oldest = self._accounts.popitem(last=False)
            del self._hashes[oldest.id]

    def forget(self, user_id: str) -> None:
        """An account was changed: what was read of it before is not remembered any more."""
        self._drop(user_id)
        self.moment += 1

    def _drop(self, user_id: str) -> None:
        token_hash = self._hashes.pop(user_id, None)
        if token_hash is not None:
            del self._accounts[token_hash]
