"""Who is in a room: participants with their names and connections, and who of them is paused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, Source
from folkmoot.core.entity import Entity
from folkmoot.core.limits import MAX_CAPABILITIES_TOLD
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.scopes import ALL
from folkmoot.ratelimits import Limit
from folkmoot.rooms.limits import RoomBounds
from folkmoot.rooms.machine.model import GATEWAY, ConnectionId, Role
from folkmoot.rooms.machine.wire import sender_member

if TYPE_CHECKING:
    from folkmoot.rooms.machine.state import Deadlines

HUB: Final = ("gateway", "system", "folkmoot")
"""Names that would speak for the hub."""

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{1,31}")

_LETTERS: Final = str.maketrans("0134578i", "oleastbl", "_-")
_PAIRS: Final = (("rn", "m"), ("vv", "w"))


def skeleton(name: str) -> str:
    """The confusable skeleton of a name: two names with one skeleton look alike."""
    seen = name.translate(_LETTERS)
    for pair, letter in _PAIRS:
        seen = seen.replace(pair, letter)
    return seen


def check_name(name: str) -> None:
    """Refuse a name that is none, or that could be taken for the hub's own."""
    if not NAME.fullmatch(name):
        raise e.NameRefused(
            "A participant's name is 2 to 32 lower-case letters, digits, underscores and hyphens, "
            "and begins with a letter."
        )
    if skeleton(name) in _HUB:
        raise e.NameRefused(f"The name {name} could be mistaken for the hub itself.")


_HUB: Final = frozenset(skeleton(name) for name in HUB)


class Member(Entity):
    """A participant: identity, rights and connections."""

    principal: Principal
    role: Role
    own: Rights
    """What it holds without a grant."""
    rights: Rights
    chat_limit: Limit | None = None
    connections: dict[ConnectionId, str | None] = {}
    """Each with its id: the client's own, or one of the room's for a connection that offers
    tools without one."""
    offers: dict[ConnectionId, None] = {}
    """The connections that offer tools, the newest last."""
    lingering: set[ConnectionId] = set()
    """The connections after whose end the participant stays for a while."""
    scopes: dict[ConnectionId, str] = {}
    """Those of the credentials that connections were opened with, where they are narrow."""

    def __post_init__(self) -> None:
        self.account = self.principal.account_id
        self.name = self.principal.name
        """What it is called in the room."""
        self.sender = sender_member(self.principal.name)

    @property
    def shown(self) -> dict[str, Any]:
        """The participant as others see it."""
        who = self.principal
        return {"id": who.name, "type": who.type.value, "role": self.role.value}

    @property
    def offers_tools(self) -> bool:
        """Whether one of its connections answers calls, or it is a backend."""
        return bool(self.offers) or self.principal.type is PrincipalType.BACKEND

    @property
    def told(self) -> list[Source]:
        """What it is told of its own rights; a very long list is cut."""
        return list(islice(self.rights, MAX_CAPABILITIES_TOLD))

    @property
    def serving(self) -> ConnectionId | None:
        """The connection that runs what the participant is asked: the newest that offers tools."""
        return next(reversed(self.offers), None)

    @property
    def serving_id(self) -> str | None:
        """The id of that connection."""
        serving = self.serving
        return None if serving is None else self.connections[serving]

    def replaced_by(self, conn: str | None) -> ConnectionId | None:
        """The connection that has the id a new one comes with."""
        if conn is None:
            return None
        return next((one for one, had in self.connections.items() if had == conn), None)


