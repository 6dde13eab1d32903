"""What an ask is, what can become of it, and what its digest covers. No clock, no store.

An ask is open until it is approved, rejected or withdrawn, or its time is over; then nothing
changes it any more. What a program asked, it does itself once it is approved. What a rule of the
hub asks about, the hub does: approving it starts it, and what came of it ends it.

    open     approved     a program's ask
             running      the hub's: approved, and started in the same moment
             rejected, withdrawn, expired
             edited       another one took its place, whose arguments whoever decides wrote
    running  done         with what the tool answered
             unknown      nobody could note the answer in time: it is never started again
"""

from __future__ import annotations

import json
from collections.abc import Collection
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e

_encode = msgspec.json.Encoder(order="deterministic").encode

AskState: TypeAlias = Literal[
    "open",
    "approved",
    "rejected",
    "withdrawn",
    "expired",
    "edited",
    "running",
    "done",
    "unknown",
]
ENDING: Final = frozenset(("open", "running"))
"""The states that something is still to become of."""
Ending: TypeAlias = Literal["approved", "rejected", "withdrawn"]


class Wish(Struct, frozen=True, kw_only=True):
    """What a program wants to do, and why, in its own words."""

    tool: str
    arguments: dict[str, Any]
    why: str
    until: float
    person: bool = False
    """Whether only someone who shows that they are there can decide."""
    rule: str = ""
    """The rule of the hub that asks; empty for a program's own ask."""
    policy: str = ""
    """The version of all rules."""
    definition: str = ""
    """The digest of the tool as the hub knows it."""

    def call(self, to: str) -> str:
        """Stands for the same call by the same rules; empty for a program's own ask."""
        return self.like(to, self.arguments) if self.rule else ""

    def like(self, to: str, names: Collection[str]) -> str:
        """Stands for all calls by the same rules in which these arguments are the same."""
        same = {name: self.arguments[name] for name in sorted(names) if name in self.arguments}
        told = (self.tool, same, sorted(names), self.rule, self.definition, self.policy, to)
        return sha256(canonical(told)).hexdigest()


class Lasting(Struct, frozen=True):
    """How long an approval is good for other calls, and which arguments are the same in them."""

    seconds: int
    same: tuple[str, ...]


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
    call: str = ""
    """What the hub does once it is approved, by which an equal call finds it."""
    rule: str = ""
    person: int = 0
    state: AskState = "open"
    decided_at: float | None = None
    presence: str | None = None
    """How whoever decided showed that they are there: `passkey`, or that they did not: `token`."""
    reason: str | None = None
    receipt: str | None = None
    run_until: float | None = None
    """Until when the answer of what was started can be noted."""
    result: bytes | None = None
    """What the tool answered."""
    lasts_until: float | None = None
    """Until when its approval is good for other calls like it."""
    same: str | None = None
    """The arguments, as JSON, that are the same in those calls."""
    lasting: str | None = None
    """Stands for all of those calls, see `Wish.like`."""
    edited_as: str | None = None
    """The ask that took its place."""

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
        if self.state == "open" and self.until <= now:
            return "expired"
        if self.state == "running" and (self.run_until or 0) <= now:
            return "unknown"
        return self.state

    def lasts(self, now: float) -> bool:
        """Whether its approval is good for other calls."""
        return self.lasts_until is not None and self.lasts_until > now

    @property
    def wish(self) -> Wish:
        """What was wanted."""
        told = self.told
        return Wish(
            tool=self.tool,
            arguments=told["arguments"],
            why=self.why,
            until=self.until,
            person=bool(self.person),
            rule=self.rule,
            policy=told.get("policy", ""),
            definition=told.get("definition", ""),
        )

    @property
    def settles_by(self) -> float | None:
        """By when something has become of it; None once it has."""
        if self.state not in ENDING:
            return None
        return self.until if self.state == "open" else self.run_until

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
    "edited": "This was approved already, with other arguments.",
    "running": "This was approved already.",
    "done": "This was approved already.",
    "unknown": "This was approved already.",
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
    if wish.rule:
        told |= {"definition": wish.definition, "policy": wish.policy}
    return canonical(told)


def canonical(value: Any) -> bytes:
    """JSON of which there is only one spelling."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def definition_of(definition: Any, schema: Any) -> str:
    """Stands for a tool as it is now."""
    return sha256(_encode((definition, schema))).hexdigest()[:32]
