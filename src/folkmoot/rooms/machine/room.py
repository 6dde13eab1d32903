"""Room: the pure machine. Bytes and times in, effects out; it reads no clock and writes nowhere.

The effects of one call belong together: their `Append`s are stored in one transaction, in order,
before any effect of the call is carried out. When that fails the room is thrown away and rebuilt
from what is stored, so the machine may run ahead of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, Source
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.message import JSONRPC
from folkmoot.core.policy import Principal
from folkmoot.core.scopes import ALL
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.rooms.machine.expiry import expire
from folkmoot.rooms.machine.members import Member
from folkmoot.rooms.machine.model import (
    GATEWAY,
    GUEST,
    NO_FACTS,
    AccountStanding,
    Admit,
    Append,
    AskBackend,
    ConnectionId,
    Effect,
    Facts,
    HubCheck,
    HubDenies,
    Listing,
    Lookup,
    Role,
    RoomSettings,
    Tell,
)
from folkmoot.rooms.machine.moderation import apply_guest_grants, name_to_look_up, stand
from folkmoot.rooms.machine.pausing import resume
from folkmoot.rooms.machine.presence import (
    Joining,
    check_join,
    disconnect,
    join,
    put_out,
    rename,
    set_backends,
)
from folkmoot.rooms.machine.proposals import Proposal, ProposalStatus, decidable_by
from folkmoot.rooms.machine.rebuild import replay, take_snapshot
from folkmoot.rooms.machine.receive import (
    Received,
    accept_from,
    check_listing,
    named_ids,
    receive,
    refusal_of,
    sender_of,
)
from folkmoot.rooms.machine.requests import OpenRequest, Standing
from folkmoot.rooms.machine.rights import Grant, all_rights, own_rights
from folkmoot.rooms.machine.state import State

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Room:
    """One room. `now` is seconds since the epoch.

    `new_id` makes ids that nobody can guess, of letters, digits and hyphens.
    """

    def __init__(
        self,
        settings: RoomSettings,
        new_id: Callable[[], str],
        *,
        stored: bool = False,
        hub_check: HubCheck | None = None,
        hub_denies: HubDenies | None = None,
        admit: Admit | None = None,
    ) -> None:
        self._state = State(
            settings, new_id, hub_check, admit, hub_denies=hub_denies, stored=stored
        )

    @classmethod
    def rebuild(
        cls,
        settings: RoomSettings,
        new_id: Callable[[], str],
        messages: Iterable[Append],
        now: float,
        *,
        snapshot: bytes | None = None,
        last_seq: int | None = None,
        first_seq: int | None = None,
        oldest_seq: int | None = None,
        hub_check: HubCheck | None = None,
        hub_denies: HubDenies | None = None,
        admit: Admit | None = None,
    ) -> Room:
        """A room from its stored messages, in order; with a snapshot, from what came after it.

        Only messages of the kinds in `REPLAYED` need be given, where `last_seq` says which was the
        last. The history begins at `first_seq`, or where the snapshot says, and some of what was
        before it at `oldest_seq`. Ids from before are looked up. Whoever was here counts as here
        for the settings' `return_seconds`, so that a restart disturbs nobody.
        """
        room = cls(
            settings, new_id, stored=True, hub_check=hub_check, hub_denies=hub_denies, admit=admit
        )
        replay(
            room._state,
            messages,
            now,
            snapshot=snapshot,
            last_seq=last_seq,
            first_seq=first_seq,
            oldest_seq=oldest_seq,
        )
        return room

    @property
    def settings(self) -> RoomSettings:
        return self._state.settings

    @property
    def seq(self) -> int:
        """The `seq` of the last message."""
        return self._state.seq

    @property
    def first_seq(self) -> int:
        """The `seq` from which on no message is missing."""
        return self._state.first_seq

    @property
    def oldest_seq(self) -> int:
        """The `seq` of the oldest message that is kept; between it and the first, some are not."""
        return self._state.oldest_seq

    @property
    def due(self) -> float:
        """When `tick` has something to do next; infinity for never."""
        return self._state.deadlines.next

    @property
    def present(self) -> int:
        """How many are here; backends, which always are, do not count."""
        return self._state.members.people

    def has(self, account: str) -> bool:
        """Whether someone is here, or was until the room was loaded."""
        return self._state.members.by_account(account) is not None

    def participants(self) -> list[dict[str, Any]]:
        """All participants as others see them, and whether they offer tools."""
        return [
            {**member.shown, "offers_tools": member.offers_tools} for member in self._state.members
        ]

    def proposals(self) -> Iterator[Proposal]:
        """The open proposals, then the latest closed ones."""
        return iter(self._state.proposals)

    def proposal(self, id_: str) -> Proposal | None:
        """The proposal with this id, open or among the latest closed ones."""
        return self._state.proposals.get(id_)

    def waiting(
        self, principal: Principal, role: Role
    ) -> tuple[list[tuple[OpenRequest, Standing]], list[Proposal]]:
        """What someone was asked and has not answered, and the proposals they may decide on."""
        state, member = self._state, self._member(principal, role)
        asked = state.requests.asked(member.account)
        return (
            [(one, state.requests.standing(one)) for one in asked],
            [*decidable_by(state.proposals, member)],
        )

    def rights_of(self, principal: Principal, role: Role) -> Rights:
        """The rights someone has, or would have on entering."""
        return self._member(principal, role).rights

    def _member(self, principal: Principal, role: Role) -> Member:
        member = self._state.members.by_account(principal.account_id)
        return self._state.member_for(principal, role) if member is None else member

    def request(self, id_: str) -> OpenRequest | None:
        """The open request with this id."""
        return self._state.requests.get(id_)

    def grants(self) -> Iterator[Grant]:
        """The grants that hold, in the order they were made."""
        return self._state.grants.in_force()

    def snapshot(self) -> bytes:
        """All that `rebuild` cannot learn from messages that are no longer kept."""
        return take_snapshot(self._state)

    def join(
        self,
        connection: ConnectionId,
        principal: Principal,
        role: Role,
        now: float,
        *,
        conn: str | None = None,
        after: int | None = None,
        epoch: str | None = None,
        serve: bool = False,
        linger: bool = False,
        more: Mapping[str, Any] = _NOTHING,
    ) -> list[Effect]:
        """Let someone in on a new connection; an `AdmissionRefused` says why not.

        With `serve` it offers tools; with `linger`, whoever comes back soon after has never left.
        `more` is told in the welcome beside the rest, to this
        connection alone.
        """
        state, scope, principal = self._state, principal.scope, principal.whole
        newcomer = check_join(state, principal, role, conn, now)
        asked = Joining(connection, conn, scope, after, epoch, serve, linger, more)
        return self.tick(now) + join(state, newcomer, asked, now)

    def rename(self, principal: Principal, now: float) -> list[Effect]:
        """Give someone another name; a refused one puts them out, an owner's puts a rival out."""
        return rename(self._state, principal, now)

    def disconnect(self, connection: ConnectionId, now: float) -> list[Effect]:
        """A connection ended; with the last one its participant leaves."""
        return self.tick(now) + disconnect(self._state, connection, now)

    def answerable(self) -> set[str]:
        """The accounts who granted something, or have an open proposal; guests are none."""
        open_ = {one.proposer for one in self.proposals() if one.state is ProposalStatus.OPEN}
        granters = {grant.granter for grant in self._state.grants}
        return {one for one in open_ | granters if one and not one.startswith(GUEST)}

    def halt(self, granters: Iterable[str]) -> None:
        """Let grants of those not hold who were suspended before the room was loaded."""
        for account in granters:
            self._state.grants.halt(account)
        for member in self._state.members:
            self._state.refresh(member)

    def stand(
        self, account: str, standing: AccountStanding, now: float
    ) -> tuple[list[Effect], bool]:
        """An account was suspended, restored or deleted; whether what others hold changed."""
        return stand(self._state, account, standing, now)

    def remove(self, account: str, code: CloseCode, now: float) -> list[Effect]:
        """Put someone out whose account, membership or credential is gone."""
        member = self._state.members.by_account(account)
        return [] if member is None else put_out(self._state, member, code, now)

    def receive(
        self,
        connection: ConnectionId,
        messages: Sequence[bytes | McpxMessage],
        now: float,
        facts: Facts = NO_FACTS,
    ) -> Received:
        """Messages came: each becomes part of the history, or its sender is told why not.

        Answers what came of them, and how many were taken. Where not all were, the room needs a
        `lookup` for the next.
        """
        state = self._state
        due = self.tick(now) if now >= state.deadlines.next else []
        effects, taken = receive(state, connection, messages, now, facts)
        return due + effects if due else effects, taken

    def lookup(self, messages: Iterable[McpxMessage]) -> Lookup:
        """What must be looked up in the store for some messages."""
        state = self._state
        ids: list[str] = []
        names: list[str] = []
        for message in messages:
            about = named_ids(message)
            ids += [id_ for id_ in (message.id, *about) if id_ and state.ids.is_unknown(id_)]
            name = name_to_look_up(state, message)
            if name is not None:
                names.append(name)
        return Lookup(ids, names)

    def decode(self, raw: bytes) -> McpxMessage:
        """Decode a message, or raise an error that names the fault in its bytes."""
        settings = self._state.settings
        return decode_mcpx(raw, settings.limits, settings.accept_old_spellings)

    def post(
        self,
        principal: Principal,
        role: Role,
        message: bytes | McpxMessage,
        now: float,
        facts: Facts = NO_FACTS,
    ) -> list[Effect]:
        """A message from someone who need not be here; a refusal is raised.

        The first effect is the message as it is to be stored. `LookupNeeded` is raised where it
        needs a `lookup`.
        """
        state, scope, principal = self._state, principal.scope, principal.whole
        state.admitted = 0
        role = state.role_of(principal.account_id, role)
        state.members.check_name(principal.name, principal.account_id, role)
        if type(message) is not McpxMessage:
            message = self.decode(message)
        member = state.members.by_account(principal.account_id)
        if member is None or member.principal != principal or member.role is not role:
            member = state.member_for(principal, role)
        return accept_from(state, sender_of(state, member, None, scope), message, now, facts)

    def list_tools(
        self, principal: Principal, role: Role, to: str, params: Mapping[str, Any], now: float
    ) -> Listing:
        """How to ask a participant for its tools, unseen by the others; a refusal is raised."""
        state, scope, principal = self._state, principal.scope, principal.whole
        id_ = state.new_id()
        payload = {"jsonrpc": JSONRPC, "id": id_, "method": TOOLS_LIST, "params": params}
        kind = f"mcp.request.{TOOLS_LIST}"
        data = state.say(kind, payload, now, id_=id_, to=(to,))
        sender = sender_of(state, self._member(principal, role), None, scope)
        target = check_listing(state, sender, self.decode(data), now)
        ask = None
        if target.role is Role.BACKEND:
            ask = AskBackend(id_, principal.account_id, target.principal, "", (), payload, scope)
        return Listing(id_, data, target.serving, ask)

    def refuse(
        self,
        connection: ConnectionId,
        message: bytes | McpxMessage,
        error: e.FolkmootError,
        now: float,
    ) -> list[Effect]:
        """Tell the sender of a message that something before the room refused it."""
        member = self._state.members.on(connection)
        if member is None:
            return []
        scope = member.scopes.get(connection, ALL)
        return [Tell(connection, refusal_of(self._state, member, scope, message, error, now))]

    def answer_invite(
        self, connection: ConnectionId, id_: str, payload: dict[str, Any], now: float
    ) -> list[Effect]:
        """Answer an invitation, to the inviter's connection alone: it may hold a secret."""
        if self._state.members.on(connection) is None:
            return []
        return [Tell(connection, self._state.say("room.invite-ack", payload, now, (id_,)))]

    def check_settings(self, settings: RoomSettings) -> None:
        """Refuse settings by which someone would hold more than anyone can, grants included."""
        grants = self._state.grants
        for account in {grant.recipient for grant in grants}:
            all_rights(
                own_rights(settings, self._role(settings, account), account), grants.given(account)
            )

    def configure(self, settings: RoomSettings, now: float) -> list[Effect]:
        """Set the room anew; whoever has other rights now is told. Store a snapshot with it.

        Grants of what their granters no longer hold go. The settings were checked before.
        """
        state = self._state
        state.settings = settings
        for member in state.members:
            member.role = state.role_of(member.account, member.role)
        state.grants.review(
            lambda account: own_rights(settings, self._role(settings, account), account)
        )
        changed = [member.account for member in state.members if state.refresh(member)]
        effects: list[Effect] = list(state.announce_rights(changed, now))
        if not settings.loop_guard:
            effects += resume(state, [one for one in state.pauses if one.is_loop], now, GATEWAY)
        return effects

    def _role(self, settings: RoomSettings, account: str) -> Role:
        member = self._state.members.by_account(account)
        if member is not None:
            return member.role
        owns = account == settings.owner or account in (settings.owners or ())
        return Role.OWNER if owns else Role.MEMBER

    def apply_guest_grants(
        self, guest: Principal, by: str, capabilities: Sequence[Source], id_: str, now: float
    ) -> list[Effect]:
        """Give an arriving guest the promised rights its inviter still has.

        `id_` is that of the invitation's message, and becomes the grant's.
        """
        state, settings = self._state, self._state.settings
        own = own_rights(settings, self._role(settings, by), by)
        return apply_guest_grants(state, guest, by, own, capabilities, id_, now)

    def set_backends(
        self, backends: Sequence[Principal], now: float, *, anew: bool = False
    ) -> list[Effect]:
        """Make exactly these backends participants.

        `anew` says that the room was just loaded: what they were asked before is lost.
        """
        return set_backends(self._state, backends, now, anew=anew)

    def trim(
        self, first_seq: int, oldest_seq: int | None = None, ids: Collection[str] = ()
    ) -> None:
        """From here on nothing is missing; ids of what is no longer kept may be used again.

        Some messages before it may be kept, from `oldest_seq` on; `ids` are those of messages
        between the two that are not.
        """
        state = self._state
        state.first_seq = max(state.first_seq, first_seq)
        oldest = first_seq if oldest_seq is None else oldest_seq
        state.oldest_seq = min(max(state.oldest_seq, oldest), state.first_seq)
        if ids:
            state.ids.drop(ids)
        state.ids.drop_before(state.oldest_seq)
        state.proposals.trim(state.oldest_seq, frozenset(ids))

    def tick(self, now: float) -> list[Effect]:
        """Let happen what is due: requests time out, proposals expire, some never came back."""
        return expire(self._state, now)
