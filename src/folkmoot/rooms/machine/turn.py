"""One message on its way into a room, and what every act on it has in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from folkmoot.core.errors import CapabilityDenied, PolicyError
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.scopes import ALL
from folkmoot.rooms.machine.deeds import apply
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.model import NO_FACTS, Append, Audit, ConnectionId, Effect, Facts
from folkmoot.rooms.machine.state import State


class Turn(Struct, gc=False):
    """One message on its way in: whose it is, what it is, and when."""

    member: Member
    message: McpxMessage
    kind: Kind
    now: float
    connection: ConnectionId | None
    denied: PolicyError | None
    """Why no capability covers it; only acts that know of another right are asked then."""
    scope: str = ALL
    """That of the credential that it came with."""
    facts: Facts = NO_FACTS
    """What was looked up for it."""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload, empty where there is none."""
        return self.message.payload or {}


Act: TypeAlias = Callable[[State, Turn], list[Effect]]


def accept(state: State, turn: Turn, **more: Any) -> Append:
    """Make the message part of the history, with its effect."""
    appended = state.append(turn.member, turn.message, turn.kind, turn.now, **more)
    apply(state, turn.kind, appended, turn.message, turn.member.name)
    return appended


def audit(turn: Turn, action: str, about: str, **detail: Any) -> Audit:
    """The entry of the log that says what the sender did."""
    return Audit(turn.now, action, turn.member.name, turn.member.account, about, detail)


def check_no_deny(turn: Turn) -> None:
    """Refuse what a deny covers, though no capability is needed for it."""
    if turn.member.rights.denies(turn.kind, turn.message.payload, turn.message.to):
        raise turn.denied or CapabilityDenied(f"A deny of yours covers {turn.kind}.")
