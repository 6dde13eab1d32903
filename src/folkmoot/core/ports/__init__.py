"""Protocols that other parts implement: what the core needs from outside.

Here are the `Clock` and the `Sealer`; the files beside this one have the others, and the values
they speak of.

- `messages`: a message's way: transports, interceptors, services, recorders
- `store`: transactions and the database
- `bus`: events of committed changes, and messages between nodes
- `nodes`: which node owns a room, has a client's session, or links a server
"""

from __future__ import annotations

from typing import Protocol

from folkmoot.core.ports.bus import *
from folkmoot.core.ports.messages import *
from folkmoot.core.ports.nodes import *
from folkmoot.core.ports.store import *


class Clock(Protocol):
    """The two times: one for people, one for durations."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never run backwards."""


class Sealer(Protocol):
    """Seals what must not lie readable in the database, each for its purpose and its row."""

    def seal(self, purpose: str, row: str, plaintext: bytes) -> str:
        """The sealed text, which opens only with the same purpose and row."""

    def open(self, purpose: str, row: str, sealed: str) -> bytes:
        """What was sealed; raises when it was changed or belongs elsewhere."""
