"""The JSON that goes in and out, each object under its name: the components of the document."""

from __future__ import annotations

from typing import Final

import msgspec

from folkmoot.core.policy import PrincipalType
from folkmoot.core.target import MAX_TARGET, MOST_TARGETS
from folkmoot.rooms.machine import Role, State
from folkmoot.rooms.model import ACCESS, MOST_BACKENDS, RoomPolicy
from folkmoot.rooms.spec import MOST_GRANTED, MOST_OWNERS, MOST_PATTERNS
from folkmoot.rooms.spec import ROOM_NAME as NAME
from folkmoot.transports.rest.credentials import CREDENTIAL_SCHEMAS
from folkmoot.transports.rest.model import Schema
from folkmoot.transports.rest.shapes import listed, moment, nullable, ref, seq, shape, text, told

ROOM_NAME: Final = f"^{NAME.pattern}$"
LARGEST_SEQ: Final = 2**53 - 1
"""What every reader of JSON keeps exactly."""
MAX_REASON: Final = 4096


OLDEST_SEQ: Final = (
    "The `seq` of the oldest message that is kept. Present where some messages "
    "before `first_seq` are kept, but not all of them."
)

_PAGED: Final = {
    "next_cursor": {
        "type": ["string", "null"],
        "description": "The `cursor` of the next page; null when nothing follows.",
    }
}

_PATTERN: Final[Schema] = {
    "type": "string",
    "pattern": (
        r"^!?[a-z0-9*-]{1,32}(\.[a-z0-9*-]{1,32}(\.[!-9;-~]{1,128}(:[^\x00-\x1f]{1,1024})?)?)?$"
    ),
}
_TARGET: Final[Schema] = {
    "type": "string",
    "pattern": "^[a-z0-9_*-]+$",
    "minLength": 1,
    "maxLength": MAX_TARGET,
}
_CAPABILITY: Final[Schema] = {
    "description": (
        "A pattern over kinds, alone or with a constraint on the payload and on the recipients."
    ),
    "anyOf": [
        _PATTERN,
        {
            "type": "object",
            "properties": {
                "kind": _PATTERN,
                "payload": {"type": "object"},
                "to": {"anyOf": [_TARGET, listed(_TARGET, minItems=1, maxItems=MOST_TARGETS)]},
            },
            "required": ["kind"],
            "additionalProperties": False,
        },
    ],
}

_POLICY_SAYS: Final = {
    "quorum": "How many different participants must reject a proposal to close it",
    "proposal_seconds": "How long a proposal is open, in seconds",
    "loop_guard": (
        "How often agents may answer each other without a person before they are held; 0 for as "
        "often as they like"
    ),
    "request_seconds": "How long an answer may take, in seconds",
    "progress_seconds": "How long it may take while progress is told, in seconds",
    "keep_messages": "How many messages are kept",
    "keep_days": "For how many days messages are kept",
}
_ASKED: Final = {
    "proposal_seconds": "; 0 for the hub's default",
    "request_seconds": "; 0 for the hub's default",
    "progress_seconds": "; 0 for the hub's default",
    "keep_messages": "; 0 for the hub's default",
    "keep_days": "; 0 for the hub's default",
}
_HOLDS: Final = {"keep_days": "; 0 is forever"}
_BOUNDS: Final = msgspec.json.schema_components([RoomPolicy])[1]["RoomPolicy"]["properties"]
_GIVEN_POLICY: Final[dict[str, Schema]] = {
    name: {
        "type": [_BOUNDS[name]["type"], "null"],
        "minimum": _BOUNDS[name]["minimum"],
        "maximum": _BOUNDS[name]["maximum"],
        "description": f"{says}{_ASKED.get(name, '')}.",
    }
    for name, says in _POLICY_SAYS.items()
}
_POLICY: Final[dict[str, Schema]] = {
    name: told(_BOUNDS[name]["type"], f"{says}{_HOLDS.get(name, '')}.")
    for name, says in _POLICY_SAYS.items()
}

