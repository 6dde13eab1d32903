"""What programs read and say in a room: pages of messages and proposals, whole and as stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.strict import Limits
from folkmoot.operations.call import (
    fit_on_page,
    make_cursor,
    read_cursor,
    run_until,
    wrong_cursor,
)
from folkmoot.operations.limits import MAX_CURSOR, MAX_INTEGER, MAX_REASON, MAX_SEARCH
from folkmoot.operations.risks import with_risk
from folkmoot.operations.row import Absent, Arguments, Operation, Route, describe
from folkmoot.rooms.limits import MAX_READ, MAX_WAIT_SECONDS
from folkmoot.rooms.model import (
    NEXT_CURSOR,
    ROOM_PATTERN,
    MessagePage,
    Outcome,
    ProposalState,
    ProposalView,
    WaitingPage,
    ref,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


BODY: Final = Limits(message_bytes=256 * 1024, nesting=16)
"""How much of a message that was refused is read for its kind."""

Group: TypeAlias = Literal[
    "chat", "proposal", "request", "response", "presence", "reasoning", "other"
]

RoomName = Annotated[str, describe("The room's name.", schema={"pattern": ROOM_PATTERN})]
ProposalId = Annotated[str, describe("The id of the proposal.")]
PageCursor = Annotated[
    str, describe("The `next_cursor` of the page before.", min_length=1, max_length=MAX_CURSOR)
]


class ReadHistory(Arguments, frozen=True, kw_only=True):
    """Which part of a room's history."""

    room: RoomName
    after: (
        Annotated[int, describe("Only messages with a greater `seq`.", ge=0, le=MAX_INTEGER)] | None
    ) = None
    before: (
        Annotated[int, describe("Only messages with a smaller `seq`.", ge=0, le=MAX_INTEGER)] | None
    ) = None
    limit: Annotated[int, describe("How many at most.", ge=1, le=MAX_READ)] = 50
    wait: Annotated[
        int,
        describe(
            "Seconds to wait if there is nothing after `after` yet (or without it: new).",
            ge=0,
            le=int(MAX_WAIT_SECONDS),
        ),
    ] = 0
    fold: Annotated[
        bool,
        describe(
            "Count presence and protocol messages, such as `tools/list` and progress, in `folded` "
            "instead of returning them. Not with `wait`."
        ),
    ] = False
    search: (
        Annotated[
            str,
            describe(
                "Only messages with these words, in any case. A search looks back from `before`, "
                "or the end, through some thousand messages; go on with `from_seq` as `before`.",
                min_length=1,
                max_length=MAX_SEARCH,
            ),
        ]
        | None
    ) = None
    sender: (
        Annotated[
            str,
            describe("Only from or to this participant.", min_length=1, max_length=MAX_SEARCH),
        ]
        | None
    ) = None
    kind: Annotated[Group, describe("Only messages of this kind, in one word.")] | None = None
    thread: (
        Annotated[str, describe("Only chat of this thread.", min_length=1, max_length=MAX_SEARCH)]
        | None
    ) = None


async def messages(call: Call[ReadHistory]) -> MessagePage:
    """What was said, in order."""
    from folkmoot.operations.rooms.messages import Sought, search

    rooms, given = call.services.rooms, call.arguments
    sought = Sought(given.search, given.sender, given.kind, given.thread)
    if sought != Sought():
        if given.wait or given.fold or given.after is not None:
            raise e.QueryInvalid("A search cannot be combined with after, wait or fold.")
        return await search(rooms, call.visitor, given.room, sought, given.before, given.limit)
    place: dict[str, Any] = {
        name: getattr(given, name) for name in ("after", "before", "limit", "fold")
    }
    page = None
    if given.wait:
        if given.before is not None or given.fold:
            raise e.QueryInvalid("wait cannot be combined with before or fold.")
        waiting = rooms.messages(call.visitor, given.room, **place, wait=given.wait)
        page = await run_until(call.caller.leaving, waiting)
    return page or await rooms.messages(call.visitor, given.room, **place, wait=0)


class Post(Arguments, frozen=True, kw_only=True):
    """A message as its sender gives it."""

    room: RoomName
    message: Annotated[Raw, describe("The message.", schema=ref("Envelope"))]


