"""Receiving messages: the same checks for all, then the act of their kind.

Plain chat, which most messages are, is received in runs: what is the same for a whole run is
checked once. Whatever is not plain, or not certain to be allowed, is received one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.chat import replaced_by
from folkmoot.core.kindcheck import check
from folkmoot.core.kinds import CONTROL, Kind
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.policy import Principal, PrincipalType, judge
from folkmoot.core.scopes import ALL
from folkmoot.core.strict import SHALLOW
from folkmoot.quotas import ROOM_BYTES
from folkmoot.rooms.machine.acts import ACTS, RIGHT_OF_THEIR_OWN
from folkmoot.rooms.machine.changes import Turn
from folkmoot.rooms.machine.chat import PLAIN_KINDS, PLAIN_VALUES, read_plain
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.model import (
    Append,
    Audit,
    ConnectionId,
    Effect,
    Facts,
    LookupNeeded,
    MessageCheck,
    Tell,
)
from folkmoot.rooms.machine.moderation import NAMING, name_to_look_up
from folkmoot.rooms.machine.pausing import check_not_paused
from folkmoot.rooms.machine.wire import LARGE, join_large, readable, refusal

if TYPE_CHECKING:
    from folkmoot.rooms.machine.state import State

MARKS: Final = ("chat.acknowledge", "chat.cancel")
"""Kinds that are about a message which must be there."""
_AGENT: Final = PrincipalType.AGENT


class Sender(Struct, frozen=True):
    """Who sends messages, and how: on a connection, or None, and with a credential's scope."""

    member: Member
    connection: ConnectionId | None
    scope: str
    principal: Principal
    """As the hub's policy knows them, with the scope."""
    hub_check: MessageCheck | None


Received: TypeAlias = tuple[list[Effect], int]
"""What came of some messages, and how many of them, from the first on, were accepted or refused."""


def sender_of(state: State, member: Member, connection: ConnectionId | None, scope: str) -> Sender:
    """The sender of a batch, with what all its messages share."""
    hub_check = state.hub_check
    who = member.principal if scope == ALL else replace(member.principal, scope=scope)
    return Sender(member, connection, scope, who, hub_check and hub_check(who))


def receive(
    state: State,
    connection: ConnectionId,
    messages: Sequence[bytes | McpxMessage],
    now: float,
    facts: Facts,
) -> Received:
    """Accept messages of a connection, or refuse them, until one needs a look into the store."""
    effects: list[Effect] = []
    limits, old_spellings = state.settings.limits, state.settings.accept_old_spellings
    sender: Sender | None = None
    taken, count = 0, len(messages)
    state.admitted = 0
    while taken < count:
        # Asked for each: by a message its sender may be put out.
        member = state.members.on(connection)
        if member is None:
            return effects, count
        if sender is None:
            sender = sender_of(state, member, connection, member.scopes.get(connection, ALL))
        if _may_be_plain(state, sender):
            taken = _receive_plain(state, sender, messages, taken, now, effects)
            if taken == count:
                break
        message = messages[taken]
        try:
            if type(message) is not McpxMessage:
                message = decode_mcpx(message, limits, old_spellings)
            effects += accept_from(state, sender, message, now, facts)
            state.admitted += ROOM_BYTES + len(message.raw)
        except LookupNeeded:
            break
        except e.FolkmootError as error:
            effects += _refused(state, sender, message, error, now)
        taken += 1
    return effects, taken


def _may_be_plain(state: State, sender: Sender) -> bool:
    """Whether all that could refuse a sender's plain chat is what `_receive_plain` checks."""
    limits = state.settings.limits
    return not (
        sender.hub_check is not None
        or sender.member.principal.type is _AGENT
        # What a person says would have to release those whom the loop guard holds.
        or state.guard.agents
        or state.pauses.by_account
        or limits.nesting < SHALLOW
        or 0 < limits.values < PLAIN_VALUES
    )


