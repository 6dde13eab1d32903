"""Proposals: requests for others to act, and the one outcome of each.

    open ── a request equal to it, by another ──→ fulfilled
         ── rejections, as many as the quorum ──→ rejected
         ── the proposer takes it back ─────────→ withdrawn
         ── the proposer is kicked or gone ─────→ withdrawn
         ── its time is over ───────────────────→ expired

A proposal that is no longer open never changes again. What is proposed is kept as a digest: equal
digests are equal values, types included, whatever the order of members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from hashlib import sha256
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.entity import Entity
from folkmoot.core.kinds import parse
from folkmoot.rooms.limits import RoomBounds
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.requests import OpenRequest, Requests
from folkmoot.rooms.machine.wire import moment

if TYPE_CHECKING:
    from folkmoot.rooms.machine.state import Deadlines


class ProposalStatus(Enum):
    """Where a proposal stands."""

    OPEN = "open"
    FULFILLED = "fulfilled"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


Step: TypeAlias = Literal["fulfil", "reject", "withdraw", "kick", "expire"]
Who: TypeAlias = Literal["proposer", "others", "gateway"]


class Transition(msgspec.Struct, frozen=True):
    """One row of the table: who may take the step, and where it leads from open."""

    by: Who
    leads_to: ProposalStatus


TRANSITIONS: Final[dict[Step, Transition]] = {
    "fulfil": Transition("others", ProposalStatus.FULFILLED),
    "reject": Transition("others", ProposalStatus.REJECTED),
    "withdraw": Transition("proposer", ProposalStatus.WITHDRAWN),
    "kick": Transition("gateway", ProposalStatus.WITHDRAWN),
    "expire": Transition("gateway", ProposalStatus.EXPIRED),
}
"""Every step there is; each is taken from open, and from nowhere else."""


class Proposal(msgspec.Struct):
    """A proposal and its state."""

    id: str
    seq: int
    kind: str
    """The effective kind."""
    digest: bytes
    proposer: str
    proposer_name: str
    to: tuple[str, ...]
    at: float
    deadline: float
    state: ProposalStatus = ProposalStatus.OPEN
    rejected_by: tuple[str, ...] = ()
    closed_by: str | None = None
    closed_at: float | None = None
    is_trimmed: bool = False
    """Whether the history no longer has its message, so that nobody can see what it asks for."""


class Proposals(Entity):
    """The open proposals of a room, and the latest that are closed."""

    bounds: RoomBounds
    deadlines: Deadlines
    _open: dict[str, Proposal] = {}
    _closed: dict[str, Proposal] = {}
    _proposing: dict[str, int] = {}

    def __iter__(self) -> Iterator[Proposal]:
        """All remembered proposals, open ones first."""
        yield from self._open.values()
        yield from self._closed.values()

    def open_of(self, proposer: str) -> list[Proposal]:
        """The open proposals of an account."""
        return [one for one in self._open.values() if one.proposer == proposer]

    def get(self, id_: str) -> Proposal | None:
        """The proposal with an id, open or closed."""
        return self._open.get(id_) or self._closed.get(id_)

    def trim(self, oldest_seq: int, ids: Collection[str]) -> None:
        """Messages before the oldest, and those with these ids, are gone."""
        for one in self._open.values():
            one.is_trimmed = one.is_trimmed or one.seq < oldest_seq or one.id in ids

    def check_new(self, proposer: str, id_: str | None = None) -> None:
        """Refuse one proposal too many, or one that would stand in place of another."""
        if id_ is not None and self.get(id_) is not None:
            raise e.IdUsed("Another proposal of the room has this id.")
        if (
            len(self._open) >= self.bounds.open_proposals
            or self._proposing.get(proposer, 0) >= self.bounds.open_proposals_each
        ):
            raise e.TooManyOpen("Too many proposals are open.")

    def open(self, proposal: Proposal) -> None:
        """Remember a proposal, open or closed."""
        if proposal.state is not ProposalStatus.OPEN:
            self._remember(proposal)
            return
        self._open[proposal.id] = proposal
        self._proposing[proposal.proposer] = self._proposing.get(proposal.proposer, 0) + 1
        self.deadlines.set("proposal", proposal.id, proposal.deadline)

    def check(self, step: Step, id_: str, account: str, now: float) -> Proposal:
        """The open proposal a step is about, if this account may take it."""
        proposal = self.get(id_)
        if proposal is None:
            raise e.ProposalUnknown("There is no such proposal in the room.")
        own = proposal.proposer == account
        match TRANSITIONS[step].by:
            case "others" if own:
                raise e.ProposalOwn("You can withdraw your own proposal, not decide on it.")
            case "proposer" if not own:
                raise e.ProposalNotOwn("Only the proposer can withdraw a proposal.")
        if proposal.state is not ProposalStatus.OPEN or now >= proposal.deadline:
            state = (
                ProposalStatus.EXPIRED if proposal.state is ProposalStatus.OPEN else proposal.state
            )
            raise e.ProposalClosed(f"The proposal is already {state.value}.", state=state.value)
        if step == "reject" and account in proposal.rejected_by:
            raise e.RejectedAlready("You have already rejected this proposal.")
        return proposal

    def check_fulfilment(
        self, id_: str, account: str, to: str, payload: dict[str, Any], now: float
    ) -> Proposal:
        """The open proposal a request fulfils; a request that differs is refused."""
        proposal = self.check("fulfil", id_, account, now)
        if digest(payload) != proposal.digest:
            raise e.ProposalAltered(
                "The request is not equal to the proposal in method and params."
            )
        if proposal.to and to not in proposal.to:
            raise e.ProposalAltered("The proposal names a different recipient.", to=proposal.to)
        return proposal

    def take(
        self, step: Step, proposal: Proposal, account: str | None, at: float, quorum: int
    ) -> ProposalStatus:
        """Take a step that was checked; where it leaves the proposal."""
        if step == "reject" and account is not None:
            proposal.rejected_by = (*proposal.rejected_by, account)
            if len(proposal.rejected_by) < quorum:
                return proposal.state
        proposal.state = TRANSITIONS[step].leads_to
        proposal.closed_by, proposal.closed_at = account, at
        del self._open[proposal.id]
        self.deadlines.drop("proposal", proposal.id)
        self._proposing[proposal.proposer] -= 1
        if not self._proposing[proposal.proposer]:
            del self._proposing[proposal.proposer]
        self._remember(proposal)
        return proposal.state

    def _remember(self, proposal: Proposal) -> None:
        self._closed[proposal.id] = proposal
        if len(self._closed) > self.bounds.closed_proposals:
            del self._closed[next(iter(self._closed))]


def digest(payload: dict[str, Any]) -> bytes:
    """What a fulfilment must have in common with its proposal: method and params, exactly.

    The progress token is the requester's own affair, so it is left out, and an empty `_meta` with
    it.
    """
    params = payload.get("params", {})
    meta = params.get("_meta")
    if type(meta) is dict and (not meta or "progressToken" in meta):
        rest = {name: value for name, value in meta.items() if name != "progressToken"}
        params = {name: value for name, value in params.items() if name != "_meta"}
        if rest:
            params["_meta"] = rest
    return sha256(msgspec.json.encode([payload["method"], params], order="sorted")).digest()


def expiry(payload: dict[str, Any], room_seconds: float) -> float:
    """How many seconds a proposal stays open: the room's, or fewer if the proposer says so."""
    asked = payload.get("expires_in")
    if asked is None:
        return room_seconds
    if type(asked) not in (int, float) or asked <= 0:
        raise e.PayloadInvalid('"payload.expires_in" must be a positive number of seconds.')
    return float(min(asked, room_seconds))


