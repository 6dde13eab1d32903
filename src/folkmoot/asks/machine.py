"""What an ask is, what can become of it, and what its digest covers. No clock, no store.

An ask is open until it is approved, rejected or withdrawn, or its time is over; then nothing
changes it any more.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from folkmoot.core import errors as e

AskState: TypeAlias = Literal["open", "approved", "rejected", "withdrawn", "expired"]
Ending: TypeAlias = Literal["approved", "rejected", "withdrawn"]


class Wish(Struct, frozen=True, kw_only=True):
    """What a program wants to do, and why, in its own words."""

    tool: str
    arguments: dict[str, Any]
    why: str
    until: float


class StoredAsk(Struct, frozen=True, kw_only=True):
    """One ask: who asks with what, whom, for what; and what became of it."""

    id: str
    asker_id: str
    credential_id: str
    """What they came with, which may be gone by now."""
    client: str
    """What that credential is called."""
    decider_id: str
    tool: str
    bound: bytes
    """Whose digest is the ask's: also the arguments, and the names that everyone had then."""
    why: str
    at: float
    until: float
    state: AskState = "open"
    decided_at: float | None = None
    presence: str | None = None
    """How whoever decided showed that they are there: `passkey`, or that they did not: `token`."""
    reason: str | None = None
    receipt: str | None = None

    @property
    def digest(self) -> str:
        """What stands for it."""
        return sha256(self.bound).hexdigest()

    @property
    def told(self) -> dict[str, Any]:
        """What its digest covers."""
        told: dict[str, Any] = json.loads(self.bound)
        return told

    def standing(self, now: float) -> AskState:
        """What has become of it by now."""
        return "expired" if self.state == "open" and self.until <= now else self.state

    def check_open(self, now: float) -> None:
        """Refuse to end what has ended."""
        state = self.standing(now)
        if state != "open":
            raise e.AskClosed(CLOSED[state], state=state)


CLOSED: Final[dict[AskState, str]] = {
    "approved": "This was approved already.",
    "rejected": "This was rejected already.",
    "withdrawn": "Whoever asked for this has withdrawn it.",
    "expired": "Nobody decided in time.",
}


def bound(id_: str, asker: str, decider: str, wish: Wish) -> bytes:
    """What an ask stands for, as bytes: its digest is that of these. Another one is another ask.

    The members of objects are in order, so that how a program wrote them makes no difference; it is
    what `json.dumps` writes, since others write numbers in other ways.
    """
    told = {
        "ask": id_,
        "asker": asker,
        "decider": decider,
        "tool": wish.tool,
        "arguments": wish.arguments,
        "until": int(wish.until),
    }
    return canonical(told)


def canonical(value: Any) -> bytes:
    """JSON of which there is only one spelling."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
