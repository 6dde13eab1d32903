"""Colours of participants and kinds: stable, and readable on dark and light backgrounds alike."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

PALETTE: Final = (28, 30, 31, 27, 98, 164, 162, 130, 64, 131)
"""Numbers of the 256-colour palette, each at least 4:1 against black and against white."""

RED: Final = 161
CHIPS: Final[dict[str, int]] = {
    "mcp.request": 27,
    "mcp.response": 28,
    "mcp.proposal": 130,
    "mcp.notification": 65,
    "mcpx": 130,
    "capability": 98,
    "room": 98,
    "system.error": RED,
    "system.proposal": 130,
}
"""The colour of a kind's chip, by protocol and operation or by protocol alone."""

OTHER_CHIP: Final = 97


def colour_of(name: str) -> int:
    """The colour of a participant, the same today and tomorrow, here and elsewhere."""
    return PALETTE[sha256(name.encode("utf-8", "replace")).digest()[0] % len(PALETTE)]


def chip_colour(protocol: str, operation: str) -> int:
    """The colour of a kind's chip."""
    near = CHIPS.get(f"{protocol}.{operation}")
    return near if near is not None else CHIPS.get(protocol, OTHER_CHIP)
