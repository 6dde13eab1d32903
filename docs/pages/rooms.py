"""The tables of `reference/rooms.md`, from the room machine, the door and the close codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from docs.pages.markdown import code, table
from folkmoot import ratelimits
from folkmoot.core import chat
from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.core.limits import MAX_CAPABILITIES_TOLD
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.mcp.wire import CANCELLED, PROGRESS
from folkmoot.ratelimits import DAY, MINUTE
from folkmoot.rooms.access import STRANGERS_COME_IN, STRANGERS_KNOW
from folkmoot.rooms.limits import (
    BURST_SECONDS,
    CATCH_UP_SECONDS,
    INVITATION_SECONDS,
    MAX_BACKEND_CALLS,
    MAX_BACKENDS,
    MAX_GRANT_BYTES,
    MAX_GRANT_CAPABILITIES,
    MAX_GUESTS,
    MAX_OWNERS,
    MAX_PAUSE_SECONDS,
    MAX_PAYLOAD_ID,
    MAX_REASON,
    PROGRESS_SECONDS,
    RoomBounds,
)
from folkmoot.rooms.machine import (
    DEFAULT_CHAT,
    DEFAULT_RIGHTS,
    TRANSITIONS,
    Attach,
    Role,
    Room,
)
from folkmoot.rooms.machine.acts import ACTS, RIGHT_OF_THEIR_OWN
from folkmoot.rooms.machine.model import RoomSettings
from folkmoot.rooms.model import ACCESS
from folkmoot.transports.rooms.door import FORMS, ROOM

if TYPE_CHECKING:
    from collections.abc import Sequence

PARAMETERS: Final = {
    "room": ("a room's name", "Which room; required."),
    "topic": ("a room's name", "The older word for `room`."),
    "token": (
        "a token",
        "Who comes, where a client cannot send the header; URLs are kept by many.",
    ),
    "after": (None, "Resume: the `seq` of the last message you have."),
    "epoch": (None, "Resume: the epoch in which you got it."),
    "conn": (None, "Your own id of this connection, under which it may come back."),
    "linger": (
        None,
        "`1` for a page: if it comes back within `rooms.return_seconds`, it never left.",
    ),
    "serve": (None, "`1` for a connection that offers tools: see [serving](#serving)."),
}
"""Every parameter of `/ws`; what is None is the door's own word for it."""

STRANGERS: Final = {True: "yes", False: "no"}

DOES: Final = {
    "mcp.request": "Opens a request, and fulfils the proposal that it correlates. To `gateway`, it "
    "is answered by the room; to a backend, by the hub.",
    "mcp.response": "Closes the request.",
    "mcp.proposal": "Opens a proposal.",
    "mcpx.begin": "Lets this connection alone run the request: see [serving](#serving).",
    "mcpx.withdraw": "Closes one's own proposal.",
    "mcpx.reject": "Counts as a rejection, and closes the proposal when there are enough.",
    "capability.grant": "Gives rights, and is acknowledged with `capability.grant-ack`.",
    "capability.revoke": "Takes rights back, and all that was granted from them.",
    "room.kick": "Puts a participant out, until it is invited again, and closes its proposals.",
    "room.invite": "Lets someone in, and is answered with `room.invite-ack`, to the inviter alone.",
    "participant.pause": "Pauses those in `to`: what they would begin is refused.",
    "participant.resume": "Ends the pauses of those in `to`, or all of them.",
    "chat.message": "Counts towards the chat rate and the loop guard.",
    f"mcp.notification.{chat.METHOD}": "The same.",
    "chat.acknowledge": "Must name one message of the room in `correlation_id`.",
    "chat.cancel": "The same; the message must be the sender's own.",
    f"mcp.notification.{CANCELLED}": "Closes the request without an answer.",
    f"mcp.notification.{PROGRESS}": "Goes to whoever asked, and keeps the request open longer.",
}
"""What a room does with each kind in its table of acts, beyond storing and delivering it."""

