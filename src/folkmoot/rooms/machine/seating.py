"""Seating: servers behind the hub take part in a room, under their namespaces.

A backend has no connection and holds no rights. It answers what it is asked, and is here for as
long as the room's owner and the hub have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors import TargetLeft
from folkmoot.core.policy import Principal
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.model import Effect, Role
from folkmoot.rooms.machine.presence import depart, presence, put_out
from folkmoot.rooms.machine.state import State

STAY: Final = (Role.OWNER, Role.BACKEND)
"""Whoever is here as one of these does not give way to a backend with a name like theirs."""


def seat(
    state: State, backends: Sequence[Principal], now: float, *, anew: bool = False
) -> list[Effect]:
    """Let exactly these backends be here.

    Nobody keeps one out by a name like its own, save an owner. With `anew`, what they were asked
    in an earlier life of the room is answered: whoever was to bring the answer is gone.
    """
    wanted = {one.account_id for one in backends}
    effects: list[Effect] = []
    for member in state.members.backends():
        if member.account not in wanted:
            effects += depart(state, member, now)
            continue
        state.deadlines.drop("ghost", member.account)
        if anew:
            effects += _lost(state, member, now)
    for principal in backends:
        if state.members.by_account(principal.account_id) is None:
            effects += _admit(state, principal, now)
    return effects


def _admit(state: State, principal: Principal, now: float) -> list[Effect]:
    rival = state.members.rival(principal.name, principal.account_id)
    if rival is not None and rival.role in STAY:
        return []
    effects = [] if rival is None else put_out(state, rival, CloseCode.NOT_ALLOWED, now)
    member = state.member_for(principal, Role.BACKEND)
    state.members.add(member)
    return [*effects, presence(state, "join", member, now)]


def _lost(state: State, member: Member, now: float) -> list[Effect]:
    effects: list[Effect] = []
    for asked in state.requests.asked(member.account):
        state.requests.close(asked.id)
        error = TargetLeft(
            f"The hub restarted before {member.name} had answered; it may have done what was asked."
        )
        effects.append(state.append_answer(asked, now, error=error))
    return effects
