"""All that a room knows, and the one way by which something becomes part of its history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from folkmoot.core.capability import Rights
from folkmoot.core.errors import FolkmootError
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import JSONRPC
from folkmoot.core.policy import Principal
from folkmoot.rooms.machine.chat import ChatRates
from folkmoot.rooms.machine.deadlines import Deadlines
from folkmoot.rooms.machine.ids import Ids
from folkmoot.rooms.machine.members import Member, Members
from folkmoot.rooms.machine.model import (
    GATEWAY,
    Admit,
    Append,
    ConnectionId,
    HubCheck,
    Role,
    RoomSettings,
    Tell,
)
from folkmoot.rooms.machine.pauses import LoopGuard, Pauses
from folkmoot.rooms.machine.proposals import Proposals
from folkmoot.rooms.machine.rates import SendRates
from folkmoot.rooms.machine.requests import OpenRequest, Requests
from folkmoot.rooms.machine.rights import Grants, all_rights, own_rights
from folkmoot.rooms.machine.waiting import waiting
from folkmoot.rooms.machine.wire import Stamper


class State:
    """What a room is at one moment. Whoever changes it has checked everything first."""

    def __init__(
        self,
        settings: RoomSettings,
        new_id: Callable[[], str],
        hub_check: HubCheck | None = None,
        admit: Admit | None = None,
        *,
        stored: bool = False,
    ) -> None:
        bounds = settings.bounds
        self.settings = settings
        self.new_id = new_id
        self.seq = 0
        self.first_seq = 1
        """From here on nothing of the history is missing."""
        self.oldest_seq = 1
        """The oldest message that is kept; before `first_seq`, others may be missing."""
        self.members = Members(bounds)
        self.deadlines = Deadlines()
        self.requests = Requests(bounds, self.deadlines)
        self.proposals = Proposals(bounds, self.deadlines)
        self.grants = Grants(bounds)
        self.pauses = Pauses(bounds, self.deadlines)
        self.guard = LoopGuard()
        self.rates = ChatRates()
        self.send_rates = SendRates()
        self.ids = Ids(bounds.ids, stored=stored)
        self.hub_check = hub_check
        self.admit = admit
        self._stamper = Stamper()

    def append(
        self,
        member: Member,
        message: McpxMessage,
        kind: Kind,
        now: float,
        *,
        about: str | None = None,
        to: Sequence[str] | None = None,
    ) -> Append:
        """Make a participant's message the next of the history."""
        id_, fresh = message.id, None
        if id_ is None:
            id_ = fresh = self.new_id()
        self.seq = seq = self.seq + 1
        account = member.account
        self.ids.add(id_, seq, account)
        data = self._stamper.stamp(message, seq, now, member.sender, fresh, to)
        return Append(seq, id_, now, kind.text, data, account, about)

    def append_own(
        self,
        kind: str,
        payload: Any,
        now: float,
        *,
        to: Sequence[str] = (),
        correlation_id: Sequence[str] = (),
        sender: str = GATEWAY,
        account: str | None = None,
        about: str | None = None,
    ) -> Append:
        """Make a message of the gateway's the next of the history; it may speak for someone."""
        id_ = self.new_id()
        self.seq = seq = self.seq + 1
        self.ids.add(id_, seq, account)
        data = self._stamper.gateway(
            kind, id_, now, payload, seq=seq, sender=sender, to=to, correlation_id=correlation_id
        )
        return Append(seq, id_, now, kind, data, account, about)

    def append_answer(
        self,
        request: OpenRequest,
        now: float,
        *,
        result: Any = None,
        error: FolkmootError | None = None,
    ) -> Append:
        """Let the gateway answer a request, with a result or an error."""
        outcome = {"result": result} if error is None else {"error": error.as_jsonrpc()}
        return self.append_own(
            request.answer_kind.text,
            {"jsonrpc": JSONRPC, "id": request.payload_id, **outcome},
            now,
            to=request.answer_to,
            correlation_id=(request.id,),
        )

    def say(self, kind: str, payload: Any, now: float, correlation_id: Sequence[str] = ()) -> bytes:
        """A message of the gateway's for one connection alone; it has no `seq`."""
        id_ = self.new_id()
        return self._stamper.gateway(kind, id_, now, payload, correlation_id=correlation_id)

    def role_of(self, account: str, role: Role) -> Role:
        """What someone is here, who was this when the shell last looked: owners change."""
        owners = self.settings.owners
        if owners is None or role not in (Role.OWNER, Role.MEMBER):
            return role
        return Role.OWNER if account in owners else Role.MEMBER

    def member_for(self, principal: Principal, role: Role) -> Member:
        """A participant as it would be here, with the rights it has today."""
        own = own_rights(self.settings, role, principal.account_id)
        member = Member(principal, role, own, self._with_grants(own, principal.account_id))
        member.chat_limit = self.settings.chat.get(principal.type)
        return member

    def refresh(self, member: Member) -> bool:
        """Let a participant's rights be what they are by now; whether they changed."""
        before = list(member.rights)
        member.own = own_rights(self.settings, member.role, member.account)
        member.rights = self._with_grants(member.own, member.account)
        member.chat_limit = self.settings.chat.get(member.principal.type)
        return before != list(member.rights)

    def _with_grants(self, own: Rights, account: str) -> Rights:
        return all_rights(own, self.grants.held(account))

    def serving(self, member: Member, connection: ConnectionId) -> dict[str, Any]:
        """Which connection of a participant's serves, as one of them is told."""
        return {"you": connection == member.serving, "connection": member.serving_id}

    def waiting(self, member: Member) -> dict[str, Any]:
        """What waits for a participant."""
        return waiting(self.requests, self.proposals, member, self.settings.bounds.waiting)

    def welcome(self, member: Member, now: float, connection: ConnectionId, **more: Any) -> bytes:
        """What a participant is told first, and whenever its rights change."""
        settings, held = self.settings, len(member.rights.capabilities)
        you: dict[str, Any] = {**member.shown, "capabilities": member.told}
        if held > len(you["capabilities"]):
            you["capabilities_held"] = held
        paused = self.pauses.get(member.account)
        if paused is not None:
            you["paused"] = {"by": paused.by, "reason": paused.reason}
        payload = {
            "you": you,
            "participants": [m.shown for m in islice(self.members, settings.bounds.listed)],
            "participants_total": len(self.members),
            "room": settings.name,
            "epoch": settings.epoch,
            "history": self._history(),
            "quorum": settings.quorum,
            "serving": self.serving(member, connection),
            "waiting": self.waiting(member),
            **more,
        }
        return self.say("system.welcome", payload, now)

    def _history(self) -> dict[str, Any]:
        """What there is to read again."""
        told = {
            "enabled": self.settings.history,
            "first_seq": self.first_seq,
            "last_seq": self.seq,
        }
        return (
            told if self.oldest_seq >= self.first_seq else {**told, "oldest_seq": self.oldest_seq}
        )

    def rewelcome(self, accounts: Iterable[str], now: float) -> Iterator[Tell]:
        """Tell those of the accounts that are here what they may do now."""
        for account in accounts:
            member = self.members.by_account(account)
            if member is None:
                continue
            self.refresh(member)
            for connection in member.connections:
                yield Tell(connection, self.welcome(member, now, connection))
