"""Decisions: what each account decided about proposals, tools and asks, and the outcomes.

What is decided in a room is noted in the transaction that stores the deciding message, whichever
way that came. Rooms in memory keep nothing. Everything here runs within a unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

if TYPE_CHECKING:
    from folkmoot.core.ports import Tx

KEEP_SECONDS: Final = 90 * 86_400
PRUNED_AT_ONCE: Final = 500

AskKind: TypeAlias = Literal["proposal", "held", "tool", "call"]
"""What waits: a proposal in a room, a message that is held, a changed tool, a program's call."""
Risk: TypeAlias = Literal["destroys", "unknown", "acts", "changes", "reads"]
"""How risky it is to let something be done, the riskiest first."""
Verdict: TypeAlias = Literal["approved", "rejected", "released", "edited", "dropped", "accepted"]

WAITING: Final = "waiting"
"""What comes of an approval until it is answered; then it is `answered`, `failed` or `cancelled`.

What comes of a rejection is the state of the proposal, and of all else, what was decided.
"""
COLUMNS: Final = (
    "account_id, id, at, kind, decision, about, what, place, room_id, seq, asked_by, reason, "
    "outcome, ended_at"
)
INSERT: Final = (
    f"INSERT INTO decisions ({COLUMNS}) "  # noqa: S608
    f"SELECT {', '.join(['?'] * 14)} FROM users WHERE id = ? ON CONFLICT DO NOTHING"
)
"""Nothing is noted of someone who is no account, or no longer."""
_READ: Final = (
    "SELECT d.id, d.at, d.kind, d.decision, d.about, d.what, COALESCE(r.name, d.place), "
    "d.room_id IS NOT NULL, d.seq, COALESCE(u.handle, g.name), d.reason, d.outcome, d.ended_at "
    "FROM decisions d LEFT JOIN rooms r ON r.id = d.room_id "
    "LEFT JOIN users u ON u.id = d.asked_by "
    "LEFT JOIN room_guests g ON g.id = d.asked_by "
    "WHERE d.account_id = ? AND (d.at, d.id) < (?, ?) ORDER BY d.at DESC, d.id DESC LIMIT ?"
)


class NewDecision(Struct, frozen=True, kw_only=True):
    """A decision that is to be noted."""

    account: str
    id: str
    at: float
    kind: AskKind
    decision: Verdict
    about: str
    what: str
    place: str = ""
    room_id: int | None = None
    seq: int | None = None
    asked_by: str | None = None
    reason: str | None = None
    outcome: str = ""
    ended_at: float | None = None

    @property
    def params(self) -> tuple[str | float | int | None, ...]:
        """What `INSERT` takes."""
        noted = replace(self, outcome=self.outcome or self.decision)
        return (*astuple(noted), self.account)


class StoredDecision(Struct, frozen=True):
    """A decision and its outcome."""

    id: str
    at: float
    kind: AskKind
    decision: Verdict
    about: str
    what: str
    place: str
    in_room: int
    seq: int | None
    asked_by: str | None
    reason: str | None
    outcome: str
    ended_at: float | None


async def insert(tx: Tx, noted: NewDecision) -> None:
    """Remember a decision of an account's."""
    await tx.execute(INSERT, noted.params)


async def page(
    tx: Tx, account_id: str, limit: int, before: tuple[float, str] | None = None
) -> list[StoredDecision]:
    """The decisions of an account, the latest first; those before a time and id."""
    at, id_ = before or (1e18, "")
    rows = await tx.fetch(_READ, (account_id, at, id_, limit))
    return [StoredDecision(*row) for row in rows]


async def prune(tx: Tx, now: float) -> int:
    """Remove some that are too old, and asks that ended as long ago; how many."""
    some = (now - KEEP_SECONDS, PRUNED_AT_ONCE)
    removed = await tx.execute(
        "DELETE FROM decisions WHERE (account_id, id) IN (SELECT account_id, id FROM decisions "
        "WHERE at < ? ORDER BY at LIMIT ?)",
        some,
    )
    return removed + await tx.execute(
        "DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE until < ? ORDER BY until LIMIT ?)",
        some,
    )