_CAPABILITIES: Final = listed(ref("Capability"), maxItems=MOST_PATTERNS)

_BACKENDS: Final = listed(
    {"type": "string", "pattern": "^[a-z][a-z0-9]{2,19}$"},
    maxItems=MOST_BACKENDS,
    uniqueItems=True,
)

_HANDLE: Final = "^@?[A-Za-z][A-Za-z0-9_]{2,19}$"

_SETTINGS: Final[dict[str, Schema]] = {
    "access": {
        "type": "string",
        "enum": list(ACCESS),
        "description": (
            "open: everyone with an account may enter. invite: everyone sees the room, and "
            "invited people may enter. private: only invited people can see it."
        ),
    },
    "capabilities": {
        **nullable(_CAPABILITIES),
        "description": "The capabilities of everyone but the owners; null is the default of "
        "their role.",
    },
    "grants": {
        "type": "object",
        "maxProperties": MOST_GRANTED,
        "propertyNames": {"pattern": _HANDLE},
        "additionalProperties": _CAPABILITIES,
        "description": (
            "Additional capabilities of single people, by handle. In a change, it replaces all "
            "grants."
        ),
    },
    "policy": {**ref("PolicyChange"), "description": "The room's own policy."},
    "backends": {
        **nullable(_BACKENDS),
        "description": (
            "The backends that take part, by namespace; replaces the present ones; null is "
            "none. You must be able to use some of each at the hub yourself."
        ),
    },
}

_IDS: Final = listed({"type": "string", "minLength": 1, "maxLength": 128}, maxItems=64)

_ENVELOPE: Final[dict[str, Schema]] = {
    "protocol": {"type": "string", "const": "mcpx/v1", "description": "How it is written."},
    "id": text("Set by the hub if left out."),
    "from": text("The sender; set by the hub if left out."),
    "to": {**_IDS, "description": "The participants who are addressed; empty is everyone."},
    "kind": text("What the message is, such as `chat.message`.", 1280),
    "correlation_id": {**_IDS, "description": "The ids of the messages this one belongs to."},
    "context": text("A context of the sender's own."),
    "payload": {
        "type": ["object", "null"],
        "description": "As its kind says; it is never changed.",
    },
}
_OPTIONAL: Final = ("id", "from", "to", "context")
_SENT: Final[dict[str, Schema]] = {
    **_ENVELOPE,
    **{name: nullable(_ENVELOPE[name]) for name in _OPTIONAL},
    "correlation_id": {
        **_ENVELOPE["correlation_id"],
        "description": "The ids of the messages this one belongs to; a single id may be given "
        "as a string.",
        "type": ["array", "string", "null"],
        "minLength": 1,
        "maxLength": 128,
    },
}

