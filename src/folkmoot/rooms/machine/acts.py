"""What a room does with messages: chat, requests, answers and proposals, and the table of all acts.

Each act raises before it changes anything, so a refused message leaves no trace.
"""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.chat import METHOD as CHAT_METHOD
from folkmoot.core.chat import replaced_by
from folkmoot.core.kinds import Kind
from folkmoot.mcp.wire import CANCELLED, PROGRESS
from folkmoot.rooms.machine import chat
from folkmoot.rooms.machine.changes import (
    Act,
    Turn,
    accept,
    apply,
    audit,
    check_no_deny,
    fulfilled_by,
    request_of,
)
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.model import GATEWAY, Append, AskBackend, Effect, Role
from folkmoot.rooms.machine.moderation import give, invite, kick, take_back
from folkmoot.rooms.machine.pausing import let_go_on, stop, watch_chat
from folkmoot.rooms.machine.presence import begin
from folkmoot.rooms.machine.proposals import Proposal, expiry
from folkmoot.rooms.machine.requests import ceases
from folkmoot.rooms.machine.state import State


def say(state: State, turn: Turn) -> list[Effect]:
    """Chat, in either spelling."""
    member, message, kind, now = turn.member, turn.message, turn.kind, turn.now
    payload = message.payload or {}
    chat.check_body(payload if kind.protocol == "chat" else payload["params"])
    about = _replaced(state, turn)
    if member.chat_limit is not None:
        state.rates.take(member.account, member.chat_limit, now)
    said = state.append(member, message, kind, now, about=about, is_chat=about is None)
    return [said, *watch_chat(state, member, now)]


def _replaced(state: State, turn: Turn) -> str | None:
    """The `seq` of the sender's own message that chat takes the place of, if it does."""
    id_ = replaced_by(turn.kind, turn.message.payload)
    if id_ is None:
        return None
    used = state.ids.find(id_, turn.facts.ids)
    if used is None:
        raise e.MessageUnknown("The room has no message with the id in 'replaces'.")
    if used.account != turn.member.account or not used.is_chat:
        raise e.NotRequester("You can edit and delete only what you said in chat yourself.")
    return str(used.seq)


def mark(state: State, turn: Turn) -> list[Effect]:
    """Chat that was seen, or that its sender wants no answer to any more."""
    member, message = turn.member, turn.message
    used = state.ids.find(message.correlation_id[0], turn.facts.ids)
    if used is None:
        raise e.MessageUnknown("The room has no message with the id in 'correlation_id'.")
    if turn.kind.operation == "cancel" and used.account != member.account:
        raise e.NotRequester("Only its sender can cancel a chat message.")
    return [state.append(member, message, turn.kind, turn.now)]


def request(state: State, turn: Turn) -> list[Effect]:
    """A request to one participant, or to the gateway; it may fulfil a proposal."""
    (name,) = turn.message.to
    member, payload = turn.member, turn.payload
    if name == member.name:
        raise e.RecipientInvalid("You cannot send a request to yourself.")
    proposal = _fulfilled(state, turn, name)
    if name == GATEWAY:
        effects = _ask_gateway(state, turn)
    else:
        target = state.members.named(name)
        if target is None:
            raise e.RecipientUnknown(f"{name} is not in the room.")
        state.requests.check_new(member.account, target.account, payload, turn.message.id)
        appended = accept(state, turn, about=target.account)
        effects = [appended, *_asked(state, appended.id, target, turn)]
    if proposal is not None:
        by = {"request": effects[0].id} if isinstance(effects[0], Append) else {}
        detail = {"kind": proposal.kind, **by}
        effects.insert(1, audit(turn, "proposal.fulfilled", proposal.id, **detail))
    return effects


def _asked(state: State, id_: str, target: Member, turn: Turn) -> list[Effect]:
    """What is to be done where a backend was asked: nobody else answers for it."""
    open_ = state.requests.get(id_)
    if target.role is not Role.BACKEND or open_ is None:
        return []
    to, kind = open_.answer_to, open_.answer_kind.text
    by = open_.requester
    return [AskBackend(id_, by, target.principal, kind, to, turn.payload, turn.scope)]


def _fulfilled(state: State, turn: Turn, to: str) -> Proposal | None:
    named = fulfilled_by(state, turn.message)
    if not named:
        return None
    if len(named) > 1:
        raise e.ProposalAltered("A request can fulfil only one proposal.")
    account = turn.member.account
    return state.proposals.check_fulfilment(named[0], account, to, turn.payload, turn.now)


