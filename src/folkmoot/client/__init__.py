"""The client library for agents: join a *room*, and offer tools in it; or ask a *hub* anything.

A `Room` is entered with `async with`. It uses a *link* to the hub. If the link is lost, the
*session* opens another and resumes from its *position*, without gaps or duplicates. Sent messages
wait in the *outbox* until the hub has stored them. Received messages first go to the *receiver*,
which looks for answers, proposals and calls to the tools, and then wait in the *inbox* for `async
for`. The *verbs* are the actions in a room, and a *service* answers calls to the tools.

A `Hub` has a method for each route of the hub's REST interface: mail, people, accounts, rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from folkmoot.lazy_packages import loading

if TYPE_CHECKING:
    from folkmoot.client.asks import Asks
    from folkmoot.client.hub import Hub
    from folkmoot.client.link import Backoff
    from folkmoot.client.model import (
        Gap,
        Invitation,
        Me,
        Message,
        OfferedTool,
        OpenProposal,
        OpenRequest,
        Participant,
        Progress,
        ToolResult,
        Waiting,
    )
    from folkmoot.client.pending import Outcome, Proposal
    from folkmoot.client.room import Room
    from folkmoot.client.tools import Context, Tool
else:
    __getattr__ = loading(
        __name__,
        {
            "link": "Backoff",
            "asks": "Asks",
            "hub": "Hub",
            "model": "Gap Invitation Me Message OfferedTool OpenProposal OpenRequest Participant "
            "Progress ToolResult Waiting",
            "pending": "Outcome Proposal",
            "room": "Room",
            "tools": "Context Tool",
        },
    )

__all__ = [
    "AnswerInvalid",
    "AnswerLost",
    "Asks",
    "AuthenticationRequired",
    "Backoff",
    "CapabilityDenied",
    "Context",
    "FolkmootError",
    "Gap",
    "Hub",
    "HubUnreachable",
    "Invitation",
    "Me",
    "Message",
    "OfferedTool",
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
