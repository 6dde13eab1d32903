"""Where the hub answers otherwise than the SDK's server, and why."""

from __future__ import annotations

from typing import NamedTuple

from tests.mcp.oracle.corpus import Era


class Deviation(NamedTuple):
    """What each of them answers to some requests, and why the hub does not do the same."""

    cases: tuple[str, ...]
    hub: str
    sdk: str
    reason: str


TOO_MUCH = Deviation(
    ("bytes: number of 5,000 digits", "bytes: id of 5,000 digits", "bytes: 100,000 lists"),
    hub="413 -32600",
    sdk="400 -32700",
    reason="It is JSON, but more than the hub reads: a limit refuses it unread, and says so.",
)

BATCHES = Deviation(
    ("batch", "batch of two", "empty batch", "initialize: batch"),
    hub="400 -32600",
    sdk="400 -32602",
    reason="MCP has no batches since 2025-06-18: the request is invalid, not its params.",
)

DEVIATIONS: dict[Era, tuple[Deviation, ...]] = {
    "handshake": (TOO_MUCH, BATCHES),
    "stateless": (TOO_MUCH,),
}
