"""Pages of threads kept in memory, for clients that ask again though nothing has changed.

They are kept only where this process alone writes to the store: its events then tell of every
change before whoever made it has an answer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

from folkmoot.accounts import Account
from folkmoot.core.events import ACCOUNTS, LAST_READ, SENT, about
from folkmoot.core.ports import Bus, Event
from folkmoot.mail.limits import MAX_CACHED_LISTS, MAX_LISTS_OF_READER
from folkmoot.mail.model import State, ThreadPage
from folkmoot.mail.sending import MAILBOX

Question: TypeAlias = tuple[str, State | None, int, int]
"""The reader's public key, the state, where the page begins, and how many threads it has."""


class ThreadPages:
    """Pages by reader; of too many readers, the one who asked longest ago is forgotten."""

    def __init__(self, bus: Bus, *, most_readers: int = MAX_CACHED_LISTS) -> None:
        self._kept: OrderedDict[str, dict[Question, ThreadPage]] = OrderedDict()
        self._most = most_readers
        self.changes = 0
        """How often something was forgotten: a page read meanwhile may be old."""
        for pattern in (f"{MAILBOX}*", SENT, LAST_READ):
            bus.listen(pattern, self._mailbox_changed)
        bus.listen(ACCOUNTS, self._account_changed)

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, reader: Account, question: Question) -> ThreadPage | None:
        """The page that answers a question, if nothing has changed since it was read."""
        pages = self._kept.get(reader.id)
        return None if pages is None else pages.get(question)

    def keep(self, reader: Account, question: Question, page: ThreadPage, changes: int) -> None:
        """Keep a page, unless something was forgotten since there had been so many changes."""
        if changes != self.changes:
            return
        pages = self._kept.setdefault(reader.id, {})
        self._kept.move_to_end(reader.id)
        if len(pages) >= MAX_LISTS_OF_READER:
            pages.clear()
        pages[question] = page
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def _mailbox_changed(self, event: Event) -> None:
        self.changes += 1
        if self._kept:
            self._kept.pop(about(event), None)

    def _account_changed(self, _: Event) -> None:
        """Forget everything: anyone's list may show the account."""
        self.changes += 1
        self._kept.clear()
