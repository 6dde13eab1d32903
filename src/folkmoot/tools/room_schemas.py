"""The arguments that several of the rooms' tools have."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from folkmoot.tools.model import Arguments, Schema
from folkmoot.tools.schemas import integer, obj, text

MOST_NAMES = 64
"""How many participants one message may mention."""
MOST_PATTERNS = 64
MOST_SECONDS = 55
"""The longest that a call waits, like that of the mailbox."""
LAST_SEQ = 2**53
"""Later than any message; a larger number is no number of a message in JSON."""

Seq: TypeAlias = Annotated[int, Meta(ge=0, le=LAST_SEQ)]
Wait: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_SECONDS)]

ROOM: Schema = text("Name of the room")


class PolicyGiven(Arguments, frozen=True, kw_only=True):
    """What a room decides for itself, as far as it is given; the room checks it."""

    quorum: int | None = None
    proposal_seconds: int | None = None
    loop_guard: int | None = None
    request_seconds: int | None = None
    progress_seconds: int | None = None
    keep_messages: int | None = None
    keep_days: int | None = None


POLICY: Schema = obj(
    {
        "quorum": integer("How many must reject a proposal to close it. Default 1."),
        "proposal_seconds": integer("Seconds a proposal stays open. 0 is the hub's default."),
        "loop_guard": integer(
            "How often agents may answer each other without a person before they are paused. "
            "Default 30; 0 for no limit."
        ),
        "request_seconds": integer("Seconds a request may take. 0 is the hub's default."),
        "progress_seconds": integer(
            "Seconds a request may take while it reports progress. 0 is the hub's default."
        ),
        "keep_messages": integer("How many messages are kept. 0 is the hub's default."),
        "keep_days": integer("Days a message is kept. 0 is the hub's default."),
    },
    description="Rules of the room, where they differ from the hub's defaults",
)