def _receive_plain(
    state: State,
    sender: Sender,
    messages: Sequence[Any],
    start: int,
    now: float,
    effects: list[Effect],
) -> int:
    """Accept the plain chat that messages go on with from `start`; where it ends.

    Each message passes what `accept_from` checks, save what plain chat cannot break. It is accepted
    in runs of one kind, of which either all messages have ids or none.
    """
    member = sender.member
    while start < len(messages):
        kind, ids, end = _read_run(state, messages, start)
        if kind is None or not member.rights.allows_all(kind):
            break
        run = messages[start:end] if end - start < len(messages) else messages
        if _admit_run(state, member, run, now):
            _append_run(state, member, kind, run, ids, now, effects)
        else:
            for at, raw in enumerate(run):
                try:
                    _admit(state, member, kind, len(raw), now)
                    state.rates.take(member.account, member.chat_limit, now)
                except e.FolkmootError as error:
                    effects += _refused(state, sender, raw, error, now)
                else:
                    own = ids and ids[at : at + 1]
                    _append_run(state, member, kind, (raw,), own, now, effects)
        start = end
    return start


def _read_run(
    state: State, messages: Sequence[Any], start: int
) -> tuple[Kind | None, list[str] | None, int]:
    """The kind of the plain chat at a place, the ids of a run of it, if it has any, and its end."""
    most_bytes, at, kind = state.settings.limits.message_bytes, start, None
    named: dict[str, None] | None = None
    while at < len(messages):
        raw = messages[at]
        if type(raw) is not bytes or len(raw) > most_bytes or (said := read_plain(raw)) is None:
            break
        id_ = said.id
        if kind is None:
            kind = PLAIN_KINDS[said.payload.format]
            named = None if id_ is None else {}
        elif kind is not PLAIN_KINDS[said.payload.format]:
            break
        if id_ is None:
            if named is not None:
                break
        elif named is None or id_ in named or not state.ids.is_free(id_):
            break
        else:
            named[id_] = None
        at += 1
    return (None if at == start else kind), (None if named is None else [*named]), at


def _admit_run(state: State, member: Member, run: Sequence[bytes], now: float) -> bool:
    """Count messages together against quotas and rates; where one of them may be refused, none."""
    account, rates, chat_limit = member.account, state.settings.rates, member.chat_limit
    if rates is None and chat_limit is None and state.admit is None:
        return True
    count, size = len(run), sum(map(len, run))
    try:
        if state.admit is not None:
            stored = state.admitted + ROOM_BYTES * count + size
            state.admit(account, state.settings.owner, stored)
    except e.FolkmootError:
        return False
    if not state.rates.take_whole(account, chat_limit, count, now):
        return False
    if rates is None or state.send_rates.take_whole(account, rates, count, size, now):
        return True
    state.rates.give_back(account, chat_limit, count)
    return False


def _admit(state: State, member: Member, kind: Kind, size: int, now: float) -> None:
    """Count one message against rates and quotas, or raise what refuses it."""
    settings = state.settings
    if settings.rates is not None:
        state.send_rates.take(member.account, settings.rates, kind.base, size, now)
    if state.admit is not None:
        state.admit(member.account, settings.owner, state.admitted + ROOM_BYTES + size)


def _append_run(
    state: State,
    member: Member,
    kind: Kind,
    run: Sequence[bytes],
    own: list[str] | None,
    now: float,
    effects: list[Effect],
) -> None:
    """Make plain chat the next of the history, with ids of the room's where it has none."""
    head, text, account = state.stamp_head(now, member.sender), kind.text, member.account
    append, seq = effects.append, state.seq
    fresh = own is None
    if own is None:
        own = [state.new_id()] if len(run) == 1 else state.new_ids(len(run))
        state.add_made(own, seq + 1, account)
    else:
        state.ids.add(own, seq + 1, account, is_chat=True)
    for raw, id_ in zip(run, own, strict=True):
        seq += 1
        if fresh:
            stamp = f'{{"seq":{seq}{head}"id":"{id_}",'.encode()
        else:
            stamp = f'{{"seq":{seq}{head}'.encode()
        data = stamp + raw[1:] if len(raw) < LARGE else join_large(stamp, raw)
        append(Append(seq, id_, now, text, data, account))
    state.seq = seq
    if state.admit is not None:
        state.admitted += ROOM_BYTES * len(run) + sum(map(len, run))


