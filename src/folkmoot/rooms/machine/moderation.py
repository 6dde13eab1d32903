"""Moderation: who is given and loses rights, who is asked in, and who is put out.

Each act raises before it changes anything, so a refused message leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, Source, capability
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal
from folkmoot.rooms.limits import MAX_HANDLE
from folkmoot.rooms.machine.changes import (
    Granted,
    Turn,
    accept,
    apply,
    audit,
    check_no_deny,
    grant,
    take_step,
)
from folkmoot.rooms.machine.model import (
    GATEWAY,
    AccountStanding,
    Audit,
    Effect,
    Expel,
    Invite,
    Known,
    Role,
)
from folkmoot.rooms.machine.presence import put_out
from folkmoot.rooms.machine.rights import (
    GrantTerms,
    all_rights,
    own_rights,
    read_grant,
    read_promise,
    read_revoke,
)
from folkmoot.rooms.machine.state import State


def give(state: State, turn: Turn) -> list[Effect]:
    """A grant: never more than the granter holds, refused as a whole."""
    member, asked = turn.member, read_grant(turn.payload)
    name = asked.recipient or ""
    account, role = _known(state, turn, name)
    if account == member.account:
        raise e.RecipientInvalid("You cannot grant rights to yourself.")
    if role is Role.BACKEND:
        raise e.RecipientInvalid(
            "A backend has no rights of its own. Grant them to those who call it."
        )
    own = state.grants.check(asked, member.rights, member.own, account, turn.message.id)
    given = list(asked.capabilities or ())
    # Raises when it would be more than anyone can hold.
    all_rights(
        own_rights(state.settings, role, account),
        [*state.grants.given(account), *map(capability, given)],
    )
    appended = accept(state, turn, about=account)
    granted = Granted(name, given, list(own))
    ack = state.append_own(
        "capability.grant-ack",
        granted,
        turn.now,
        to=(member.name, name),
        correlation_id=(appended.id,),
        account=member.account,
        about=account,
    )
    changed = grant(state, ack, appended.id, granted)
    entry = audit(turn, "capability.grant", name, capabilities=given, grant=appended.id)
    return [appended, ack, entry, *state.announce_rights(changed, turn.now)]


def take_back(state: State, turn: Turn) -> list[Effect]:
    """A revocation, by the granter or by whoever holds the right to revoke it."""
    asked, account = read_revoke(turn.payload), turn.member.account
    recipient = None
    if asked.recipient is not None:
        present = state.members.named(asked.recipient)
        recipient = present.account if present else _granted_to(state, asked.recipient)
    found = state.grants.find(asked, recipient)
    if turn.denied is not None:
        if any(one.granter != account for one in found):
            raise turn.denied
        check_no_deny(turn)
    about = found[0].recipient
    appended = state.append(turn.member, turn.message, turn.kind, turn.now, about=about)
    lost = apply(state, turn.kind, appended, turn.message, turn.member.name)
    names = [member.name for member in map(state.members.by_account, sorted(lost)) if member]
    detail = {"grants": [one.id for one in found], "lost": names}
    entry = audit(turn, "capability.revoke", found[0].recipient_name, **detail)
    return [appended, entry, *state.announce_rights(sorted(lost), turn.now)]


def _granted_to(state: State, name: str) -> str:
    """The account of someone who is not here, by the name under which it was granted something."""
    return next((one.recipient for one in state.grants if one.recipient_name == name), "")


def kick(state: State, turn: Turn) -> list[Effect]:
    """Someone is put out, whether here or not, and is to stay out."""
    name, reason = turn.payload.get("participant"), turn.payload.get("reason")
    if type(name) is not str or not name:
        raise e.PayloadInvalid('"payload.participant" must be a name.')
    if reason is not None and type(reason) is not str:
        raise e.PayloadInvalid('"payload.reason" must be a string.')
    account, role = _known(state, turn, name)
    if account == turn.member.account:
        raise e.RecipientInvalid("You cannot kick yourself; leave instead.")
    if role is Role.OWNER:
        raise e.CapabilityDenied("The owner of a room cannot be kicked.")
    if role is Role.BACKEND:
        raise e.RecipientInvalid("A backend cannot be kicked; owners change the room's backends.")
    appended = state.append(turn.member, turn.message, turn.kind, turn.now, about=account)
    lost = apply(state, turn.kind, appended, turn.message, turn.member.name)
    effects: list[Effect] = [
        appended,
        audit(turn, "room.kick", name),
        Expel(account, name, turn.member.principal),
    ]
    who = turn.member
    effects += _close_proposals(state, account, "kicked", turn.now, who.name, who.account)
    member = state.members.by_account(account)
    if member is not None:
        effects += put_out(state, member, CloseCode.NOT_ALLOWED, turn.now)
    return [*effects, *state.announce_rights(sorted(lost), turn.now)]


def stand(
    state: State, account: str, standing: AccountStanding, now: float
) -> tuple[list[Effect], bool]:
    """An account changed for good or bad; and whether what others hold changed by it.

    Nobody waits for what someone proposed who is suspended or deleted, and nobody answers for what
    they granted. What is only suspended comes back.
    """
    effects: list[Effect] = []
    if standing == "restored":
        changed = state.grants.go_on(account)
    else:
        effects = _close_proposals(state, account, standing, now)
        if standing == "suspended":
            changed = state.grants.halt(account)
        else:
            changed = state.grants.end_of(account) | state.grants.forget(account)
    return [*effects, *state.announce_rights(sorted(changed), now)], bool(changed)


def _close_proposals(
    state: State,
    account: str,
    reason: str,
    now: float,
    by: str = GATEWAY,
    by_account: str | None = None,
) -> list[Effect]:
    """Close all that someone proposed, since nobody waits for its outcome."""
    effects: list[Effect] = []
    for proposal in state.proposals.open_of(account):
        id_ = proposal.id
        payload = {"proposal": id_, "state": "withdrawn", "reason": reason}
        told = state.append_own(
            "system.proposal.withdrawn", payload, now, correlation_id=(id_,), account=by_account
        )
        take_step(state, "kick", id_, told)
        entry = Audit(now, "proposal.withdrawn", by, by_account, id_, {"reason": reason})
        effects += [told, entry]
    return effects


NAMING: Final = {"room.kick": "participant", "capability.grant": "recipient"}
"""Where messages name someone who need not be here."""


def name_to_look_up(state: State, message: McpxMessage) -> str | None:
    """The absent participant a message names; the store knows whether they may enter."""
    member, payload = NAMING.get(message.kind.root), message.payload
    name = payload.get(member) if member is not None and type(payload) is dict else None
    if type(name) is not str or not 0 < len(name) <= MAX_HANDLE:
        return None
    return name if state.members.named(name) is None else None


def _known(state: State, turn: Turn, name: str) -> Known:
    """Someone who is here, or may enter."""
    member = state.members.named(name)
    known = turn.facts.names.get(name) if member is None else Known(member.account, member.role)
    if known is not None:
        return known
    raise e.RecipientUnknown("The participant who is named is not in the room.")


def invite(state: State, turn: Turn) -> list[Effect]:
    """Someone is asked in: an account by its handle, or a guest by a name nobody else has."""
    handle, guest = turn.payload.get("handle"), turn.payload.get("guest")
    if (handle is None) is (guest is None):
        raise e.PayloadInvalid('An invitation names either a "handle" or a "guest".')
    if guest is not None:
        if type(guest) is not str:
            raise e.PayloadInvalid('"payload.guest" must be a name.')
        state.members.check_name(guest, None)
    elif type(handle) is not str or not 0 < len(handle) <= MAX_HANDLE:
        raise e.PayloadInvalid('"payload.handle" must be a handle.')
    promised = read_promise(turn.payload)
    if promised.capabilities:
        if guest is None:
            raise e.PayloadInvalid("Only a guest's invitation has capabilities; grant them later.")
        state.grants.check(promised, turn.member.rights, turn.member.own, "", turn.message.id)
    appended, who = accept(state, turn), turn.member.principal
    given = promised.capabilities or ()
    return [
        appended,
        audit(turn, "room.invite", guest or handle or ""),
        Invite(turn.connection, appended.id, who, handle, guest, given),
    ]


def apply_guest_grants(
    state: State,
    guest: Principal,
    by: str,
    own: Rights,
    promised: Sequence[Source],
    id_: str,
    now: float,
) -> list[Effect]:
    """Give a guest the promised rights its inviter still has, within the limits."""
    held = all_rights(own, state.grants.held(by))
    given = [it for it in promised if held.covers(it)]
    asked, account = GrantTerms(guest.name, tuple(given)), guest.account_id
    try:
        flags = state.grants.check(asked, held, own, account, id_)
    except (e.TooManyOpen, e.IdUsed):
        return []
    if not given:
        return []
    granted, inviter = Granted(guest.name, given, list(flags)), state.members.by_account(by)
    ack = state.append_own(
        "capability.grant-ack",
        granted,
        now,
        to=(guest.name,) if inviter is None else (inviter.name, guest.name),
        correlation_id=(id_,),
        account=by,
        about=account,
    )
    grant(state, ack, id_, granted)
    name, detail = by if inviter is None else inviter.name, {"capabilities": given, "grant": id_}
    return [ack, Audit(now, "capability.grant", name, by, guest.name, detail)]
