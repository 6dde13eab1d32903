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
            description="The largest message a room accepts, in bytes; a WebSocket that sends "
            "a larger one is closed with 1009.",
        ),
    ] = 1_048_576
    nesting: Annotated[
        int,
        Meta(
            ge=8,
            le=256,
            description="How deep objects and lists may be nested in a message.",
        ),
    ] = 64
    unfinished_bytes: Annotated[
        int,
        Meta(
            ge=65_536,
            le=1_099_511_627_776,
            description="Bytes of partly received messages on all WebSockets; beyond it (and "
            "beyond two of the largest messages), the WebSocket with the oldest "
            "one is closed with 4008.",
        ),
    ] = 8_388_608
    unsent_bytes: Annotated[
        int,
        Meta(
            ge=65_536,
            le=1_073_741_824,
            description="How many bytes may wait for a client that does not read; with more, "
            "its WebSocket is closed with 4008.",
        ),
    ] = 4_194_304
    unsent_frames: Annotated[
        int,
        Meta(
            ge=16,
            le=1_000_000,
            description="How many messages may wait for a client that does not read; with "
            "more, its WebSocket is closed with 4008.",
        ),
    ] = 10_000
    ping_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=3600,
            description="How long a WebSocket may be idle before the hub pings it.",
        ),
    ] = 20.0
    pong_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=3600,
            description="How soon the client must answer the ping; otherwise the WebSocket is "
            "closed with 4408.",
        ),
    ] = 20.0
    frames_per_second: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="How many messages per second one WebSocket may send on average; a "
            "burst may have five seconds' worth. One that sends more is closed "
            "with 4029.",
        ),
    ] = 200


class RoomSettings(Section, frozen=True, kw_only=True):
    """Rooms; what a room's own policy says goes before what is said here."""

    keep_messages: Annotated[
        int,
        Meta(
            ge=100,
            le=1_000_000_000,
            description="Messages kept of one room; older ones are removed. A room's own "
            "policy may keep fewer.",
        ),
    ] = 100_000
    keep_days: Annotated[
        int,
        Meta(
            ge=0,
            le=36_500,
            description="Days after which a message of a room is removed; 0 keeps them "
            "forever. A room's own policy may keep them for less time.",
        ),
    ] = 0
    memory_messages: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Messages kept in memory of a room that is not durable.",
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
            description="How long someone who joined by a tool, without a WebSocket, counts as "
            "present after their last call.",
        ),
    ] = 600.0
    request_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=86_400,
            description="How long a request in a room waits for its answer, unless the room's "
            "policy sets its own time.",
        ),
    ] = 300.0
    progress_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=86_400,
            description="How long a request in a room may stay open while it reports progress: "
            "each progress message lets it wait for `request_seconds` again. A room's policy may "
            "set its own time.",
        ),
    ] = 3600.0
    proposal_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=31_536_000,
            description="How long a proposal stays open, unless the room's policy sets its own "
            "time.",
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
            description="Whether messages may use the older spellings of kinds, such as "
            "`mcp/request:tools/call`; they are read as the present ones."
        ),
    ] = False
