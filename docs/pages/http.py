"""The limits in `operations/running.md`, from the HTTP side of the hub."""

from __future__ import annotations

from docs.pages.markdown import table
from folkmoot.rooms.limits import BURST_SECONDS
from folkmoot.transports.limits import (
    BODY_SECONDS,
    BODY_STRANGERS_SHARE,
    HEAD_SECONDS,
    IDLE_SECONDS,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_TINY_CHUNKS,
    MAX_WAITING_REQUESTS,
    MIN_BODY_BYTES_A_SECOND,
    MIN_READ_BYTES_A_SECOND,
    OPEN_FACTOR,
    SIGNED_IN_RESERVE,
    TINY_CHUNK_BYTES,
    WRITE_SECONDS,
)
from folkmoot.transports.limits import SESSION_STRANGERS_SHARE as SESSIONS_SHARE


def limits() -> str:
    """What a client may ask for, and what it is told beyond that."""
    return table(
        ["What", "Limit", "Beyond it"],
        [
            [
                "connections served",
                f"`http.max_connections`; 1/{SIGNED_IN_RESERVE} of it for those who are signed in",
                (
                    f"those without an account that are idle for {IDLE_SECONDS:g} second or longer "
                    "are closed; then 503"
                ),
            ],
            [
                "connections open",
                f"{OPEN_FACTOR} × `http.max_connections`",
                "the connection is closed",
            ],
            [
                "connections of one address without an account",
                "`http.max_connections_per_address`",
                "idle and slow ones are closed; then 503",
            ],
            ["connections of one account", "`http.max_connections_per_account`", "429"],
            ["body of a request", "`http.max_body_bytes`, with a length or without", "413"],
            ["body without a valid token", "`http.max_anonymous_body_bytes`", "413, not read"],
            [
                "JSON values in a body",
                "`http.max_body_values`; without a valid token `http.max_anonymous_body_values`",
                "413, not decoded",
            ],
            ["array of JSON-RPC messages", "none", "400"],
            [
                "time for a body to arrive",
                (
                    f"{BODY_SECONDS:g} seconds, and longer "
                    f"at {MIN_BODY_BYTES_A_SECOND:,} bytes a second"
                ),
                "408",
            ],
            [
                "partly received bodies, of one address without an account or of one account",
                "`http.max_connections_per_address`",
                "429",
            ],
            [
                "bodies of all requests in progress",
                f"`http.max_bodies_bytes`; 1/{BODY_STRANGERS_SHARE} of it without a valid token",
                "503",
            ],
            [
                "sessions without an account, of one address",
                "`mcp.max_anonymous_sessions`",
                "429",
            ],
            [
                "memory of all sessions",
                f"`mcp.max_session_bytes`; 1/{SESSIONS_SHARE} of it without an account",
                "an unused session without an account is closed; then 503",
            ],
            [
                "head of a request",
                f"{MAX_HEAD_BYTES // 1024} KiB and {MAX_HEADERS} headers",
                "431",
            ],
            [
                "requests that wait on a connection for an earlier answer",
                str(MAX_WAITING_REQUESTS),
                "these are answered, then the connection is closed",
            ],
            [
                f"chunks of a body that have less than {TINY_CHUNK_BYTES} bytes",
                f"{MAX_TINY_CHUNKS:,}",
                "413",
            ],
            [
                "trailers, and extensions of one chunk",
                f"{MAX_HEAD_BYTES // 1024} KiB",
                "the connection is closed",
            ],
            [
                "time for a head to arrive",
                f"{HEAD_SECONDS:g} seconds",
                "the connection is closed",
            ],
            [
                "time for an answer to be read",
                (
                    f"{WRITE_SECONDS:g} seconds, or longer "
                    f"at {MIN_READ_BYTES_A_SECOND:,} bytes a second"
                ),
                "the connection is closed",
            ],
            ["message on a WebSocket", "`limits.message_bytes`", "closed with 1009"],
            [
                "frames a client sends on a WebSocket",
                f"`limits.frames_per_second`, and {BURST_SECONDS} seconds' worth at once",
                "closed with 4029",
            ],
            [
                "data that waits for a client that does not read",
                "`limits.unsent_bytes` and `limits.unsent_frames`",
                "closed with 4008",
            ],
            [
                "an idle WebSocket",
                "`limits.ping_seconds`, then a ping, then `limits.pong_seconds`",
                "closed with 4408",
            ],
        ],
    )


BLOCKS = {"http-limits": limits}
