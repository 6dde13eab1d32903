"""Proposals in the live view: which wait, who may decide, and the request that fulfils one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from folkmoot.cli.limits import MAX_PROPOSALS, MAX_TOLD
from folkmoot.cli.room.messages import Look, look, words
from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, capability
from folkmoot.core.kindcheck import effective
from folkmoot.core.kinds import parse
from folkmoot.core.message import JSONRPC


class Holder(Struct, eq=False):
    """Someone in a room; `held` answers the capabilities they hold at the moment."""

    held: Callable[[], tuple[Any, ...]]
    _known: tuple[Any, ...] | None = None
    _rights: Rights | None = None

    def may(self, kind: str, payload: dict[str, Any] | None = None, to: Sequence[str] = ()) -> bool:
        """Whether a message of a kind would be allowed; without `to`, to anyone."""
        rights = self._current()
        if rights is None:
            return True
        try:
            parsed = parse(kind)
            if parsed.protocol == "mcp" and payload is not None:
                parsed = effective(parsed, payload)
        except e.FolkmootError:
            return True
        return rights.allows(parsed, payload, to) or (not to and rights.may_allow(parsed))

    def may_some(self, pattern: str) -> bool:
        """Whether something of what a pattern matches might be allowed."""
        rights = self._current()
        if rights is None:
            return True
        wanted = capability(pattern)
        held = map(capability, rights)
        return any(not one.denies and one.intersects(wanted) for one in held)

    def _current(self) -> Rights | None:
        held = self.held()
        if held is not self._known:
            self._known = held
            self._rights = None
            if len(held) < MAX_TOLD:
                with suppress(e.FolkmootError):
                    self._rights = Rights(held)
        return self._rights


def doer(proposal: Mapping[str, Any], chosen: str | None) -> str | None:
    """The participant to fulfil a proposal: the chosen one, or the only one it names."""
    named = words(proposal.get("to"))
    return chosen or (named[0] if len(named) == 1 else None)


def fulfilment(proposal: Mapping[str, Any], target: str, request_id: str) -> dict[str, Any]:
    """The members of a request that is equal to the proposal and correlates it."""
    payload = proposal.get("payload")
    asked = payload if type(payload) is dict else {}
    request = {"jsonrpc": JSONRPC, "id": request_id, "method": asked.get("method")}
    if "params" in asked:
        request["params"] = asked["params"]
    return {
        "kind": str(proposal.get("kind", "")).replace("mcp.proposal.", "mcp.request.", 1),
        "to": [target],
        "correlation_id": [proposal.get("id")],
        "payload": request,
    }


PROPOSAL: Final = "mcp.proposal."
REQUEST: Final = "mcp.request."
REJECT: Final = "mcpx.reject.proposal"
CLOSERS: Final = (
    "mcpx.withdraw.proposal",
    "system.proposal.expired",
    "system.proposal.withdrawn",
)


class WaitingProposal(Struct, frozen=True):
    """A proposal that waits for a decision."""

    envelope: Mapping[str, Any]
    look: Look

    @property
    def id(self) -> str:
        """How the hub calls it."""
        return str(self.envelope.get("id"))


class WaitingProposals:
    """The open proposals of others in order of arrival, and the one being shown.

    Only those that one may approve or reject count, as `holder` holds rights at the moment.
    """

    def __init__(self, me: str, quorum: int = 1, holder: Holder | None = None) -> None:
        self.me = me
        self._holder = holder or Holder(lambda: ("*",))
        self.quorum = quorum
        self.shown: WaitingProposal | None = None
        self._waiting: dict[str, WaitingProposal] = {}
        self._mine: dict[str, WaitingProposal] = {}
        self._rejected: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[WaitingProposal]:
        return (it for it in self._waiting.values() if self.may_approve(it) or self.may_reject())

    @property
    def all(self) -> Iterable[WaitingProposal]:
        """All open proposals of others, whether or not the user may decide on them."""
        return self._waiting.values()

    def may_approve(self, proposal: WaitingProposal) -> bool:
        """Whether one may send the request that was proposed."""
        whom = doer(proposal.envelope, None)
        made = fulfilment(proposal.envelope, whom or "", "")
        return self._holder.may(made["kind"], made["payload"], (whom,) if whom else ())

    def may_reject(self) -> bool:
        """Whether one may say no to proposals."""
        return self._holder.may(REJECT, {"reason": "…"})

    @property
    def mine(self) -> Iterable[WaitingProposal]:
        """The user's own open proposals."""
        return self._mine.values()

    def see(self, envelope: Mapping[str, Any]) -> None:
        """Update the proposals from one message of the room."""
        kind = str(envelope.get("kind", ""))
        if kind.startswith(PROPOSAL):
            self._add(envelope)
        elif kind == REJECT:
            self._reject(envelope)
        elif kind in CLOSERS or kind.startswith(REQUEST):
            for id_ in words(envelope.get("correlation_id")):
                self._close(id_)

    def next(self) -> WaitingProposal | None:
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
        if type(id_) is str and len(proposals) < MAX_PROPOSALS:
            proposals.setdefault(id_, WaitingProposal(envelope, look(envelope)))

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


def numbered(proposals: Iterable[WaitingProposal], number: str) -> WaitingProposal | None:
    """The one of some proposals that has a number."""
    return next((each for each in proposals if number == str(each.look.seq)), None)
