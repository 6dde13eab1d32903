"""The table of all operations: the routes are made from it, the document, and its page."""

from __future__ import annotations

from typing import Final

from folkmoot.core.errors import (
    ERRORS,
    ArgumentInvalid,
    BackendUnknown,
    BlockedByInterceptor,
    CapabilityDenied,
    CapabilityError,
    InvalidEnvelope,
    InvitationInvalid,
    KindError,
    NameRefused,
    ParticipantPaused,
    PayloadInvalid,
    ProposalAltered,
    ProposalClosed,
    ProposalOwn,
    ProposalRequired,
    ProposalUnknown,
    RateLimited,
    RecipientInvalid,
    RecipientUnknown,
    RejectedAlready,
    RequestTimedOut,
    RoomError,
    RoomFull,
    RoomNameInvalid,
    RoomNameTaken,
    TargetLeft,
    TooManyConnections,
    TooManyOpen,
    TooManyRooms,
    UnsupportedProtocol,
    UserNotFound,
)
from folkmoot.rooms import MOST_READ, MOST_WAIT
from folkmoot.rooms.directory import MOST_LISTED
from folkmoot.rooms.machine import State
from folkmoot.transports.rest import handlers
from folkmoot.transports.rest.credentials import CREDENTIAL_OPERATIONS
from folkmoot.transports.rest.model import ENVELOPE, Body, Operation, Parameter, Reply, Schema
from folkmoot.transports.rest.paging import LONGEST_CURSOR
from folkmoot.transports.rest.rows import NAMED, ROUTES
from folkmoot.transports.rest.schemas import LARGEST_SEQ, ROOM_NAME

NAME: Final = Parameter("name", {"type": "string", "pattern": ROOM_NAME}, "The room's name.")
ID: Final = Parameter(
    "id", {"type": "string", "minLength": 1, "maxLength": 128}, "The id of the proposal."
)
CREDENTIAL: Final = Parameter(
    "credential", {"type": "string", "minLength": 1, "maxLength": 64}, "The id of the token."
)
_SEQ: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": LARGEST_SEQ}


def _limit(default: int, most: int) -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter("limit", schema, "How many at most.")


def _wait(default: int, says: str) -> Parameter:
    most = int(MOST_WAIT)
    schema = {"type": "integer", "minimum": 0, "maximum": most, "default": default}
    return Parameter("wait", schema, says)


CURSOR: Final = Parameter(
    "cursor",
    {"type": "string", "minLength": 1, "maxLength": LONGEST_CURSOR},
    "The `next_cursor` of the page before.",
)

SAID: Final = tuple(
    error
    for error in ERRORS.values()
    if issubclass(
        error,
        (
            UnsupportedProtocol,
            InvalidEnvelope,
            KindError,
            CapabilityError,
            CapabilityDenied,
            ProposalRequired,
            BlockedByInterceptor,
            RoomError,
            RateLimited,
        ),
    )
    and not issubclass(error, (TargetLeft, RequestTimedOut, RoomFull, TooManyConnections))
)
"""What something that is said in a room may be refused with; the rest of its tree comes later."""

DECIDED: Final = (
    ArgumentInvalid,
    PayloadInvalid,
    CapabilityDenied,
    ProposalRequired,
    BlockedByInterceptor,
    NameRefused,
    RateLimited,
    RecipientInvalid,
    RecipientUnknown,
    ProposalUnknown,
    ProposalClosed,
    ProposalOwn,
    ProposalAltered,
    RejectedAlready,
    TooManyOpen,
)
"""What a decision on a proposal may be refused with."""

