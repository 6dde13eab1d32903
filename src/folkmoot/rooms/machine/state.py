"""All that a room knows, and the one way by which a message becomes part of its history.

With it: what is due when.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, Source
from folkmoot.core.kinds import Kind
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import JSONRPC
from folkmoot.core.policy import Principal
from folkmoot.core.scopes import ALL
from folkmoot.core.uuids import Uuids
from folkmoot.rooms.machine.chat import NOTIFIED_KIND, ChatRates, SendRates
from folkmoot.rooms.machine.ids import Ids
from folkmoot.rooms.machine.members import LoopGuard, Member, Members, Pauses
from folkmoot.rooms.machine.model import (
    GATEWAY,
    Admit,
    Append,
    ConnectionId,
    HubCheck,
    HubDenies,
    Role,
    RoomSettings,
    Tell,
)
from folkmoot.rooms.machine.proposals import Proposals, waiting
from folkmoot.rooms.machine.requests import OpenRequest, Requests
from folkmoot.rooms.machine.rights import Grants, all_rights, own_rights
from folkmoot.rooms.machine.wire import Stamper

Event: TypeAlias = Literal["proposal", "request", "ghost", "begun", "pause"]
"""What happens by itself: a proposal expires, a request times out, someone did not come back, the
connection that had begun a request did not, or a pause is over.
"""

_SLACK: Final = 64


class Deadlines:
    """Moments by event and name. What is set again or dropped leaves a dead entry for a while.

    Dead entries never outnumber the live ones by more than a little.
    """

    __slots__ = ("_heap", "_live", "next")

    def __init__(self) -> None:
        self._heap: list[tuple[float, Event, str]] = []
        self._live: dict[tuple[Event, str], float] = {}
        self.next = math.inf
        """No later than the first moment; infinity when there is nothing to come."""

    def set(self, event: Event, name: str, at: float) -> None:
        """Let something happen at a moment."""
        self._live[event, name] = at
        heapq.heappush(self._heap, (at, event, name))
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [(moment, *live) for live, moment in self._live.items()]
            heapq.heapify(self._heap)
        self.next = self._heap[0][0]

    def drop(self, event: Event, name: str) -> None:
        """Cancel a deadline."""
        self._live.pop((event, name), None)

    def pop_due(self, now: float) -> list[tuple[Event, str]]:
        """What is due, in the order of the moments, each once."""
        due: list[tuple[Event, str]] = []
        heap = self._heap
        while heap and (heap[0][0] <= now or not self._is_live(heap[0])):
            entry = heapq.heappop(heap)
            if self._is_live(entry):
                due.append(entry[1:])
                del self._live[entry[1:]]
        self.next = heap[0][0] if heap else math.inf
        return due

    def _is_live(self, entry: tuple[float, Event, str]) -> bool:
        return self._live.get(entry[1:]) == entry[0]


def _one_by_one(new_id: Callable[[], str]) -> Callable[[int], list[str]]:
    return lambda count: [new_id() for _ in range(count)]


class State:
    """The state of a room. All checks come before a change."""

    def __init__(
        self,
        settings: RoomSettings,
        new_id: Callable[[], str],
        hub_check: HubCheck | None = None,
        admit: Admit | None = None,
        *,
        hub_denies: HubDenies | None = None,
        stored: bool = False,
    ) -> None:
        bounds = settings.bounds
        self.settings = settings
        self.new_id = new_id
        self.new_ids = new_id.many if isinstance(new_id, Uuids) else _one_by_one(new_id)
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
        self.add_made = (
            self.ids.add_made if isinstance(new_id, Uuids) else partial(self.ids.add, is_chat=True)
        )
        """Remembers ids that the room made for chat."""
        self.hub_check = hub_check
        self.hub_denies = hub_denies
        self.admit = admit
        self.admitted = 0
        """Bytes of the messages that were accepted of those that are being received."""
        self._stamper = Stamper()

    def stamp_head(self, now: float, sender: str) -> str:
        """What stands between the `seq` and the id of a sender's messages of this moment."""
        return self._stamper.moment_member(now) + sender

    def append(
        self,
        member: Member,
        message: McpxMessage,
        kind: Kind,
        now: float,
        *,
        about: str | None = None,
        to: Sequence[str] | None = None,
        is_chat: bool = False,
    ) -> Append:
        """Make a participant's message the next of the history."""
        id_, fresh = message.id, None
        if id_ is None:
            id_ = fresh = self.new_id()
        self.seq = seq = self.seq + 1
        account = member.account
        self.ids.add((id_,), seq, account, is_chat=is_chat)
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
        self.ids.add((id_,), seq, account, is_chat=kind == NOTIFIED_KIND)
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
        error: e.FolkmootError | None = None,
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

    def say(
        self,
        kind: str,
        payload: Any,
        now: float,
        correlation_id: Sequence[str] = (),
        *,
        id_: str | None = None,
        to: Sequence[str] = (),
    ) -> bytes:
        """A message of the gateway's for one connection alone; it has no `seq`."""
        id_ = id_ or self.new_id()
        return self._stamper.gateway(kind, id_, now, payload, to=to, correlation_id=correlation_id)

    def role_of(self, account: str, role: Role) -> Role:
        """Someone's present role, given the one the store knew; owners change."""
        owners = self.settings.owners
        if owners is None or role not in (Role.OWNER, Role.MEMBER):
            return role
        return Role.OWNER if account in owners else Role.MEMBER

    def member_for(self, principal: Principal, role: Role) -> Member:
        """The participant someone would be, with present rights."""
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
        """Which of a participant's connections serves, as one of them is told."""
        return {"you": connection == member.serving, "connection": member.serving_id}

    def waiting(self, member: Member) -> dict[str, Any]:
        """What waits for a participant."""
        return waiting(self.requests, self.proposals, member, self.settings.bounds.waiting)

    def told(self, member: Member, scope: str) -> list[Source]:
        """What someone is told of their rights, with what the hub and their scope take away."""
        if self.hub_denies is None:
            return member.told
        denies = self.hub_denies(replace(member.principal, scope=scope), self.settings.name)
        return [*member.told, *denies]

    def welcome(self, member: Member, now: float, connection: ConnectionId, **more: Any) -> bytes:
        """What a participant is told first, and whenever its rights change."""
        settings, held = self.settings, len(member.rights.capabilities)
        capabilities = self.told(member, member.scopes.get(connection, ALL))
        you: dict[str, Any] = {**member.shown, "capabilities": capabilities}
        if held > len(member.told):
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
        """The range of readable history."""
        told = {
            "enabled": self.settings.history,
            "first_seq": self.first_seq,
            "last_seq": self.seq,
        }
        return (
            told if self.oldest_seq >= self.first_seq else {**told, "oldest_seq": self.oldest_seq}
        )

    def announce_rights(self, accounts: Iterable[str], now: float) -> Iterator[Tell]:
        """Tell present accounts their new rights."""
        for account in accounts:
            member = self.members.by_account(account)
            if member is None:
                continue
            self.refresh(member)
            for connection in member.connections:
                yield Tell(connection, self.welcome(member, now, connection))
