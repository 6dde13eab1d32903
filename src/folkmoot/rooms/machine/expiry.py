"""Expiry: what happens in a room by itself, when its time has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from folkmoot.core import errors as e
from folkmoot.rooms.machine.changes import take_step
from folkmoot.rooms.machine.model import GATEWAY, Audit, Effect
from folkmoot.rooms.machine.pausing import resume
from folkmoot.rooms.machine.presence import depart, interrupted
from folkmoot.rooms.machine.requests import ceases
from folkmoot.rooms.machine.state import Event, State


def expire(state: State, now: float) -> list[Effect]:
    """Let happen what is due: requests time out, proposals expire, some never came back."""
    effects: list[Effect] = []
    if now >= state.deadlines.next:
        for event, name in state.deadlines.pop_due(now):
            effects += EVENTS[event](state, name, now)
    return effects


def _expired(state: State, id_: str, now: float) -> list[Effect]:
    payload = {"proposal": id_, "state": "expired"}
    told = state.append_own("system.proposal.expired", payload, now, correlation_id=(id_,))
    take_step(state, "expire", id_, told)
    return [told, Audit(now, "proposal.expired", GATEWAY, None, id_)]


def _timed_out(state: State, id_: str, now: float) -> list[Effect]:
    request = state.requests.close(id_)
    if request is None:
        return []
    error = e.RequestTimedOut(f"{request.target_name} did not answer in time.")
    return [state.append_answer(request, now, error=error), *ceases(request)]


def _stayed_away(state: State, account: str, now: float) -> list[Effect]:
    member = state.members.by_account(account)
    return [] if member is None else depart(state, member, now)


def _pause_over(state: State, account: str, now: float) -> list[Effect]:
    paused = state.pauses.get(account)
    return [] if paused is None else [*resume(state, (paused,), now, GATEWAY)]


EVENTS: Final[dict[Event, Callable[[State, str, float], list[Effect]]]] = {
    "proposal": _expired,
    "request": _timed_out,
    "ghost": _stayed_away,
    "begun": interrupted,
    "pause": _pause_over,
}
"""What happens by itself, and what comes of it."""