OPERATIONS: Final[tuple[Operation, ...]] = (
    *ROUTES,
    Operation(
        id="listRooms",
        name="room/list",
        method="GET",
        path="/v1/rooms",
        summary="List the rooms you can see",
        description="Open rooms, invite-only rooms, and private ones you are in.",
        handler=handlers.list_rooms,
        query=(_limit(100, MOST_LISTED), CURSOR),
        reply=Reply(200, "A page of rooms, by name.", "RoomPage"),
        errors=(ArgumentInvalid,),
    ),
    Operation(
        id="createRoom",
        name="room/create",
        method="POST",
        path="/v1/rooms",
        summary="Create a room",
        description="You own it, and have the capability `*` there.",
        handler=handlers.create_room,
        body=Body("RoomSpec", {"name": "planning", "access": "invite"}),
        reply=Reply(201, "The room.", "Room", {"Location": "Where the room is."}),
        errors=(
            ArgumentInvalid,
            BackendUnknown,
            CapabilityError,
            RoomNameInvalid,
            RoomNameTaken,
            TooManyRooms,
            UserNotFound,
        ),
    ),
    Operation(
        id="getRoom",
        name="room/show",
        method="GET",
        path="/v1/rooms/{name}",
        summary="Read a room's settings",
        handler=handlers.get_room,
        reply=Reply(200, "The room.", "Room"),
    ),
    Operation(
        id="changeRoom",
        name="room/change",
        method="PATCH",
        path="/v1/rooms/{name}",
        summary="Change a room's settings",
        description=(
            "For owners. Settings that are left out stay as they are. `capabilities`, `grants`, "
            "`backends` and `owners` are replaced whole; of `policy`, each member that is given."
        ),
        handler=handlers.change_room,
        body=Body("RoomPatch", {"access": "open"}),
        reply=Reply(200, "The room.", "Room"),
        errors=(ArgumentInvalid, BackendUnknown, CapabilityError, TooManyRooms, UserNotFound),
    ),
    Operation(
        id="deleteRoom",
        name="room/delete",
        method="DELETE",
        path="/v1/rooms/{name}",
        summary="Delete a room and its history",
        description="For owners.",
        handler=handlers.delete_room,
        reply=Reply(204, "The room is gone."),
    ),
    Operation(
        id="listParticipants",
        name="room/participants",
        method="GET",
        path="/v1/rooms/{name}/participants",
        summary="List who is here now",
        handler=handlers.participants,
        query=(_limit(100, 1000), CURSOR),
        reply=Reply(200, "A page of participants, by name.", "ParticipantPage"),
        errors=(ArgumentInvalid,),
    ),
    Operation(
        id="readMessages",
        name="room/read",
        method="GET",
        path="/v1/rooms/{name}/messages",
        summary="Read messages",
        description=(
            "In order: with `after` the first messages that follow it, otherwise the last ones. A "
            "page ends early when it comes to more than 1 MiB; one message is always shown."
        ),
        handler=handlers.messages,
        query=(
            Parameter("after", _SEQ, "Only messages with a greater `seq`."),
            Parameter("before", _SEQ, "Only messages with a smaller `seq`."),
            _limit(50, MOST_READ),
            _wait(
                0,
                "Seconds to wait if there is nothing after `after` yet (or without it: new).",
            ),
        ),
        reply=Reply(200, "A page of messages.", "MessagePage"),
    ),
    Operation(
        id="postMessage",
        name="room/post",
        method="POST",
        path="/v1/rooms/{name}/messages",
        summary="Say something",
        description=(
            "One envelope, checked as on a WebSocket and then sent to everyone in the "
            "room. A refusal has the content of `system.error`."
        ),
        handler=handlers.post_message,
        body=Body(
            ENVELOPE,
            {"protocol": "mcpx/v1", "kind": "chat.message", "payload": {"text": "Good morning!"}},
        ),
        is_message=True,
        reply=Reply(201, "The message as everyone gets it.", "Message"),
        errors=SAID,
    ),
    Operation(
        id="listProposals",
        name="room/proposals",
        method="GET",
        path="/v1/rooms/{name}/proposals",
        summary="List proposals and their outcomes",
        handler=handlers.proposals,
        query=(
            Parameter(
                "state",
                {"type": "string", "enum": [state.value for state in State]},
                "Only those in this state.",
            ),
            _limit(100, MOST_LISTED),
            CURSOR,
        ),
        reply=Reply(200, "A page of proposals, the latest first.", "ProposalPage"),
        errors=(ArgumentInvalid,),
    ),
    Operation(
        id="approveProposal",
        name="room/decide",
        method="POST",
        path="/v1/rooms/{name}/proposals/{id}/approve",
        summary="Approve a proposal",
        description=(
            "The request that was proposed is made in your name and by your right to it, and the "
            "answer says what came of it. It needs no body. Where the one who is asked takes "
            "longer than `wait`, the answer has neither `result` nor `error`."
        ),
        handler=handlers.approve,
        query=(
            Parameter(
                "to",
                {"type": "string", "minLength": 1, "maxLength": 128},
                "Who is to do it, where the proposal does not name one.",
            ),
            _wait(20, "Seconds to wait for the answer of the one who is asked."),
        ),
        reply=Reply(200, "What came of it.", "Outcome"),
        errors=DECIDED,
    ),
    Operation(
        id="rejectProposal",
        name="room/decide",
        method="POST",
        path="/v1/rooms/{name}/proposals/{id}/reject",
        summary="Reject a proposal",
        description="Everyone in the room reads the reason.",
        handler=handlers.reject,
        body=Body("Rejection", {"reason": "We still need it."}),
        reply=Reply(200, "What came of it.", "Outcome"),
        errors=DECIDED,
    ),
    # Behind the two above, whose paths begin as this one does.
    Operation(
        id="getProposal",
        name="room/proposals",
        method="GET",
        path="/v1/rooms/{name}/proposals/{id}",
        summary="Read one proposal and what came of it",
        handler=handlers.proposal,
        reply=Reply(200, "The proposal.", "Proposal"),
        errors=(ProposalUnknown,),
    ),
    Operation(
        id="listWaiting",
        name="room/proposals",
        method="GET",
        path="/v1/rooms/{name}/waiting",
        summary="List what waits for you",
        description=(
            "Open requests to you, and open proposals that you may decide on, the oldest first. "
            "A page ends early when it comes to more than 1 MiB; where `more` is true, go on with "
            "`after` the greatest `seq` of it."
        ),
        handler=handlers.waiting,
        query=(
            Parameter("after", {**_SEQ, "default": 0}, "Only what has a greater `seq`."),
            _limit(100, MOST_LISTED),
        ),
        reply=Reply(200, "What waits for you.", "Waiting"),
    ),
    Operation(
        id="invite",
        name="room/invite",
        method="POST",
        path="/v1/rooms/{name}/invites",
        summary="Invite someone",
        description=(
            "By handle, or someone without an account as a guest. It appears in the room "
            "as `room.invite`, and needs that capability; the guest's token is shown to "
            "you alone."
        ),
        handler=handlers.invite,
        body=Body("Invite", {"guest": "grace"}),
        reply=Reply(201, "The invitation.", "Invitation"),
        errors=(
            ArgumentInvalid,
            PayloadInvalid,
            CapabilityDenied,
            CapabilityError,
            ParticipantPaused,
            BlockedByInterceptor,
            NameRefused,
            TooManyOpen,
            UserNotFound,
        ),
    ),
    Operation(
        id="exchangeInvitation",
        name="room/enter_as_guest",
        method="POST",
        path="/v1/rooms/{name}/guests",
        summary="Enter as a guest",
        description=(
            "Exchanges the token of an invitation, once, for a credential that is valid in "
            "this room only. It is used like any other token."
        ),
        handler=handlers.exchange,
        body=Body("GuestToken", {"token": "gi_0123456789abcdef"}),
        reply=Reply(201, "The credential.", "Guest"),
        errors=(ArgumentInvalid, InvitationInvalid, RateLimited),
        public=True,
    ),
    *CREDENTIAL_OPERATIONS,
    Operation(
        id="describe",
        name="folkmoot/openapi",
        method="GET",
        path="/v1/openapi.json",
        summary="Read this document",
        handler=handlers.describe,
        reply=Reply(200, "The document, in OpenAPI 3.1.", "Document"),
        public=True,
    ),
)
"""Every operation, in the order of the page."""


def path_of(operation: Operation) -> list[Parameter]:
    """What the path of an operation names."""
    if operation.row is None:
        named = (
            (NAME, operation.in_room),
            (ID, operation.of_proposal),
            (CREDENTIAL, operation.of_credential),
        )
        return [parameter for parameter, is_there in named if is_there]
    arguments = operation.row.schema["properties"]
    return [
        Parameter(name, ID.schema, arguments[name]["description"])
        for name in NAMED.findall(operation.path)
    ]