def _ask_gateway(state: State, turn: Turn) -> list[Effect]:
    """Answer a request to the gateway in the same turn."""
    member, says = turn.member, turn.kind.text == chat.SAY_KIND
    if says:
        state.rates.take(member.account, member.chat_limit, turn.now)
    appended = state.append(member, turn.message, turn.kind, turn.now, about=GATEWAY)
    asked = request_of(state, appended, turn.message, member.name)
    apply(state, turn.kind, appended, turn.message, member.name)
    effects: list[Effect] = [appended]
    try:
        result = _broadcast(state, turn, appended, effects) if says else _known(turn.kind)
    except e.FolkmootError as error:
        return [*effects, state.append_answer(asked, turn.now, error=error)]
    return [*effects, state.append_answer(asked, turn.now, result=result)]


def _broadcast(state: State, turn: Turn, asked: Append, effects: list[Effect]) -> dict[str, Any]:
    arguments = chat.check_arguments(turn.payload["params"].get("arguments"))
    member = turn.member
    broadcast = state.append_own(
        chat.NOTIFIED_KIND,
        chat.notification(arguments),
        turn.now,
        correlation_id=(asked.id,),
        sender=member.name,
        account=member.account,
    )
    effects += [broadcast, *watch_chat(state, member, turn.now)]
    return chat.said(broadcast.id)


def _known(kind: Kind) -> dict[str, Any]:
    answer = _GATEWAY_ANSWERS.get(kind.text)
    if answer is None:
        raise e.MethodUnknown(f"The gateway has no {kind.context or kind.method}.")
    return answer


_GATEWAY_ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "mcp.request.ping": {},
    "mcp.request.tools/list": {"tools": [chat.SAY]},
}


def respond(state: State, turn: Turn) -> list[Effect]:
    """The answer to an open request; the request is the right to it, unless a deny stops it."""
    open_ = state.requests.check_response(turn.message, turn.member.account)
    turn.kind = open_.answer_kind
    check_no_deny(turn)
    to, meant = turn.message.to, open_.answer_to
    return [accept(state, turn, to=None if to == meant or {*to} == {*meant} else meant)]


def about_request(state: State, turn: Turn) -> list[Effect]:
    """Progress and cancellation: the request is the right to them, and says whom they are for."""
    open_, other = state.requests.check_about(turn.message, turn.member.account)
    check_no_deny(turn)
    to = None if turn.message.to else (other,)
    appended = accept(state, turn, to=to)
    return [appended, *ceases(open_)] if turn.kind.method == CANCELLED else [appended]


def propose(state: State, turn: Turn) -> list[Effect]:
    """Open a proposal."""
    state.proposals.check_new(turn.member.account, turn.message.id)
    seconds = expiry(turn.payload, state.settings.proposal_seconds)
    appended = accept(state, turn)
    detail = {"kind": appended.kind, "expires_at": turn.now + seconds}
    return [appended, audit(turn, "proposal.open", appended.id, **detail)]


def withdraw(state: State, turn: Turn) -> list[Effect]:
    """The proposer takes a proposal back."""
    (id_,) = turn.message.correlation_id
    proposal = state.proposals.check("withdraw", id_, turn.member.account, turn.now)
    return [accept(state, turn), audit(turn, "proposal.withdrawn", id_, kind=proposal.kind)]


def reject(state: State, turn: Turn) -> list[Effect]:
    """Someone else says no; with a quorum, several must."""
    (id_,) = turn.message.correlation_id
    proposal = state.proposals.check("reject", id_, turn.member.account, turn.now)
    appended = accept(state, turn)
    detail = {
        "kind": proposal.kind,
        "state": proposal.state.value,
        "rejections": len(proposal.rejected_by),
        "quorum": state.settings.quorum,
    }
    return [appended, audit(turn, "proposal.rejected", id_, **detail)]


ACTS: Final[dict[str, Act]] = {
    "mcp.request": request,
    "mcp.response": respond,
    "mcp.proposal": propose,
    "mcpx.begin": begin,
    "mcpx.withdraw": withdraw,
    "mcpx.reject": reject,
    "capability.grant": give,
    "capability.revoke": take_back,
    "room.kick": kick,
    "room.invite": invite,
    "participant.pause": stop,
    "participant.resume": let_go_on,
    "chat.message": say,
    f"mcp.notification.{CHAT_METHOD}": say,
    "chat.acknowledge": mark,
    "chat.cancel": mark,
    f"mcp.notification.{CANCELLED}": about_request,
    f"mcp.notification.{PROGRESS}": about_request,
}
"""By the root of a kind; notifications, of which only a few are acted on, by the base."""

RIGHT_OF_THEIR_OWN: Final = frozenset((respond, begin, about_request, take_back))
"""Acts that may be somebody's right without a capability; they are asked when policy says no."""
