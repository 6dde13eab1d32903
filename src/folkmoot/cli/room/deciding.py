"""Which proposals wait for a decision, as far as the stream of messages tells, and which is shown.

Whoever decides looks at one proposal at a time, and what they decide is about that one: another
that arrives in the same moment changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from folkmoot.cli.room.look import Look, look, words

MOST: Final = 1_000
PROPOSAL: Final = "mcp.proposal."
REQUEST: Final = "mcp.request."
REJECT: Final = "mcpx.reject.proposal"
CLOSERS: Final = ("mcpx.withdraw.proposal", "system.proposal.expired")


class Waiting(Struct, frozen=True):
    """A proposal that waits for a decision."""

    envelope: Mapping[str, Any]
    look: Look

    @property
    def id(self) -> str:
        """How the hub calls it."""
        return str(self.envelope.get("id"))


class Deciding:
    """The proposals of others that wait, in the order they came, and the one that is shown."""

    def __init__(self, me: str, quorum: int = 1) -> None:
        self.me = me
        self.quorum = quorum
        self.shown: Waiting | None = None
        self._waiting: dict[str, Waiting] = {}
        self._mine: dict[str, Waiting] = {}
        self._rejected: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting.values())

    @property
    def mine(self) -> Iterable[Waiting]:
        """One's own proposals that wait for others."""
        return self._mine.values()

    def see(self, envelope: Mapping[str, Any]) -> None:
        """Take note of a message, whatever it is."""
        kind = str(envelope.get("kind", ""))
        if kind.startswith(PROPOSAL):
            self._add(envelope)
        elif kind == REJECT:
            self._reject(envelope)
        elif kind in CLOSERS or kind.startswith(REQUEST):
            for id_ in words(envelope.get("correlation_id")):
                self._close(id_)

    def next(self) -> Waiting | None:
        """Show the one after the one that is shown; after the last, the first."""
        ids = list(self._waiting)
        if not ids:
            self.shown = None
            return None
        place = ids.index(self.shown.id) + 1 if self.shown and self.shown.id in ids else 0
        self.shown = self._waiting[ids[place % len(ids)]]
        return self.shown

    def place(self) -> int:
        """Which of those that wait is shown, counted from 1."""
        ids = list(self._waiting)
        return ids.index(self.shown.id) + 1 if self.shown and self.shown.id in ids else 0

    def hide(self) -> None:
        """Show none."""
        self.shown = None

    def _add(self, envelope: Mapping[str, Any]) -> None:
        id_ = envelope.get("id")
        proposals = self._mine if envelope.get("from") == self.me else self._waiting
        if type(id_) is str and len(proposals) < MOST:
            proposals.setdefault(id_, Waiting(envelope, look(envelope)))

    def _reject(self, envelope: Mapping[str, Any]) -> None:
        who = str(envelope.get("from"))
        for id_ in words(envelope.get("correlation_id")):
            if id_ not in self._waiting and id_ not in self._mine:
                continue
            rejected = self._rejected.setdefault(id_, set())
            rejected.add(who)
            if who == self.me or len(rejected) >= self.quorum:
                self._close(id_)

    def _close(self, id_: str) -> None:
        self._waiting.pop(id_, None)
        self._mine.pop(id_, None)
        self._rejected.pop(id_, None)
        if self.shown is not None and self.shown.id == id_:
            self.shown = None


def numbered(proposals: Iterable[Waiting], number: str) -> Waiting | None:
    """The one of some proposals that has a number."""
    return next((each for each in proposals if number == str(each.look.seq)), None)
