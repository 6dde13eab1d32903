"""The settings of rooms and of the connections to them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from folkmoot.settings.section import Section


class LimitSettings(Section, frozen=True, kw_only=True):
    """What one message in a room, and one connection to it, may cost."""

    message_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=16_777_216,
            description="The largest message a room takes, in bytes; a WebSocket that sends a "
            "larger one is closed with 1009.",
        ),
    ] = 1_048_576
    nesting: Annotated[
        int,
        Meta(
            ge=8,
            le=256,
            description="How deep objects and lists may lie in one another in a message.",
        ),
    ] = 64
    unfinished_bytes: Annotated[
        int,
        Meta(
            ge=65_536,
            le=1_099_511_627_776,
            description="Bytes of large messages that have come in part, over all WebSockets; "
            "beyond it, and beyond two of the largest, the WebSocket whose message was begun first "
            "is closed with 4008.",
        ),
    ] = 8_388_608
    unsent_bytes: Annotated[
        int,
        Meta(
            ge=65_536,
            le=1_073_741_824,
            description="How many bytes may wait for a client that does not read them; with more "
            "its WebSocket is closed with 4008.",
        ),
    ] = 4_194_304
    unsent_frames: Annotated[
        int,
        Meta(
            ge=16,
            le=1_000_000,
            description="How many messages may wait for a client that does not read them; with "
            "more its WebSocket is closed with 4008.",
        ),
    ] = 10_000
    ping_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=3600,
            description="How long a WebSocket is left alone before the hub pings it.",
        ),
    ] = 20.0
    pong_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=3600,
            description="How soon something must come back then; otherwise the WebSocket is "
            "closed with 4408.",
        ),
    ] = 20.0
    frames_per_second: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="How many messages a second one WebSocket may send for long; five "
            "seconds' worth may come at once. One that sends more is closed with 4029.",
        ),
    ] = 200


class RoomSettings(Section, frozen=True, kw_only=True):
    """Rooms; what a room's own policy says goes before what is said here."""

    keep_messages: Annotated[
        int,
        Meta(
            ge=100,
            le=1_000_000_000,
            description="Messages kept of one room; the oldest beyond it are removed. A room's own "
            "policy may keep fewer.",
        ),
    ] = 100_000
    keep_days: Annotated[
        int,
        Meta(
            ge=0,
            le=36_500,
            description="Days after which a message of a room is removed; 0 keeps them for ever. A "
            "room's own policy may keep them for less time.",
        ),
    ] = 0
    memory_messages: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Messages kept, in memory alone, of a room that is not durable.",
        ),
    ] = 10_000
    max_rooms_each: Annotated[
        int, Meta(ge=0, le=1_000_000, description="Rooms one account may own.")
    ] = 100
    tool_presence_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=86_400,
            description="How long someone who came in by a tool, and has no WebSocket, counts as "
            "present after their last call.",
        ),
    ] = 600.0
    request_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=86_400,
            description="How long a request in a room waits for its answer, unless the room's "
            "policy says otherwise.",
        ),
    ] = 300.0
    progress_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=86_400,
            description="How long a request in a room stays open at most while its progress is "
            "told: each message of progress lets it wait for `request_seconds` again. A room's own "
            "policy goes before it.",
        ),
    ] = 3600.0
    proposal_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=31_536_000,
            description="How long a proposal stays open, unless the room's policy says otherwise.",
        ),
    ] = 3600.0
    return_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=3600,
            description="How long those who were present before a restart count as present until "
            "they reconnect; and how long the connection that began a call may be away before the "
            "call counts as interrupted.",
        ),
    ] = 30.0


class KindSettings(Section, frozen=True, kw_only=True):
    """Kinds of messages in rooms."""

    accept_old_spellings: Annotated[
        bool,
        Meta(
            description="Whether messages may have the kinds of the protocol's first form, such as "
            "`mcp/request:tools/call`; they are read as the kinds that took their place."
        ),
    ] = False
