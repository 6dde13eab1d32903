"""What waits for a participant: open requests to it, and open proposals that it may decide on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any, Final, Literal, TypeAlias

from folkmoot.core.capability import Rights
from folkmoot.core.kinds import parse
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.proposals import Proposal, Proposals, State
from folkmoot.rooms.machine.requests import OpenRequest, Requests
from folkmoot.rooms.machine.wire import moment

Step: TypeAlias = Literal["approve", "reject"]
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
    """An open request, as the one who was asked is told of it."""
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
    """An open proposal, as those are told of it who may decide."""
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
    """The open proposals of others that someone may fulfil or reject."""
    for one in takewhile(lambda each: each.state is State.OPEN, proposals):
        if one.proposer != member.account and decidable(
            member.rights, member.account, one.kind, one.to, one.rejected_by
        ):
            yield one


def decidable(
    rights: Rights, account: str, kind: str, to: Sequence[str], rejected_by: Collection[str]
) -> tuple[Step, ...]:
    """What an account may decide about an open proposal of another's, as far as its kind tells."""
    may: list[Step] = []
    asked = f"mcp.request{kind.removeprefix('mcp.proposal')}"
    if rights.may_allow(parse(asked), to):
        may.append("approve")
    if account not in rejected_by and rights.may_allow(_REJECT):
        may.append("reject")
    return tuple(may)