class PostedMessage(Struct, frozen=True):
    """A message as everyone in the room receives it."""


async def post(call: Call[Post]) -> Any:
    """Post a message, and return it as everyone receives it."""
    from folkmoot.rooms.machine.wire import readable

    given = call.arguments
    raw = bytes(given.message)
    try:
        stored = await call.services.rooms.post(call.visitor, given.room, raw, admitted=False)
    except e.RoomDoorError:
        raise
    except e.FolkmootError as error:
        # As `system.error` says it on a WebSocket.
        if error.data.get("attempted_kind") is None:
            error.data["attempted_kind"] = readable(raw, BODY)[1]
        raise
    return Raw(stored)


class ProposalsOf(Arguments, frozen=True, kw_only=True):
    """Which proposals of a room."""

    room: RoomName
    state: Annotated[ProposalState, describe("Only those in this state.")] | None = None
    limit: Annotated[int, describe("How many at most.", ge=1, le=100)] = 100
    cursor: PageCursor | None = None


class ProposalPage(Struct, frozen=True):
    """Some proposals."""

    proposals: Annotated[list[ProposalView], describe("The latest first.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR]


async def proposals(call: Call[ProposalsOf]) -> ProposalPage:
    """What was proposed, the latest first."""
    given = call.arguments
    found = await call.services.rooms.proposals(
        call.visitor,
        given.room,
        state=given.state,
        before=_place(given.cursor),
        limit=given.limit + 1,
    )
    page, more = fit_on_page(((with_risk(call, one), _size(one)) for one in found), given.limit)
    return ProposalPage(page, make_cursor(str(page[-1].seq)) if more else None)


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    place = read_cursor(cursor)
    if not place.isascii() or not place.isdigit():
        raise wrong_cursor()
    return int(place)


def _size(proposal: ProposalView) -> int:
    return 0 if proposal.message is UNSET else len(bytes(proposal.message))


class OneProposal(Arguments, frozen=True, kw_only=True):
    """One proposal of a room."""

    room: RoomName
    proposal: ProposalId


async def proposal(call: Call[OneProposal]) -> ProposalView:
    from folkmoot.rooms import proposals

    given = call.arguments
    found = await proposals.find(call.services.rooms, call.visitor, given.room, given.proposal)
    return with_risk(call, found)


class WaitingIn(Arguments, frozen=True, kw_only=True):
    """What waits in a room."""

    room: RoomName
    after: Annotated[int, describe("Only what has a greater `seq`.", ge=0, le=MAX_INTEGER)] = 0
    limit: Annotated[int, describe("How many at most.", ge=1, le=100)] = 100


async def waiting(call: Call[WaitingIn]) -> WaitingPage:
    """What waits for the caller."""
    given = call.arguments
    page = await call.services.rooms.waiting(
        call.visitor, given.room, after=given.after, limit=given.limit
    )
    return replace(page, proposals=[with_risk(call, one) for one in page.proposals])


class Approval(OneProposal, frozen=True, kw_only=True):
    """A proposal that is approved."""

    to: (
        Annotated[
            str,
            describe(
                "Who is to do it, where the proposal does not name one.",
                min_length=1,
                max_length=128,
            ),
        ]
        | None
    ) = None
    wait: Annotated[
        int,
        describe(
            "Seconds to wait for the answer of the one who is asked.",
            ge=0,
            le=int(MAX_WAIT_SECONDS),
        ),
    ] = 20


async def approve(call: Call[Approval]) -> Outcome:
    """What came of an approval, with the answer if it comes in time."""
    from folkmoot.rooms import proposals

    rooms, given = call.services.rooms, call.arguments
    outcome = await proposals.approve(rooms, call.visitor, given.room, given.proposal, to=given.to)
    if given.wait:
        answer = proposals.answer_to(rooms, call.visitor, given.room, outcome, given.wait)
        outcome = await run_until(call.caller.leaving, answer) or outcome
    return outcome


class Rejection(OneProposal, frozen=True, kw_only=True):
    """A proposal that is rejected."""

    reason: Annotated[str, describe("Why.", min_length=1, max_length=MAX_REASON)]


async def reject(call: Call[Rejection]) -> Outcome:
    from folkmoot.rooms import proposals

    given = call.arguments
    return await proposals.reject(
        call.services.rooms, call.visitor, given.room, given.proposal, given.reason
    )


SAID: Final = tuple(
    error
    for error in e.ERRORS.values()
    if issubclass(
        error,
        (
            e.UnsupportedProtocol,
            e.InvalidEnvelope,
            e.KindError,
            e.CapabilityError,
            e.CapabilityDenied,
            e.ProposalRequired,
            e.BlockedByInterceptor,
            e.RoomError,
            e.RateLimited,
        ),
    )
    and not issubclass(error, (e.TargetLeft, e.RequestTimedOut, e.RoomFull, e.TooManyConnections))
)
"""What something that is said in a room may be refused with; the rest of its tree comes later."""

DECIDED: Final = (
    e.ArgumentInvalid,
    e.PayloadInvalid,
    e.CapabilityDenied,
    e.ProposalRequired,
    e.BlockedByInterceptor,
    e.NameRefused,
    e.RateLimited,
    e.RecipientInvalid,
    e.RecipientUnknown,
    e.ProposalUnknown,
    e.ProposalClosed,
    e.ProposalOwn,
    e.ProposalAltered,
    e.RejectedAlready,
    e.TooManyOpen,
)

READ_MESSAGES: Final = Route(
    "GET",
    "/v1/rooms/{room}/messages",
    id="readMessages",
    summary="Read messages",
    description="In order: with `after` the first messages that follow it, otherwise the last "
    "ones. A page ends early when it comes to more than 1 MiB; one message is always shown.",
    answer="A page of messages.",
    handler=messages,
)
PROPOSALS: Final = (
    Route(
        "GET",
        "/v1/rooms/{room}/proposals",
        id="listProposals",
        summary="List proposals and their outcomes",
        description="The latest first.",
        answer="A page of proposals, the latest first.",
        handler=proposals,
    ),
    Route(
        "GET",
        "/v1/rooms/{room}/proposals/{proposal}",
        id="getProposal",
        summary="Read one proposal and what came of it",
        description="With its message, as long as the history has it.",
        answer="The proposal.",
        errors=(e.ProposalUnknown,),
        handler=proposal,
    ),
    Route(
        "GET",
        "/v1/rooms/{room}/waiting",
        id="listWaiting",
        summary="List what waits for you",
        description="Open requests to you, and open proposals that you may decide on, the oldest "
        "first. A page ends early when it comes to more than 1 MiB; where `more` is true, go on "
        "with `after` the greatest `seq` of it.",
        answer="What waits for you.",
        handler=waiting,
    ),
)
DECISIONS: Final = (
    Route(
        "POST",
        "/v1/rooms/{room}/proposals/{proposal}/approve",
        id="approveProposal",
        summary="Approve a proposal",
        description="The request that was proposed is made in your name and by your right to it, "
        "and the answer says what came of it. It needs no body. Where the one who is asked takes "
        "longer than `wait`, the answer has neither `result` nor `error`.",
        query=("to", "wait"),
        errors=DECIDED,
        handler=approve,
    ),
    Route(
        "POST",
        "/v1/rooms/{room}/proposals/{proposal}/reject",
        id="rejectProposal",
        summary="Reject a proposal",
        description="Everyone in the room reads the reason.",
        example={"reason": "We still need it."},
        errors=DECIDED,
        handler=reject,
    ),
)

POST: Final = Operation(
    name="room/post",
    description="One envelope, checked as on a WebSocket and then sent to everyone in the room. A "
    "refusal has the content of `system.error`.",
    gives=PostedMessage,
    handler=post,
    scope="rooms",
    who="guest",
    reaches_others=True,
    judged=False,
    errors=SAID,
    tool=Absent("Each thing that can be said has a tool of its own, such as `room/say`."),
    routes=(
        Route(
            "POST",
            "/v1/rooms/{room}/messages",
            id="postMessage",
            summary="Say something",
            status=201,
            answer="The message as everyone gets it.",
            body="message",
            example={
                "protocol": "mcpx/v1",
                "kind": "chat.message",
                "payload": {"text": "Good morning!"},
            },
        ),
    ),
    commands=Absent("Each thing that can be said has a command of its own, such as `room say`."),
)
