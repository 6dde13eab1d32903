"""Serving: of a participant's connections one runs what the participant is asked.

It is the newest that offers tools. It says that it begins a request before it runs it, and the room
lets one connection begin each: so a request is run once, however many connections there are. What
nobody has begun passes to the next connection that serves. What was begun by a connection that does
not come back is interrupted: nobody knows how far it came, so the participant decides.
"""

from __future__ import annotations

from typing import Any

from folkmoot.core.errors import NotServing
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.model import ConnectionId, Effect, Tell
from folkmoot.rooms.machine.state import State
from folkmoot.rooms.machine.turn import Turn, accept, check_no_deny


def begin(state: State, turn: Turn) -> list[Effect]:
    """The connection that serves begins a request; the request is the right to it."""
    member, connection = turn.member, turn.connection
    state.requests.check_begin(turn.message, member.account)
    if connection is None or connection != member.serving:
        raise NotServing("Only the connection that serves begins a request, and this one does not.")
    check_no_deny(turn)
    return [accept(state, turn, about=member.connections[connection])]


def tell_serving(
    state: State, member: Member, now: float, but: ConnectionId | None = None
) -> list[Tell]:
    """Tell a participant's connections which of them serves; the one that does, what waits."""
    serving = member.serving
    told: list[Tell] = []
    for connection in member.connections:
        if connection == but:
            continue
        payload: dict[str, Any] = state.serving(member, connection)
        if connection == serving:
            waiting = state.waiting(member)
            payload |= {"requests": waiting["requests"], "more": waiting["more"]}
        told.append(Tell(connection, state.say("system.serving", payload, now)))
    return told


def interrupted(state: State, id_: str, now: float) -> list[Effect]:
    """A connection that had begun a request stayed away: whoever serves now is told."""
    request = state.requests.interrupt(id_)
    member = None if request is None else state.members.by_account(request.target)
    serving = None if member is None else member.serving
    if member is None or serving is None:
        return []
    return [one for one in tell_serving(state, member, now) if one.connection == serving]
