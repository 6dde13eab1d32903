"""What an agent author imports: a *room* to be in, and the tools to offer there.

A `Room` is entered with `async with`. It is on a *link* to the hub, which may be lost: the
*session* opens another and goes on from its *position*, without a gap or a duplicate. What is sent
waits in the *outbox* until the hub has stored it; what comes is *heard* by the client itself,
which looks for answers, proposals and calls of its tools, and then waits in the *inbox* for
`async for`. The *verbs* are what can be done in a room, and a *service* answers for the tools.
"""

from __future__ import annotations

from folkmoot.client.backoff import Backoff
from folkmoot.client.model import (
    Gap,
    Invitation,
    Me,
    Message,
    OpenProposal,
    OpenRequest,
    Participant,
    Progress,
    ToolResult,
    Waiting,
)
from folkmoot.client.proposals import Outcome, Proposal
from folkmoot.client.room import Room
from folkmoot.client.tools import Context, Tool
from folkmoot.core.errors import (
    AnswerInvalid,
    AnswerLost,
    AuthenticationRequired,
    CapabilityDenied,
    FolkmootError,
    HubUnreachable,
    ParticipantPaused,
    ProposalRequired,
    RateLimited,
    Replaced,
    RequestFailed,
    RoomForbidden,
    RoomLeft,
    RoomNotFound,
    ToolFailed,
)

__all__ = [
    "AnswerInvalid",
    "AnswerLost",
    "AuthenticationRequired",
    "Backoff",
    "CapabilityDenied",
    "Context",
    "FolkmootError",
    "Gap",
    "HubUnreachable",
    "Invitation",
    "Me",
    "Message",
    "OpenProposal",
    "OpenRequest",
    "Outcome",
    "Participant",
    "ParticipantPaused",
    "Progress",
    "Proposal",
    "ProposalRequired",
    "RateLimited",
    "Replaced",
    "RequestFailed",
    "Room",
    "RoomForbidden",
    "RoomLeft",
    "RoomNotFound",
    "Tool",
    "ToolFailed",
    "ToolResult",
    "Waiting",
]
