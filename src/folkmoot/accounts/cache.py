"""Which token is whose, kept in memory so that a request need not ask the database."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from folkmoot.accounts.model import Account

MOST_KNOWN = 10_000


class KnownTokens:
    """The accounts seen last by the hashes of their tokens; a changed account is never in it."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._accounts: OrderedDict[str, Account] = OrderedDict()
        self._hashes: dict[str, str] = {}
        self._changing: Counter[str] = Counter()
        self._unsure: dict[str, int] = {}
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
        if read_at != self.moment or self._changing[account.id] or account.id in self._unsure:
            return
        self._forget(account.id)
        self._accounts[token_hash] = account
        self._hashes[account.id] = token_hash
        if len(self._accounts) > self._most:
            _, oldest = self._accounts.popitem(last=False)
            del self._hashes[oldest.id]

    @contextmanager
    def changing(self, user_id: str) -> Iterator[None]:
        """Around a write that changes an account: nothing is remembered of it meanwhile.

        Whoever is cancelled while the write waits does not learn whether and when it is committed,
        so that account is looked up every time until a later change of it has ended.
        """
        began = self._note(user_id)
        self._changing[user_id] += 1
        try:
            yield
        except asyncio.CancelledError:
            self._unsure[user_id] = self._note(user_id)
            raise
        finally:
            self._note(user_id)
            self._changing[user_id] -= 1
            if not self._changing[user_id]:
                del self._changing[user_id]
        # Writes are committed in their order: one that began after the doubt has ended it.
        if self._unsure.get(user_id, began) < began:
            del self._unsure[user_id]

    def _note(self, user_id: str) -> int:
        self._forget(user_id)
        self.moment += 1
        return self.moment

    def _forget(self, user_id: str) -> None:
        token_hash = self._hashes.pop(user_id, None)
        if token_hash is not None:
            del self._accounts[token_hash]