OWN_RIGHT: Final = {
    "mcp.response": "of the one who was asked",
    "mcpx.begin": "of the one who was asked, on the connection that serves",
    f"mcp.notification.{CANCELLED}": "of the one who asked",
    f"mcp.notification.{PROGRESS}": "of the one who was asked",
    "capability.revoke": "of the granter; others need the capability",
}

STEPS: Final = {
    "fulfil": (
        "`mcp.request`, equal to it, that correlates it",
        {"others": "anyone else who may make that request"},
    ),
    "reject": ("`mcpx.reject.proposal` with a reason", {"others": "anyone else who may"}),
    "withdraw": ("`mcpx.withdraw.proposal`", {"proposer": "the proposer"}),
    "kick": (
        "`system.proposal.withdrawn`",
        {"gateway": "the gateway, when the proposer is kicked, suspended or deleted"},
    ),
    "expire": ("`system.proposal.expired`", {"gateway": "the gateway, when its time is over"}),
}

COME_BACK: Final = {
    CloseCode.PROTOCOL_ERROR: "Mend the client.",
    CloseCode.NOT_TEXT: "Send text.",
    CloseCode.NOT_UTF8: "Send UTF-8.",
    CloseCode.TOO_BIG: "Send less at once; resume.",
    CloseCode.INTERNAL: "Resume, after a moment.",
    CloseCode.RESTARTING: "Resume, after a moment.",
    CloseCode.TOO_SLOW: "Resume, and read faster.",
    CloseCode.REPLACED: "Nothing: your other connection goes on.",
    CloseCode.OVER_RATE: "Resume, and send more slowly.",
    CloseCode.BAD_REQUEST: "Mend the URL.",
    CloseCode.NOT_AUTHENTICATED: "Come with a token that is valid.",
    CloseCode.NOT_ALLOWED: "Read the reason; whoever was put out needs an invitation.",
    CloseCode.NO_SUCH_ROOM: "Nothing: it is gone, or not yours to know of.",
    CloseCode.PONG_TIMEOUT: "Resume.",
}

CHAT_SETTINGS: Final = {
    PrincipalType.PERSON: "rates.chat_person_per_minute",
    PrincipalType.AGENT: "rates.chat_agent_per_minute",
    PrincipalType.GUEST: "rates.chat_guest_per_minute",
}

FIRST_SEQ, LAST_SEQ = 41, 60
WISHES: Final = (
    (60, "e1", "you have everything"),
    (50, "e1", "you missed some, and they are kept"),
    (40, "e1", "you missed exactly what is kept"),
    (50, None, "without an epoch, it is taken to be the present one"),
    (39, "e1", "some of what you missed is no longer kept"),
    (50, "e0", "the numbers began anew since: see below"),
    (61, "e1", "there is no such message yet"),
)
"""What newcomers say they have of a room that keeps 41 to 60 and whose epoch is `e1`."""


def parameters() -> str:
    """What the query of `/ws` may hold."""
    known = {*ROOM, *FORMS, "token"}
    if PARAMETERS.keys() != known:
        raise AssertionError(f"parameters without words: {known ^ PARAMETERS.keys()}")
    rows = (
        [code(name), form or FORMS[name][1], meaning]
        for name, (form, meaning) in PARAMETERS.items()
    )
    return table(["Parameter", "Must be", "Meaning"], rows)


def access() -> str:
    """Who sees a room, and who comes in."""
    rows = (
        [code(each), STRANGERS[STRANGERS_KNOW[each]], STRANGERS[STRANGERS_COME_IN[each]]]
        for each in ACCESS
    )
    return table(["Access", "Others see it", "Others may come in"], rows)


def rights() -> str:
    """What each role may do where the room says nothing else."""
    rows = (
        [role.value, ", ".join(map(source, DEFAULT_RIGHTS[role])) or "nothing"] for role in Role
    )
    return table(["Role", "Holds by default"], rows)


