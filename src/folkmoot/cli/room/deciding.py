"""Which proposals wait for a decision, as far as the stream of messages tells, and which is shown.

Whoever decides looks at one proposal at a time, and what they decide is about that one: another
that arrives in the same moment changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from folkmoot.cli.room.fulfilment import doer, fulfilment
from folkmoot.cli.room.look import Look, look, words
from folkmoot.cli.room.rights import Holder

MOST: Final = 1_000
PROPOSAL: Final = "mcp.proposal."
REQUEST: Final = "mcp.request."
REJECT: Final = "mcpx.reject.proposal"
CLOSERS: Final = (
    "mcpx.withdraw.proposal",
    "system.proposal.expired",
    "system.proposal.withdrawn",
)


class Waiting(Struct, frozen=True):
    """A proposal that waits for a decision."""

    envelope: Mapping[str, Any]
    look: Look

    @property
    def id(self) -> str:
        """How the hub calls it."""
        return str(self.envelope.get("id"))


class Deciding:
    """The proposals of others that wait, in the order they came, and the one that is shown.

    Only those that one may approve or reject count, as `holder` holds rights at the moment.
    """

    def __init__(self, me: str, quorum: int = 1, holder: Holder | None = None) -> None:
        self.me = me
        self._holder = holder or Holder(lambda: ("*",))
        self.quorum = quorum
        self.shown: Waiting | None = None
        self._waiting: dict[str, Waiting] = {}
        self._mine: dict[str, Waiting] = {}
        self._rejected: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Waiting]:
        return (it for it in self._waiting.values() if self.may_approve(it) or self.may_reject())

    @property
    def all(self) -> Iterable[Waiting]:
        """All proposals of others that wait, whoever may decide on them."""
        return self._waiting.values()

    def may_approve(self, proposal: Waiting) -> bool:
        """Whether one may send the request that was proposed."""
        whom = doer(proposal.envelope, None)
        made = fulfilment(proposal.envelope, whom or "", "")
        return self._holder.may(made["kind"], made["payload"], (whom,) if whom else ())

    def may_reject(self) -> bool:
        """Whether one may say no to proposals."""
        return self._holder.may(REJECT, {"reason": "…"})

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
        ids = [it.id for it in self]
        if not ids:
            self.shown = None
            return None
        place = ids.index(self.shown.id) + 1 if self.shown and self.shown.id in ids else 0
        self.shown = self._waiting[ids[place % len(ids)]]
        return self.shown

    def place(self) -> int:
        """Which of those that wait is shown, counted from 1."""
        ids = [it.id for it in self]
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