def accept_from(
    state: State, sender: Sender, message: McpxMessage, now: float, facts: Facts
) -> list[Effect]:
    """Check a message against everything that may refuse it, and let its kind's act do the rest."""
    payload, to = message.payload, message.to
    member, hub_check = sender.member, sender.hub_check
    if message.sender is not None and message.sender != member.name:
        raise e.SenderForged(f"You are {member.name}; a message is from its sender.")
    if message.id is not None:
        state.ids.check(message.id, member.account, facts.ids)
    root = message.kind.root
    if root in NAMING:
        name = name_to_look_up(state, message)
        if name is not None and name not in facts.names:
            raise LookupNeeded
    for about in named_ids(message):
        state.ids.find(about, facts.ids)
    if message.context is not None and CONTROL.search(message.context):
        # Not where messages are decoded: those that are stored already must stay readable.
        raise e.InvalidEnvelope("context: Expected no control characters.", member="context")
    if len(to) > 1 and len({*to}) < len(to):
        raise e.RecipientInvalid("A recipient is named twice.")
    kind = check(message.kind, payload, to, message.correlation_id)
    if hub_check is not None:
        hub_check(sender.principal, state.settings.name, kind, message)
    act, denied = ACTS.get(kind.base) or ACTS.get(kind.root), None
    if not member.rights.allows(kind, payload, to):
        denied = judge(member.principal, member.rights, kind, payload, to).error
        if denied is not None and act not in RIGHT_OF_THEIR_OWN:
            raise denied
    if state.pauses.by_account:
        check_not_paused(state, member, kind)
    _admit(state, member, kind, len(message.raw), now)
    if act is None:
        return [state.append(member, message, kind, now)]
    turn = Turn(member, message, kind, now, sender.connection, denied, sender.scope, facts)
    return act(state, turn)


def named_ids(message: McpxMessage) -> Sequence[str]:
    """The ids of messages that one is about, and that must be there."""
    if message.kind.root in MARKS:
        return message.correlation_id[:1]
    replaced = replaced_by(message.kind, message.payload)
    return () if replaced is None else (replaced,)


def check_listing(state: State, sender: Sender, message: McpxMessage, now: float) -> Member:
    """The participant whose tools someone lists, if they may; none of it is part of the history."""
    member, payload, to = sender.member, message.payload, message.to
    kind = check(message.kind, payload, to, ())
    if sender.hub_check is not None:
        sender.hub_check(sender.principal, state.settings.name, kind, message)
    if not member.rights.allows(kind, payload, to):
        denied = judge(member.principal, member.rights, kind, payload, to).error
        if denied is not None:
            raise denied
    if state.settings.rates is not None:
        state.send_rates.take(member.account, state.settings.rates, kind.base, 0, now)
    target = state.members.named(to[0])
    if target is None:
        raise e.RecipientUnknown(f"{to[0]} is not in the room.")
    return target


def _refused(
    state: State,
    sender: Sender,
    message: bytes | McpxMessage,
    error: e.FolkmootError,
    now: float,
) -> list[Effect]:
    """Tell a sender why a message is refused; what policy refuses is also in the audit log."""
    member = sender.member
    told = Tell(sender.connection, refusal_of(state, member, sender.scope, message, error, now))
    if not isinstance(error, e.PolicyError):
        return [told]
    about = error.data.get("attempted_kind")
    if about is None and isinstance(message, McpxMessage):
        about = message.kind.text
    detail = {"outcome": error.code}
    entry = Audit(now, "policy.refused", member.name, member.account, str(about or ""), detail)
    return [told, entry]


def refusal_of(
    state: State,
    member: Member,
    scope: str,
    message: bytes | McpxMessage,
    error: e.FolkmootError,
    now: float,
) -> bytes:
    """The `system.error` that tells a sender why a message is refused."""
    id_: str | None
    kind: str | None
    if isinstance(message, McpxMessage):
        id_, kind = message.id, message.kind.text
    else:
        id_, kind = readable(message, state.settings.limits)
    payload = refusal(error, error.data.get("attempted_kind") or kind, state.told(member, scope))
    return state.say("system.error", payload, now, () if id_ is None else (id_,))
