"""Presence: how participants come into a room, are renamed in it, and leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.policy import Principal
from folkmoot.rooms.machine.changes import Turn, accept, check_no_deny
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.model import Append, Attach, Close, ConnectionId, Effect, Role, Tell
from folkmoot.rooms.machine.requests import ceases
from folkmoot.rooms.machine.state import State


def begin(state: State, turn: Turn) -> list[Effect]:
    """The connection that serves begins a request; the request is the right to it."""
    member, connection = turn.member, turn.connection
    state.requests.check_begin(turn.message, member.account)
    if connection is None or connection != member.serving:
        raise e.NotServing(
            "Only the connection that serves begins a request, and this one does not."
        )
    check_no_deny(turn)
    return [accept(state, turn, about=member.connections[connection])]


def tell_serving(
    state: State, member: Member, now: float, but: ConnectionId | None = None
) -> list[Tell]:
    """Tell a participant's connections which one serves, and that one its open requests."""
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


JOINED: Final = "system.presence.join"


class Joining(NamedTuple):
    """The arguments of a join."""

    connection: ConnectionId
    conn: str | None
    """What the participant calls the connection."""
    scope: str
    """That of the credential that it is opened with."""
    after: int | None
    epoch: str | None
    serve: bool
    linger: bool
    """Whether the participant stays for a while when the connection ends."""
    more: Mapping[str, Any]
    """What is told in the welcome beside the rest."""


def check_join(
    state: State, principal: Principal, role: Role, conn: str | None, now: float
) -> Member:
    """Refuse someone who may not enter, or return the participant they would be.

    Nothing has changed where it raises.
    """
    role = state.role_of(principal.account_id, role)
    state.members.check_new(principal, role, conn)
    newcomer = state.member_for(principal, role)
    rates = state.settings.rates
    if rates is not None and state.members.by_account(principal.account_id) is None:
        # Everyone is told that someone came, so coming counts like a message.
        state.send_rates.take(principal.account_id, rates, JOINED, 0, now)
    return newcomer


def join(state: State, newcomer: Member, asked: Joining, now: float) -> list[Effect]:
    """Let someone in on a new connection."""
    principal, conn, connection = newcomer.principal, asked.conn, asked.connection
    effects: list[Effect] = []
    rival = state.members.rival(principal.name, principal.account_id)
    if rival is not None:
        effects += put_out(state, rival, CloseCode.NOT_ALLOWED, now)
    member = state.members.by_account(principal.account_id)
    came, served = member is None, None if member is None else member.serving_id
    if member is None:
        member = newcomer
        state.members.add(member)
    else:
        gone = member.replaced_by(conn)
        if gone is not None:
            state.members.disconnect(member, gone)
            effects.append(Close(gone, CloseCode.REPLACED))
        effects += _renamed(state, member, principal, now)
        effects += _changed_role(state, member, newcomer.role, now)
    if asked.serve and conn is None:
        conn = state.new_id()
    state.members.connect(member, connection, conn, offers=asked.serve, scope=asked.scope)
    if asked.linger:
        member.lingering.add(connection)
    state.deadlines.drop("ghost", member.account)
    state.requests.returned(member.account, conn)
    resumed = _resumed(state, asked.after, asked.epoch)
    complete = resumed.get("resume", {}).get("complete", False)
    welcome = state.welcome(member, now, connection, **resumed, **asked.more)
    effects.append(Attach(connection, welcome, asked.after if complete else None, state.seq))
    if member.serving_id != served:
        effects += tell_serving(state, member, now, but=connection)
    if came:
        effects.append(presence(state, "join", member, now))
    return effects


def _resumed(state: State, after: int | None, epoch: str | None) -> dict[str, Any]:
    """What the welcome says of a wish to resume, where there is one."""
    if after is None:
        return {}
    reason = None
    if epoch is not None and epoch != state.settings.epoch:
        reason = "epoch_changed"
    elif not 0 <= after <= state.seq:
        reason = "seq_unknown"
    elif after < state.first_seq - 1 or not state.settings.history:
        reason = "history_gone"
    return {"resume": {"after": after, "complete": reason is None, "reason": reason}}


def rename(state: State, principal: Principal, now: float) -> list[Effect]:
    """Give someone another name; a refused one puts them out, an owner's puts a rival out."""
    members = state.members
    member = members.by_account(principal.account_id)
    if member is None:
        return []
    try:
        members.check_name(principal.name, principal.account_id, member.role)
    except e.NameRefused:
        return put_out(state, member, CloseCode.NOT_ALLOWED, now)
    rival = members.rival(principal.name, principal.account_id)
    gone = [] if rival is None else put_out(state, rival, CloseCode.NOT_ALLOWED, now)
    return gone + _renamed(state, member, principal, now)


def _renamed(state: State, member: Member, principal: Principal, now: float) -> list[Effect]:
    if member.principal == principal:
        return []
    left = presence(state, "leave", member, now)
    state.members.rename(member, principal)
    joined = presence(state, "join", member, now)
    return [left, joined, *state.announce_rights((member.account,), now)]


def _changed_role(state: State, member: Member, role: Role, now: float) -> list[Effect]:
    if member.role is role:
        return []
    member.role = role
    return list(state.announce_rights((member.account,), now))


def disconnect(state: State, connection: ConnectionId, now: float) -> list[Effect]:
    """A connection ended; with the last one its participant leaves."""
    member = state.members.on(connection)
    if member is None:
        return []
    served, conn = member.serving, member.connections[connection]
    lingers = connection in member.lingering
    state.members.disconnect(member, connection)
    if not member.connections:
        if not lingers:
            return depart(state, member, now)
        state.deadlines.set("ghost", member.account, now + state.settings.return_seconds)
        return []
    if conn is not None:
        state.requests.await_return(member.account, now + state.settings.return_seconds, conn)
    return [*tell_serving(state, member, now)] if served == connection else []


def put_out(state: State, member: Member, code: CloseCode, now: float) -> list[Effect]:
    """Close a participant's connections and let it be gone."""
    return [*(Close(one, code) for one in member.connections), *depart(state, member, now)]


def depart(state: State, member: Member, now: float) -> list[Effect]:
    """Let a participant be gone: everyone is told, and what it was asked is answered for it."""
    state.members.remove(member)
    state.deadlines.drop("ghost", member.account)
    effects: list[Effect] = [presence(state, "leave", member, now)]
    for asked in state.requests.asked(member.account):
        state.requests.close(asked.id)
        error = e.TargetLeft(f"{member.name} left the room.")
        effects += [state.append_answer(asked, now, error=error), *ceases(asked)]
    return effects


def presence(state: State, event: str, member: Member, now: float) -> Append:
    """The message that someone came or went."""
    payload = {"event": event, "participant": member.shown}
    return state.append_own(f"system.presence.{event}", payload, now, about=member.account)


STAY: Final = (Role.OWNER, Role.BACKEND)
"""Whoever is here as one of these does not give way to a backend with a name like theirs."""


def set_backends(
    state: State, backends: Sequence[Principal], now: float, *, anew: bool = False
) -> list[Effect]:
    """Make exactly these backends participants.

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
        error = e.TargetLeft(
            f"The hub restarted before {member.name} had answered; it may have done what was asked."
        )
        effects.append(state.append_answer(asked, now, error=error))
    return effects