def source(held: Any) -> str:
    """A capability as it is written."""
    return code(held if isinstance(held, str) else json.dumps(held))


def acts() -> str:
    """What a room does with the kinds it knows."""
    rows = []
    for kind, act in ACTS.items():
        own = act in RIGHT_OF_THEIR_OWN
        rows.append([code(kind), DOES[kind], OWN_RIGHT[kind] if own else "a capability"])
    return table(["Kind", "What the room does with it", "The right to it"], rows)


def transitions() -> str:
    """The steps of a proposal; each is taken from open."""
    rows = []
    for step, row in TRANSITIONS.items():
        message, words = STEPS[step]
        rows.append([step, message, words[row.by], code(row.leads_to.value)])
    return table(["Step", "Message", "Who", "Leads from `open` to"], rows)


def close_codes() -> str:
    """Every close code, and what a client does next."""
    rows = ([str(int(each)), CLOSE_REASONS[each], COME_BACK[each]] for each in CloseCode)
    return table(["Code", "Why", "What to do"], rows)


def chat_rates() -> str:
    """How much everyone may say."""
    rows = (
        [
            kind.value,
            str(limit.most),
            f"one every {limit.seconds // limit.most} s" if limit.most < MINUTE else "one a second",
            code(CHAT_SETTINGS[kind]),
        ]
        for kind, limit in DEFAULT_CHAT.items()
        if limit is not None
    )
    return table(["Who", "Messages at once", "Then", "Setting"], rows)


def resuming() -> str:
    """What newcomers are told of their wish to resume, as a room says it."""
    rows = []
    for after, epoch, words in WISHES:
        told = resume(after, epoch)
        reason = "" if told["reason"] is None else code(told["reason"])
        asked = f"after={after}" if epoch is None else f"after={after}&epoch={epoch}"
        rows.append([code(asked), json.dumps(told["complete"]), reason, words])
    return table(["Asked", "`complete`", "`reason`", "Because"], rows)


def resume(after: int, epoch: str | None) -> dict[str, Any]:
    """The `resume` of a welcome."""
    room = Room.rebuild(
        RoomSettings(name="planning", epoch="e1"), lambda: "id", (), 0.0, snapshot=KEPT
    )
    effects = room.join("c", Principal("a", "ada"), Role.MEMBER, 0.0, after=after, epoch=epoch)
    (attach,) = (effect for effect in effects if isinstance(effect, Attach))
    told: dict[str, Any] = json.loads(attach.welcome)["payload"]["resume"]
    return told


KEPT: Final = json.dumps(
    {
        "seq": LAST_SEQ,
        "first_seq": FIRST_SEQ,
        **{name: [] for name in ("requests", "proposals", "grants", "here")},
    }
).encode()


def limits() -> str:
    """How much of everything there may be, and what one more is told."""
    return table(["What", "At most", "Beyond it"], bounds())


