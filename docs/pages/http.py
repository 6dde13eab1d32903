"""The limits in `operations/running.md`, from the HTTP side of the hub."""

from __future__ import annotations

from docs.pages.markdown import table
from folkmoot.transports.guard import BODY_BYTES_A_SECOND, BODY_SECONDS
from folkmoot.transports.protocol import (
    CROWD,
    HEAD_BYTES,
    HEAD_SECONDS,
    WRITE_BYTES_A_SECOND,
    WRITE_SECONDS,
)
from folkmoot.transports.rooms.rates import BURST_SECONDS


def limits() -> str:
    """What a client may ask for, and what it is told beyond that."""
    return table(
        ["What", "Limit", "Beyond it"],
        [
            ["connections served", "`http.max_connections`", "503"],
            [
                "connections open",
                f"{CROWD} × `http.max_connections`",
                "the connection is closed",
            ],
            ["body of a request", "`http.max_body_bytes`, with a length or without", "413"],
            [
                "time for a body to arrive",
                f"{BODY_SECONDS:g} seconds, and one more for every {BODY_BYTES_A_SECOND:,} bytes",
                "408",
            ],
            ["head of a request", f"{HEAD_BYTES // 1024} KiB", "431"],
            [
                "trailers, and extensions of one chunk",
                f"{HEAD_BYTES // 1024} KiB",
                "the connection is closed",
            ],
            [
                "time for a head to arrive",
                f"{HEAD_SECONDS:g} seconds",
                "the connection is closed",
            ],
            [
                "time for an answer to be read",
                f"{WRITE_SECONDS:g} seconds, or longer at {WRITE_BYTES_A_SECOND:,} bytes a second",
                "the connection is closed",
            ],
            ["message on a WebSocket", "`limits.message_bytes`", "closed with 1009"],
            [
                "messages a client sends on a WebSocket",
                f"`limits.frames_per_second`, and {BURST_SECONDS} seconds' worth at once",
                "closed with 4029",
            ],
            [
                "what waits for a client that does not read",
                "`limits.unsent_bytes` and `limits.unsent_frames`",
                "closed with 4008",
            ],
            [
                "silence on a WebSocket",
                "`limits.ping_seconds`, then a ping, then `limits.pong_seconds`",
                "closed with 4408",
            ],
        ],
    )


BLOCKS = {"http-limits": limits}
