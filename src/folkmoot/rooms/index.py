"""The tables about rooms as a whole: open proposals, grants and decisions.

With it, what waits for someone in all their rooms is one query, and no room is loaded for it. It is
written with the messages that change it, in their transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot import decisions
from folkmoot.core.entity import Entity
from folkmoot.decisions import WAITING, NewDecision
from folkmoot.mcp.wire import CANCELLED
from folkmoot.rooms.machine import GUEST, Append, Proposal, ProposalStatus, Room
from folkmoot.rooms.model import RoomId

if TYPE_CHECKING:
    from folkmoot.core.ports import SqlValue, Tx, Unit
    from folkmoot.rooms.model import RoomId


PROPOSED: Final = "mcp.proposal"
REJECTED: Final = "mcpx.reject."
CLOSING: Final = (REJECTED, "mcpx.withdraw.", "system.proposal.")
FULFILLING: Final = "mcp.request"
CORRELATED: Final = b'"correlation_id"'
"""A request that names what it correlates with may fulfil a proposal."""
CANCELLATION: Final = f"mcp.notification.{CANCELLED}"
ANSWERING: Final = ("mcp.response", CANCELLATION)
GRANTING: Final = ("capability.", "room.kick")
INDEXED: Final = (PROPOSED, *CLOSING, FULFILLING, *ANSWERING, *GRANTING)
"""How all kinds begin that may change the index."""

Statement: TypeAlias = "tuple[str, Sequence[SqlValue]]"

_LIST: Final = (
    "INSERT INTO room_proposals (room_id, id, seq, kind, proposer, recipients, rejected_by, at, "
    "until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (room_id, id) DO UPDATE SET "
    "rejected_by = excluded.rejected_by"
)
_UNLIST: Final = "DELETE FROM room_proposals WHERE room_id = ? AND id = ?"
_CLOSED: Final = (
    "UPDATE decisions SET outcome = ?, ended_at = ? "
    "WHERE room_id = ? AND about = ? AND decision = 'rejected' AND ended_at IS NULL"
)
_ANSWERED: Final = (
    "UPDATE decisions SET outcome = ?, ended_at = ? WHERE room_id = ? AND about = ? AND id = ?"
)
_GRANT: Final = (
    "INSERT INTO room_grants (room_id, account_id, capabilities) "
    "SELECT r.id, u.id, ? FROM rooms r CROSS JOIN users u WHERE r.id = ? AND u.id = ?"
)


class Correlated(Struct, gc=False):
    """The members of a message that the index is made of."""

    correlation_id: list[str] | str = ()  # type: ignore[assignment]
    payload: Any = None

    @property
    def about(self) -> list[str]:
        """The ids of the messages it refers to."""
        named = self.correlation_id
        return [named] if isinstance(named, str) else list(dict.fromkeys(named))


correlated = msgspec.json.Decoder(Correlated).decode
_json = msgspec.json.Encoder().encode


async def read_waiting(tx: Tx, room_id: RoomId) -> dict[str, str]:
    """The requests that fulfil a proposal and are not answered, and which proposal."""
    rows = await tx.fetch(
        "SELECT id, about FROM decisions WHERE room_id = ? AND outcome = ?", (room_id, WAITING)
    )
    return dict(rows)


class RoomIndex(Entity):
    """The index of one stored room; it asks the machine how things are by now."""

    room_id: RoomId
    machine: Room
    waiting: dict[str, str]

    def unit(self, appends: Sequence[Append], *, altered: bool = False) -> Unit[None] | None:
        """The changes that messages about to be stored make; None without any.

        The machine is where they bring it. It is `altered` where no message tells of a change.
        """
        statements: list[Statement] = []
        changed: dict[str, None] = {}
        regrant = altered
        # Most messages are chat, of few kinds.
        indexed = {kind for kind in {one.kind for one in appends} if kind.startswith(INDEXED)}
        for one in appends if indexed else ():
            kind = one.kind
            if kind not in indexed:
                continue
            if kind.startswith(PROPOSED):
                changed[one.id] = None
            elif kind.startswith(CLOSING):
                about = correlated(one.data)
                changed.update(dict.fromkeys(about.about))
                if kind.startswith(REJECTED):
                    statements += self._rejected(one, about)
            elif kind.startswith(FULFILLING):
                if CORRELATED in one.data:
                    statements += self._fulfilled(one, correlated(one.data).about, changed)
            elif self.waiting and kind.startswith(ANSWERING):
                statements += self._answered(one)
            elif kind.startswith(GRANTING):
                regrant = True
        for id_ in changed:
            statements += self._state_of(id_)
        if regrant:
            statements += self._grants()
        return _unit(statements) if statements else None

    def _rejected(self, one: Append, about: Correlated) -> Iterable[Statement]:
        reason = about.payload.get("reason") if isinstance(about.payload, dict) else None
        for proposal in filter(None, map(self.machine.proposal, about.about)):
            noted = self._noted(one, proposal, "rejected", ProposalStatus.OPEN.value)
            said = reason if isinstance(reason, str) else None
            yield decisions.INSERT, msgspec.structs.replace(noted, reason=said).params

    def _fulfilled(
        self, one: Append, about: Collection[str], changed: dict[str, None]
    ) -> Iterable[Statement]:
        for proposal in filter(None, map(self.machine.proposal, about)):
            changed[proposal.id] = None
            if proposal.state is ProposalStatus.FULFILLED and proposal.closed_at == one.at:
                self.waiting[one.id] = proposal.id
                noted = self._noted(one, proposal, "approved", WAITING)
                yield decisions.INSERT, noted.params

    def _noted(self, one: Append, proposal: Proposal, decision: Any, outcome: str) -> NewDecision:
        return NewDecision(
            account=one.account or "",
            id=one.id,
            at=one.at,
            kind="proposal",
            decision=decision,
            about=proposal.id,
            what=proposal.kind.removeprefix(f"{PROPOSED}."),
            room_id=self.room_id,
            seq=one.seq,
            asked_by=proposal.proposer,
            outcome=outcome,
        )

    def _answered(self, one: Append) -> Iterable[Statement]:
        said = correlated(one.data)
        for request in said.about:
            proposal = self.waiting.pop(request, None)
            if proposal is not None:
                outcome = _outcome(one.kind, said.payload)
                yield _ANSWERED, (outcome, one.at, self.room_id, proposal, request)

    def _state_of(self, id_: str) -> Iterable[Statement]:
        proposal = self.machine.proposal(id_)
        if proposal is None:
            yield _UNLIST, (self.room_id, id_)
        elif proposal.state is ProposalStatus.OPEN:
            yield self._list(proposal)
        else:
            yield _UNLIST, (self.room_id, id_)
            yield _CLOSED, (proposal.state.value, proposal.closed_at, self.room_id, id_)

    def _list(self, one: Proposal) -> Statement:
        return _LIST, (
            self.room_id,
            one.id,
            one.seq,
            one.kind,
            one.proposer,
            _json(one.to).decode(),
            _json(one.rejected_by).decode(),
            one.at,
            one.deadline,
        )

    def _grants(self) -> Iterable[Statement]:
        yield "DELETE FROM room_grants WHERE room_id = ?", (self.room_id,)
        for account, capabilities in _granted(self.machine).items():
            yield _GRANT, (capabilities, self.room_id, account)


def _granted(machine: Room) -> dict[str, str]:
    """The grants of accounts as stored; guests have one room, so theirs are not."""
    held: dict[str, list[Any]] = {}
    for grant in machine.grants():
        if not grant.recipient.startswith(GUEST):
            held.setdefault(grant.recipient, []).extend(grant.capabilities)
    return {account: _json(capabilities).decode() for account, capabilities in held.items()}


def _outcome(kind: str, payload: Any) -> str:
    if kind.startswith(CANCELLATION):
        return "cancelled"
    said: Mapping[str, Any] = payload if isinstance(payload, dict) else {}
    result = said.get("result")
    failed = "error" in said or (isinstance(result, dict) and result.get("isError") is True)
    return "failed" if failed else "answered"


def _unit(statements: Sequence[Statement]) -> Unit[None]:
    async def unit(tx: Tx) -> None:
        for sql, params in statements:
            await tx.execute(sql, params)

    return unit