class Members:
    """All participants; no two have confusable names."""

    def __init__(self, bounds: RoomBounds) -> None:
        self._bounds = bounds
        self._by_account: dict[str, Member] = {}
        self._by_name: dict[str, Member] = {}
        self._by_skeleton: dict[str, Member] = {}
        self._by_connection: dict[ConnectionId, Member] = {}
        self._backends: dict[str, Member] = {}
        self.on = self._by_connection.get
        """The participant on a connection, or None."""

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_account.values())

    def __len__(self) -> int:
        return len(self._by_account)

    @property
    def people(self) -> int:
        """The number of participants that are not backends."""
        return len(self._by_account) - len(self._backends)

    def backends(self) -> list[Member]:
        """The participants that are backends."""
        return [*self._backends.values()]

    def by_account(self, account: str) -> Member | None:
        """The participant of an account, if it is here."""
        return self._by_account.get(account)

    def named(self, name: str) -> Member | None:
        """The participant with a name, if it is here."""
        return self._by_name.get(name)

    def rival(self, name: str, account: str | None) -> Member | None:
        """Another participant whose name could be confused with this one."""
        other = self._by_skeleton.get(skeleton(name))
        return None if other is None or other.account == account else other

    def check_name(self, name: str, account: str | None, role: Role | None = None) -> None:
        """Refuse a name that is the hub's or another's, or could be mistaken for theirs.

        An owner is not refused: nobody keeps owners out of their room by a name like theirs.
        """
        check_name(name)
        other = self.rival(name, account)
        if other is not None and (role is not Role.OWNER or other.role is Role.OWNER):
            raise e.NameRefused(f"The name {name} could be mistaken for another participant.")

    def check_new(self, principal: Principal, role: Role, conn: str | None) -> None:
        """Refuse someone who cannot come in, or not on another connection."""
        self.check_name(principal.name, principal.account_id, role)
        member = self._by_account.get(principal.account_id)
        if member is None:
            if self.people >= self._bounds.participants:
                raise e.RoomFull("The room is full.")
        elif (
            len(member.connections) >= self._bounds.connections_each
            and member.replaced_by(conn) is None
        ):
            raise e.TooManyConnections("You have too many connections to the room.")

    def add(self, member: Member) -> None:
        """Add a participant."""
        self._by_account[member.account] = member
        self._by_name[member.name] = member
        self._by_skeleton[skeleton(member.name)] = member
        if member.role is Role.BACKEND:
            self._backends[member.account] = member

    def remove(self, member: Member) -> None:
        """Let someone be here no more, on any connection."""
        del self._by_account[member.account]
        self._backends.pop(member.account, None)
        del self._by_name[member.name]
        del self._by_skeleton[skeleton(member.name)]
        for connection in member.connections:
            del self._by_connection[connection]

    def connect(
        self,
        member: Member,
        connection: ConnectionId,
        conn: str | None,
        *,
        offers: bool = False,
        scope: str = ALL,
    ) -> None:
        """Let a participant have another connection, which may offer tools."""
        member.connections[connection] = conn
        if scope != ALL:
            member.scopes[connection] = scope
        if offers:
            member.offers[connection] = None
        self._by_connection[connection] = member

    def disconnect(self, member: Member, connection: ConnectionId) -> None:
        """Let a participant have a connection less."""
        del member.connections[connection]
        member.scopes.pop(connection, None)
        member.offers.pop(connection, None)
        member.lingering.discard(connection)
        del self._by_connection[connection]

    def rename(self, member: Member, principal: Principal) -> None:
        """Let a participant have another name; its connections and rights stay."""
        del self._by_name[member.name]
        del self._by_skeleton[skeleton(member.name)]
        member.principal, member.name = principal, principal.name
        member.sender = sender_member(principal.name)
        self.add(member)


class Pause(Struct, frozen=True):
    """Someone who begins nothing until resumed. Accounts are what counts; names are shown."""

    account: str
    name: str
    by: str
    """The name of who paused it; the gateway's where the loop guard did."""
    reason: str | None = None
    until: float | None = None

    @property
    def is_loop(self) -> bool:
        """Whether the loop guard made the pause, so that a person's message ends it."""
        return self.by == GATEWAY


class Pauses:
    """Everyone who is paused, by account, whether here or not."""

    def __init__(self, bounds: RoomBounds, deadlines: Deadlines) -> None:
        self._bounds = bounds
        self._deadlines = deadlines
        self.by_account: dict[str, Pause] = {}
        self.get = self.by_account.get

    def __iter__(self) -> Iterator[Pause]:
        return iter([*self.by_account.values()])

    def check_new(self, count: int) -> None:
        """Refuse a pause beyond the limit."""
        if len(self.by_account) + count > self._bounds.paused:
            raise e.TooManyOpen("Too many paused participants.")

    def add(self, pause: Pause) -> None:
        """Let someone be paused, in place of a pause it had before."""
        self.by_account[pause.account] = pause
        if pause.until is None:
            self._deadlines.drop("pause", pause.account)
        else:
            self._deadlines.set("pause", pause.account, pause.until)

    def drop(self, account: str) -> Pause | None:
        """End someone's pause, and return it."""
        self._deadlines.drop("pause", account)
        return self.by_account.pop(account, None)


class LoopGuard(Entity):
    """Counts how often agents answered each other since a person last said something.

    It is memory alone: after a restart it counts from the beginning.
    """

    answers: int = 0
    agents: dict[str, str] = {}
    """The accounts of those who take part, each with its name."""
    _last: str | None = None

    def agent_said(self, account: str, name: str) -> None:
        """An agent chatted; after another agent, that is an answer."""
        self.answers += self._last not in (None, account)
        self._last = account
        self.agents[account] = name

    def reset(self) -> None:
        """A person said something, or the agents are held."""
        self.answers, self._last = 0, None
        self.agents.clear()