Choice: TypeAlias = Literal["approve", "reject"]
"""What someone who did not make a proposal may decide."""

_REJECT: Final = parse("mcpx.reject.proposal")


def waiting(requests: Requests, proposals: Proposals, member: Member, most: int) -> dict[str, Any]:
    """Both, as a welcome tells of them: the oldest first, and whether there are more."""
    asked = requests.asked(member.account)
    found = [*islice(decidable_by(proposals, member), most + 1)]
    return {
        "requests": [shown_request(requests, one) for one in asked[:most]],
        "proposals": [shown_proposal(one) for one in found[:most]],
        "more": len(asked) > most or len(found) > most,
    }


def shown_request(requests: Requests, request: OpenRequest) -> dict[str, Any]:
    """An open request for the participant who was asked."""
    shown: dict[str, Any] = {
        "id": request.id,
        "seq": request.seq,
        "kind": request.kind,
        "requester": request.requester_name,
        "state": requests.standing(request),
        "expires_at": moment(request.deadline),
    }
    return shown if request.proposer_name is None else {**shown, "proposer": request.proposer_name}


def shown_proposal(proposal: Proposal) -> dict[str, Any]:
    """An open proposal for those who may decide on it."""
    return {
        "id": proposal.id,
        "seq": proposal.seq,
        "kind": proposal.kind,
        "proposer": proposal.proposer_name,
        "to": proposal.to,
        "expires_at": moment(proposal.deadline),
        "rejections": len(proposal.rejected_by),
    }


def decidable_by(proposals: Proposals, member: Member) -> Iterator[Proposal]:
    """The open proposals of others that someone may fulfil or reject, and can read."""
    for one in takewhile(lambda each: each.state is ProposalStatus.OPEN, proposals):
        if one.proposer == member.account or one.is_trimmed:
            continue
        if decidable(member.rights, member.account, one.kind, one.to, one.rejected_by):
            yield one


def decidable(
    rights: Rights, account: str, kind: str, to: Sequence[str], rejected_by: Collection[str]
) -> tuple[Choice, ...]:
    """What an account may decide about an open proposal of another's, as far as its kind tells."""
    may: list[Choice] = []
    asked = f"mcp.request{kind.removeprefix('mcp.proposal')}"
    if rights.may_allow(parse(asked), to):
        may.append("approve")
    if account not in rejected_by and rights.may_allow(_REJECT):
        may.append("reject")
    return tuple(may)