SCHEMAS: Final[dict[str, Schema]] = {
    **CREDENTIAL_SCHEMAS,
    "Error": shape(
        {
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string", "description": "For programs."},
                    "message": {"type": "string", "description": "For people."},
                    "retry_after": {
                        "type": "number",
                        "description": "Seconds after which to try again.",
                    },
                    "attempted_kind": {
                        "type": ["string", "null"],
                        "description": "The kind of the message that was refused.",
                    },
                    "your_capabilities": listed(
                        ref("Capability"), description="What the sender may send instead."
                    ),
                },
                "required": ["code", "message"],
            }
        }
    ),
    "Capability": _CAPABILITY,
    "Policy": shape(_POLICY, description="The effective policy, including the hub's defaults."),
    "PolicyChange": shape(
        _GIVEN_POLICY,
        *_GIVEN_POLICY,
        description="Members that are left out stay as they are; null resets a member to its "
        "default.",
    ),
    "Room": shape(
        {
            "name": told("string", "The room's name.", pattern=ROOM_NAME),
            "access": told("string", "Who may enter.", enum=list(ACCESS)),
            "durable": told("boolean", "Whether its history is kept on the disk."),
            "epoch": told("string", "Changes when the numbering of messages restarts."),
            "role": {
                "type": ["string", "null"],
                "enum": ["owner", "member", "guest", None],
                "description": "Your role in the room; null when you are not in it.",
            },
            "capabilities": listed(ref("Capability"), description="The capabilities of members."),
            "policy": {**ref("Policy"), "description": "The room's own policy."},
            "participants": told(
                "integer", "How many are here now, not counting backends.", minimum=0
            ),
            "first_seq": seq("The `seq` from which its history is complete."),
            "last_seq": seq("The `seq` of the last message."),
            "oldest_seq": seq(OLDEST_SEQ),
            "created_at": moment("When it was made."),
            "owners": listed({"type": "string"}, description="The handles of the owners."),
            "grants": {
                "type": "object",
                "additionalProperties": listed(ref("Capability")),
                "description": "Additional capabilities of single people, by handle; shown to "
                "owners only.",
            },
            "backends": listed(
                {"type": "string"},
                description=(
                    "The namespaces of the backends that take part; shown to members only."
                ),
            ),
        },
        "oldest_seq",
        "grants",
        "backends",
    ),
    "RoomPage": shape({"rooms": listed(ref("Room"), description="By name."), **_PAGED}),
    "RoomSpec": shape(
        {
            "name": {
                "type": "string",
                "pattern": ROOM_NAME,
                "description": "The name of the new room.",
            },
            **_SETTINGS,
            "access": {**_SETTINGS["access"], "default": "open"},
            "durable": {
                "type": "boolean",
                "default": True,
                "description": "Whether its history is kept on the disk.",
            },
        },
        *_SETTINGS,
        "durable",
    ),
    "RoomPatch": shape(
        {
            **_SETTINGS,
            "owners": listed(
                {"type": "string", "pattern": _HANDLE},
                minItems=1,
                maxItems=MOST_OWNERS,
                description=(
                    "The owners from then on, by handle, all of them members of the room. To leave "
                    "yourself out hands the room over."
                ),
            ),
        },
        *_SETTINGS,
        "owners",
    ),
    "Participant": shape(
        {
            "id": told("string", "The handle, a guest's name, or a backend's namespace."),
            "type": told("string", "Who acts.", enum=[each.value for each in PrincipalType]),
            "role": told("string", "As what.", enum=[*(each.value for each in Role), "gateway"]),
            "offers_tools": nullable(
                told(
                    "boolean",
                    "Whether a connection of it joined with `serve=1`, or it is a backend; null "
                    "for one that takes part through tools, and may answer by hand.",
                )
            ),
        }
    ),
    "ParticipantPage": shape(
        {"participants": listed(ref("Participant"), description="By id."), **_PAGED}
    ),
    "Envelope": {
        "type": "object",
        "properties": _SENT,
        "required": ["protocol", "kind"],
    },
    "Message": {
        "type": "object",
        "properties": {
            "seq": seq("Its place in the history of the room."),
            "ts": moment("When the hub accepted it."),
            **_ENVELOPE,
        },
        "required": ["seq", "ts", "protocol", "id", "from", "kind"],
    },
    "MessagePage": shape(
        {
            "messages": listed(
                ref("Message"),
                description="In order, and without a gap from `first_seq` on.",
            ),
            "first_seq": seq("The `seq` from which the room's history is complete."),
            "last_seq": seq("The `seq` of the last message."),
            "oldest_seq": seq(OLDEST_SEQ),
        },
        "oldest_seq",
    ),
    "Proposal": shape(
        {
            "id": told("string", "The id of its message: what a decision correlates."),
            "seq": seq("Its place in the history of the room."),
            "kind": told("string", "What is proposed."),
            "proposer": told("string", "Who proposed it."),
            "to": listed({"type": "string"}, description="Who should do it; empty is anyone."),
            "state": told("string", "Its state.", enum=[state.value for state in State]),
            "created_at": moment("When it was made."),
            "expires_at": moment("Until when it is open."),
            "rejections": told("integer", "How many rejected it.", minimum=0),
            "closed_by": nullable(told("string", "Who decided, if anyone did.")),
            "closed_at": nullable(moment("When it was closed.")),
            "message": {
                **ref("Message"),
                "description": "The proposal itself, as long as the history has it.",
            },
        },
        "message",
    ),
    "ProposalPage": shape(
        {"proposals": listed(ref("Proposal"), description="The latest first."), **_PAGED}
    ),
    "Outcome": shape(
        {
            "id": told("string", "The id of the proposal."),
            "state": told(
                "string",
                "Where it stands now; still `open` where more must reject it.",
                enum=["fulfilled", "rejected", "withdrawn", "expired", "open"],
            ),
            "by": told("string", "Who decided."),
            "seq": seq("The place of the message that decided."),
            "decision": told("string", "The id of that message: a request, or a rejection."),
            "to": told("string", "Who was asked to do it."),
            "result": {
                "type": "object",
                "description": "What was answered, once it was.",
            },
            "error": {"type": "object", "description": "Why it failed, if it did."},
            "reason": told("string", "Why it was rejected."),
            "rejections": told("integer", "How many rejected it.", minimum=0),
        },
        "to",
        "result",
        "error",
        "reason",
        "rejections",
    ),
    "Rejection": shape({"reason": text("Why.", MAX_REASON)}),
    "OpenRequest": shape(
        {
            "id": told("string", "The id of its message: what an answer correlates."),
            "seq": seq("Its place in the history of the room."),
            "kind": told("string", "What is asked."),
            "requester": told("string", "Who asks."),
            "state": told(
                "string",
                (
                    "`waiting`: nobody has begun it. `running`: a connection of yours has. "
                    "`interrupted`: one had, and did not come back."
                ),
                enum=["waiting", "running", "interrupted"],
            ),
            "expires_at": moment("Until when it is open."),
            "proposer": told("string", "Whose proposal it fulfils, if any."),
            "message": {
                **ref("Message"),
                "description": "The request itself, as long as the history has it.",
            },
        },
        "proposer",
        "message",
    ),
    "Waiting": shape(
        {
            "requests": listed(ref("OpenRequest"), description="What you were asked."),
            "proposals": listed(ref("Proposal"), description="What you may decide on."),
            "more": told("boolean", "Whether more follows."),
        }
    ),
    "Invite": shape(
        {
            "handle": text("Whom to invite, by handle.", 64),
            "guest": text("The name in the room of someone without an account.", 64),
            "capabilities": {
                **_CAPABILITIES,
                "description": (
                    "What a guest holds from the start, beside what all guests do; you must hold "
                    "it yourself."
                ),
            },
        },
        "handle",
        "guest",
        "capabilities",
        description="A handle, or a guest and perhaps its capabilities.",
        oneOf=[{"required": ["handle"]}, {"required": ["guest"]}],
        dependentRequired={"capabilities": ["guest"]},
    ),
    "Invitation": shape(
        {
            "room": told("string", "The room."),
            "handle": told("string", "Who may come in now."),
            "guest": told("string", "The guest's name."),
            "token": told(
                "string", "The token with which the guest enters, once. It is shown to nobody else."
            ),
            "expires_at": moment("Until when the token is valid."),
        },
        "handle",
        "guest",
        "token",
        "expires_at",
    ),
    "GuestToken": shape({"token": text("The token of the invitation.")}),
    "Guest": shape(
        {
            "credential": told("string", "The guest's token from now on, for this room only."),
            "guest": told("string", "The guest's name."),
            "room": told("string", "The room."),
        }
    ),
    "Document": {"type": "object", "description": "An OpenAPI document."},
}