def bounds() -> Sequence[Sequence[str]]:
    """The rows of that table."""
    bound = RoomBounds()
    return [
        ["participants of a room", f"{bound.participants:,}", "`room_full`"],
        [
            "connections of one participant to a room",
            str(bound.connections_each),
            "`too_many_connections`",
        ],
        ["open requests of a room", f"{bound.open_requests:,}", "`too_many_open`"],
        ["open requests of one participant", str(bound.open_requests_each), "`too_many_open`"],
        ["open proposals of a room", f"{bound.open_proposals:,}", "`too_many_open`"],
        ["open proposals of one participant", str(bound.open_proposals_each), "`too_many_open`"],
        [
            "closed proposals that are remembered",
            f"{bound.closed_proposals:,}",
            "the oldest is `proposal_unknown`",
        ],
        ["grants of a room", f"{bound.grants:,}", "`too_many_open`"],
        ["grants to one participant", str(bound.grants_each), "`too_many_open`"],
        ["capabilities granted in a room", f"{bound.granted:,}", "`too_many_open`"],
        ["capabilities granted to one participant", str(bound.granted_each), "`too_many_open`"],
        ["bytes of all granted capabilities", f"{bound.granted_bytes:,}", "`too_many_open`"],
        ["bytes of the capabilities of one grant", f"{MAX_GRANT_BYTES:,}", "`payload_invalid`"],
        ["participants who are paused", f"{bound.paused:,}", "`too_many_open`"],
        ["time of a pause", f"{MAX_PAUSE_SECONDS // DAY:,} days", "`payload_invalid`"],
        ["owners of a room", str(MAX_OWNERS), "refused"],
        ["characters of a request's id or progress token", f"{MAX_PAYLOAD_ID:,}", "refused"],
        [
            "capabilities in one grant or revocation",
            str(MAX_GRANT_CAPABILITIES),
            "`payload_invalid`",
        ],
        ["characters of a `reason` in those", f"{MAX_REASON:,}", "`payload_invalid`"],
        ["guests of a room, with those who did not come yet", f"{MAX_GUESTS:,}", "refused"],
        ["backends of a room", str(MAX_BACKENDS), "refused"],
        [
            "requests of a room that a backend answers at once",
            str(MAX_BACKEND_CALLS),
            "`backend_busy`",
        ],
        [
            "progress of one request to a backend",
            f"once in {PROGRESS_SECONDS:g} seconds",
            "the latest is told then",
        ],
        [
            "time until an invitation is used",
            f"{INVITATION_SECONDS // DAY:g} days",
            "`invitation_invalid`",
        ],
        ["participants that a welcome lists", str(bound.listed), "`participants_total` tells"],
        [
            "capabilities that a welcome lists",
            str(MAX_CAPABILITIES_TOLD),
            "`capabilities_held` tells",
        ],
        ["requests, and proposals, that a welcome lists", str(bound.waiting), "`more` is true"],
        [
            "frames a client sends",
            f"`limits.frames_per_second`, {BURST_SECONDS} seconds' worth at once",
            "closed with 4029",
        ],
        [
            "messages, and their bytes, of one participant in a room",
            (
                "`rates.room_messages_per_second`, `rates.room_bytes_per_second`, "
                f"{ratelimits.BURST_SECONDS} seconds' worth at once"
            ),
            "`rate_limited`",
        ],
        [
            "answers and progress, and their bytes, of one participant in a room",
            (
                "`rates.answers_per_second`, `rates.answer_bytes_per_second`, "
                f"{ratelimits.BURST_SECONDS} seconds' worth at once"
            ),
            "`rate_limited`",
        ],
        ["bytes of a message", "`limits.message_bytes`", "closed with 1009"],
        [
            "messages, or bytes, that wait for a client to read them",
            "`limits.unsent_frames`, `limits.unsent_bytes`",
            "closed with 4008",
        ],
        [
            "time that one who catches up takes to read a page",
            f"{CATCH_UP_SECONDS:g} seconds",
            "closed with 4008",
        ],
        [
            "history of a room",
            "`rooms.keep_messages`, `quotas.room_bytes`, or fewer by its policy",
            "the oldest of who has most go",
        ],
        [
            "age of a room's messages",
            "`rooms.keep_days`, or fewer by its policy",
            "the oldest go",
        ],
        [
            "history of a room that is not durable",
            "`rooms.memory_messages`, `quotas.memory_room_bytes`",
            "the oldest of who has most go",
        ],
    ]


BLOCKS = {
    "room-parameters": parameters,
    "room-access": access,
    "room-rights": rights,
    "room-acts": acts,
    "room-transitions": transitions,
    "room-close-codes": close_codes,
    "room-chat-rates": chat_rates,
    "room-resuming": resuming,
    "room-limits": limits,
}
