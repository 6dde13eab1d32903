"""Pausing participants, resuming them, and stopping agents that talk in a loop.

Whoever is paused may finish what it was asked and say how it is, and begins nothing. Each act
raises before it changes anything, so a refused message leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.kinds import Kind
from folkmoot.core.policy import PrincipalType
from folkmoot.mcp.wire import CANCELLED, PROGRESS
from folkmoot.rooms.limits import MAX_PAUSE_SECONDS, MAX_REASON
from folkmoot.rooms.machine.changes import Paused, Turn, accept, audit, pause
from folkmoot.rooms.machine.members import Member, Pause
from folkmoot.rooms.machine.model import GATEWAY, Append, Effect, Role
from folkmoot.rooms.machine.state import State

PAUSED: Final = "system.participant.paused"
RESUMED: Final = "system.participant.resumed"


WHILE_PAUSED: Final = frozenset(
    (
        "mcp.response",
        f"mcp.notification.{PROGRESS}",
        f"mcp.notification.{CANCELLED}",
        "mcpx.withdraw",
        "reasoning.cancel",
        "participant.status",
        "participant.compact-done",
    )
)
"""What someone who is paused may still send: what ends something, or says how it is."""


def check_not_paused(state: State, member: Member, kind: Kind) -> None:
    """Refuse new activity of someone who is paused."""
    paused = state.pauses.get(member.account)
    if paused is None or kind.root in WHILE_PAUSED or kind.base in WHILE_PAUSED:
        return
    why = f": {paused.reason.rstrip('.')}" if paused.reason else ""
    who = "The room" if paused.is_loop else paused.by
    raise e.ParticipantPaused(
        f"{who} paused you{why}. You may answer what you were asked; anything else must wait "
        "until you are resumed.",
        by=paused.by,
        reason=paused.reason,
    )


def stop(state: State, turn: Turn) -> list[Effect]:
    """Participants are paused: the hub takes nothing from them that begins something."""
    reason, seconds = _read_pause(turn.payload)
    if not turn.message.to:
        raise e.RecipientRequired("A pause must name whom it stops in its 'to'.")
    whom = [_stoppable(state, turn, name) for name in turn.message.to]
    state.pauses.check_new(len(whom))
    appended = accept(state, turn)
    payload = {"by": turn.member.name, "reason": reason, "timeout_seconds": seconds}
    told = [_paused(state, one.account, one.name, turn.now, payload, appended) for one in whom]
    entries = [audit(turn, "participant.pause", one.name) for one in whom]
    return [appended, *told, *entries]


def _read_pause(payload: dict[str, Any]) -> tuple[str | None, float | None]:
    reason, seconds = payload.get("reason"), payload.get("timeout_seconds")
    if reason is not None and (type(reason) is not str or len(reason) > MAX_REASON):
        raise e.PayloadInvalid(f'"payload.reason" must be a string of at most {MAX_REASON:,}.')
    if seconds is not None and (
        type(seconds) not in (int, float) or not 0 < seconds <= MAX_PAUSE_SECONDS
    ):
        raise e.PayloadInvalid(
            f'"payload.timeout_seconds" must be a number from 0 to {MAX_PAUSE_SECONDS:,}.'
        )
    return reason, seconds


def _stoppable(state: State, turn: Turn, name: str) -> Member:
    member = state.members.named(name)
    if member is None:
        raise e.RecipientUnknown(f"{name} is not in the room.")
    if member is turn.member or member.account == turn.member.account:
        raise e.RecipientInvalid("You cannot pause yourself.")
    if member.role is Role.OWNER:
        raise e.CapabilityDenied("An owner of the room cannot be paused.")
    if member.role is Role.BACKEND:
        raise e.RecipientInvalid(
            "A backend cannot be paused; an owner can remove it from the room."
        )
    return member


def _paused(
    state: State, account: str, name: str, now: float, payload: dict[str, Any], cause: Append | None
) -> Append:
    told = Paused(name, **payload)
    about = () if cause is None else (cause.id,)
    appended = state.append_own(PAUSED, told, now, to=(name,), correlation_id=about, about=account)
    pause(state, appended, told)
    return appended


def let_go_on(state: State, turn: Turn) -> list[Effect]:
    """Those who are named, or everyone, are paused no more."""
    named = {*turn.message.to}
    found = [one for one in state.pauses if not named or _name(state, one) in named]
    if turn.member.principal.type is PrincipalType.AGENT and any(one.is_loop for one in found):
        raise e.CapabilityDenied("Agents that answered each other are released by a person.")
    appended = accept(state, turn)
    told = resume(state, found, turn.now, turn.member.name, (appended.id,))
    entries = [audit(turn, "participant.resume", one.name) for one in found]
    return [appended, *told, *entries]


def resume(
    state: State, paused: Iterable[Pause], now: float, by: str, about: tuple[str, ...] = ()
) -> list[Append]:
    """Let the paused go on, and tell everyone."""
    told: list[Append] = []
    for one in paused:
        name = _name(state, one)
        payload = {"participant": name, "by": by}
        told.append(
            state.append_own(
                RESUMED, payload, now, to=(name,), correlation_id=about, about=one.account
            )
        )
        state.pauses.drop(one.account)
    return told


def _name(state: State, paused: Pause) -> str:
    """The present name of someone who is paused."""
    member = state.members.by_account(paused.account)
    return paused.name if member is None else member.name


def watch_chat(state: State, member: Member, now: float) -> list[Append]:
    """Someone chatted: a person's words release agents that are held, an agent's may be a loop."""
    guard, most = state.guard, state.settings.loop_guard
    if member.principal.type is not PrincipalType.AGENT:
        if guard.agents:
            guard.reset()
        if not state.pauses.by_account:
            return []
        held = [one for one in state.pauses if one.is_loop]
        return resume(state, held, now, member.name)
    if not most:
        return []
    guard.agent_said(member.account, member.name)
    if guard.answers < most:
        return []
    free = {
        account: name for account, name in guard.agents.items() if not state.pauses.get(account)
    }
    guard.reset()
    reason = (
        f"Agents answered each other {most:,} times and no person said anything. A message from a "
        "person releases them."
    )
    payload = {"by": GATEWAY, "reason": reason, "timeout_seconds": None}
    return [_paused(state, account, name, now, payload, None) for account, name in free.items()]
