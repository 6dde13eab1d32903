"""Whatever is put in, in whatever order: only what is authorised becomes part of the history.

Beside the room runs a model that knows the rules of the protocol and none of the room's code. It
says of every message whether it may be accepted, and must be right each time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Struct
from msgspec.structs import replace

from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.rooms.machine import Append, Role
from tests.rooms.machine.playbook import (
    ROLES,
    SETTINGS,
    Envelope,
    Play,
    answer,
    begin,
    call,
    chat,
    fulfil,
    grant,
    joins,
    kick,
    known,
    leaves,
    notice,
    proposal,
    reject,
    revoke,
    says,
    waits,
    withdraw,
)

OWNER = "alice"
NAMES = ("alice", "bob", "carol", "files")
AGENTS = ("carol", "files")
LOOP_GUARD = 3
ATOMS = {
    "read": "mcp.request.tools/call:read",
    "read-files": {"kind": "mcp.request.tools/call:read", "to": "files"},
    "write": "mcp.request.tools/call:write",
    "grant": "capability.grant",
    "revoke": "capability.revoke",
    "kick": "room.kick",
    "reject": "mcpx.reject.proposal",
    "pause": "participant.pause",
    "resume": "participant.resume",
}
# Who holds the one holds the other too.
WIDER = {"read-files": "read"}
SECONDS = {"request_seconds": 300.0, "progress_seconds": 700.0, "proposal_seconds": 3600.0}
REQUEST_SECONDS, PROGRESS_SECONDS, PROPOSAL_SECONDS = SECONDS.values()
RETURN_SECONDS = 30

names = st.sampled_from(NAMES)
# Whoever does what mostly an owner may.
actors = st.sampled_from((*NAMES, OWNER, OWNER))
atoms = st.sampled_from(sorted(ATOMS))
tools = st.sampled_from(["read", "write"])
values = st.sampled_from([1, 1.0, True, "1"])
ids = st.sampled_from([1, 2, "1"])
picks = st.integers(0, 7)
reserved = st.sampled_from(
    ["system.presence.leave", "capability.grant-ack", "room.invite-ack", "stream.open"]
)


class Asked(Struct):
    requester: str
    target: str
    n: Any
    until: float
    proposer: str | None
    latest: float
    begun_by: str | None = None
    away_since: float | None = None

    def standing(self, now: float) -> str:
        if self.begun_by is None:
            return "waiting"
        away = self.away_since is not None and now >= self.away_since + RETURN_SECONDS
        return "interrupted" if away else "running"


class Proposed(Struct):
    proposer: str
    tool: str
    value: Any
    until: float
    open: bool = True


class Given(Struct):
    id: str
    granter: str
    recipient: str
    atoms: tuple[str, ...]


def who(name: str) -> Principal:
    """Who comes under a name."""
    type_ = PrincipalType.AGENT if name in AGENTS else PrincipalType.PERSON
    return Principal(f"account-{name}", name, type_)


class RoomRules(RuleBasedStateMachine):
    """The rules of a room, written down a second time and more simply."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play(replace(SETTINGS, chat={}, loop_guard=LOOP_GUARD, **SECONDS))
        self.play.rebuilds = False
        self.here: set[str] = set()
        self.asked: dict[str, Asked] = {}
        self.answered: dict[str, Asked] = {}
        self.proposed: dict[str, Proposed] = {}
        self.given: list[Given] = []
        # The connections that offer tools, by their ids, the newest last.
        self.offering: dict[str, dict[str, str]] = {name: {} for name in NAMES}
        self.paused: set[str] = set()
        # Those of the paused whom the guard holds.
        self.looped: set[str] = set()
        # Who of the agents chatted since a person did.
        self.run: list[str] = []
        self.sent = 0

    @initialize()
    def everyone_comes(self) -> None:
        for name in NAMES:
            self.comes(name)

    def may(self, name: str, atom: str, before: int | None = None) -> bool:
        """Whether someone holds a right, by being the owner or by grants made before some other."""
        return name == OWNER or any(
            one.recipient == name and held in one.atoms and self.may(one.granter, held, position)
            for position, one in enumerate(self.given[:before])
            for held in (atom, WIDER.get(atom, atom))
        )

    def may_ask(self, name: str, tool: str, to: str) -> bool:
        return self.may(name, tool) or (
            (tool, to) == ("read", "files") and self.may(name, "read-files")
        )

    def say(
        self, name: str, envelope: Envelope, *, allowed: bool, begins: bool = True, on: str = ""
    ) -> str | None:
        """Send something, and see that it is accepted just when it should be; its id if it is."""
        allowed = allowed and not (begins and name in self.paused)
        self.sent += 1
        id_ = f"m{self.sent}"
        before = len(self.play.stored)
        self.play >> says(on or name, envelope, id=id_)
        accepted = [one for one in self.play.stored[before:] if one.id == id_]
        told = [effect for effect in self.play.waiting if not isinstance(effect, Append)]
        self.play.waiting.clear()
        assert bool(accepted) == (allowed and name in self.here), (name, envelope, told)
        return id_ if accepted else None

    def pick(self, table: dict[str, Any], at: int) -> tuple[str, Any]:
        """One of the latest entries, or something that is none."""
        latest = list(table.items())[-8:]
        return latest[at % len(latest)] if latest else ("m0", None)

    @rule(name=names)
    def comes(self, name: str) -> None:
        self.play.ignore(joins(name, who=who(name)))
        self.here.add(name)

    @rule(name=names)
    def goes(self, name: str) -> None:
        for connection in (*self.offering[name].values(), name):
            self.play.ignore(leaves(connection))
        self._gone(name)

    @precondition(lambda self: self.here)
    @rule(name=names, conn=st.sampled_from(["one", "two"]))
    def offers_tools(self, name: str, conn: str) -> None:
        if name not in self.here:
            return
        self.sent += 1
        connection = f"{name}-{self.sent}"
        self.play.ignore(joins(name, connection, who=who(name), conn=conn, serve=True))
        self.offering[name].pop(conn, None)
        self.offering[name][conn] = connection
        for one in self.asked.values():
            if (one.target, one.begun_by) == (name, conn):
                one.away_since = None

    @rule(name=names, conn=st.sampled_from(["one", "two"]))
    def a_connection_ends(self, name: str, conn: str) -> None:
        connection = self.offering[name].pop(conn, None)
        if connection is not None:
            self.play.ignore(leaves(connection))
            self._away(name, conn)

    def _away(self, name: str, conn: str | None = None) -> None:
        for one in self.asked.values():
            if one.target == name and one.begun_by is not None and conn in (None, one.begun_by):
                one.away_since = self.play.now

    @rule(name=names, at=picks, which=st.integers(0, 2), rightly=st.booleans())
    def begins(self, name: str, at: int, which: int, rightly: bool) -> None:
        about, one = self.pick(self.asked, at)
        name = one.target if one is not None and rightly else name
        on = [*self.offering[name].items(), ("", name)]
        conn, connection = on[-2] if rightly and len(on) > 1 else on[which % len(on)]
        serves = conn == next(reversed(self.offering[name]), None)
        allowed = serves and one is not None and one.target == name
        allowed = allowed and one.standing(self.play.now) != "running"
        if self.say(name, begin(about), allowed=allowed, on=connection):
            one.begun_by, one.away_since = conn, None

    def _gone(self, name: str) -> None:
        self.here.discard(name)
        self.offering[name].clear()
        self.asked = {id_: one for id_, one in self.asked.items() if one.target != name}

    @rule(seconds=st.sampled_from([1, 299, 3599]))
    def time_goes_by(self, seconds: int) -> None:
        self.play.ignore(waits(seconds))
        now = self.play.now
        self.asked = {id_: one for id_, one in self.asked.items() if one.until > now}
        for one in self.proposed.values():
            one.open = one.open and one.until > now

    @rule()
    def restart(self) -> None:
        snapshot = self.play.room.snapshot()
        assert known(self.play.rebuilt(snapshot=snapshot)) == known(self.play.room)
        rebuilt = self.play.rebuilt()
        assert known(rebuilt) == known(self.play.room)
        self.play.room = rebuilt
        for name in NAMES:
            self.offering[name].clear()
            self._away(name)
        self.run = []
        for here in sorted(self.here):
            self.comes(here)

    @rule(name=names, claimed=names)
    def chats(self, name: str, claimed: str) -> None:
        if self.say(name, {**chat(), "from": claimed}, allowed=claimed == name):
            self._watch(name)

    @rule(order=st.lists(names, max_size=6))
    def talk_goes_round(self, order: list[str]) -> None:
        for name in order:
            self.chats(name, name)

    def _watch(self, name: str) -> None:
        """Agents that answered each other too often are held; a person sets them free."""
        if name not in AGENTS:
            self.run = []
            self.paused -= self.looped
            self.looped = set()
            return
        self.run.append(name)
        if sum(a != b for a, b in pairwise(self.run)) >= LOOP_GUARD:
            self.looped |= {*self.run} - self.paused
            self.paused |= {*self.run}
            self.run = []

    @rule(name=actors, to=names, tool=tools, n=ids, value=values)
    def asks(self, name: str, to: str, tool: str, n: Any, value: Any) -> None:
        allowed = self.may_ask(name, tool, to) and self._can_ask(name, to, n)
        request = call(to, tool, {"value": value}, n)
        self._keep(self.say(name, request, allowed=allowed), name, to, n, None)

    def _can_ask(self, name: str, to: str, n: Any) -> bool:
        taken = any(
            (one.requester, one.target, type(one.n), one.n) == (name, to, type(n), n)
            for one in self.asked.values()
        )
        return to in self.here and to != name and not taken

    def _keep(self, id_: str | None, name: str, to: str, n: Any, proposer: str | None) -> None:
        if id_ is not None:
            now = self.play.now
            latest = now + PROGRESS_SECONDS
            self.asked[id_] = Asked(name, to, n, now + REQUEST_SECONDS, proposer, latest)

    @rule(name=names, at=picks, to=names, n=ids)
    def answers(self, name: str, at: int, to: str, n: Any) -> None:
        about, one = self.pick(self.asked, at)
        allowed = one is not None and (one.target, one.requester) == (name, to)
        allowed = allowed and (type(one.n), one.n) == (type(n), n)
        if self.say(name, answer(about, to, n), allowed=allowed, begins=False):
            self.answered[about] = self.asked.pop(about)

    @rule(at=picks)
    def answers_again(self, at: int) -> None:
        about, one = self.pick(self.answered, at)
        if one is not None:
            self.say(one.target, answer(about, one.requester, one.n), allowed=False)

    @rule(name=names, at=picks, rightly=st.booleans())
    def answers_well(self, name: str, at: int, rightly: bool) -> None:
        _, one = self.pick(self.asked, at)
        if one is not None:
            self.answers(one.target if rightly else name, at, one.requester, one.n)

    @rule(name=names, at=picks)
    def cancels(self, name: str, at: int) -> None:
        about, one = self.pick(self.asked, at)
        allowed = one is not None and one.requester == name
        cancelled = notice("notifications/cancelled", about=about)
        if self.say(name, cancelled, allowed=allowed, begins=False):
            del self.asked[about]

    @rule(name=names, at=picks)
    def tells_of_progress(self, name: str, at: int) -> None:
        about, one = self.pick(self.asked, at)
        allowed = one is not None and one.target == name
        progress = notice("notifications/progress", about=about)
        if self.say(name, progress, allowed=allowed, begins=False):
            one.until = max(one.until, min(self.play.now + REQUEST_SECONDS, one.latest))

    @rule(name=names, tool=tools, value=values)
    def proposes(self, name: str, tool: str, value: Any) -> None:
        id_ = self.say(name, proposal(tool, {"value": value}), allowed=True)
        if id_ is not None:
            until = self.play.now + PROPOSAL_SECONDS
            self.proposed[id_] = Proposed(name, tool, value, until)

    @rule(name=actors, at=picks, to=names, n=ids, value=values, rightly=st.booleans())
    def fulfils(self, name: str, at: int, to: str, n: Any, value: Any, rightly: bool) -> None:
        about, one = self.pick(self.proposed, at)
        if one is None:
            return
        value = one.value if rightly else value
        same = (type(one.value), one.value) == (type(value), value)
        allowed = one.open and one.proposer != name and same
        allowed = allowed and self.may_ask(name, one.tool, to) and self._can_ask(name, to, n)
        request = fulfil(about, to, tool=one.tool, arguments={"value": value}, n=n)
        id_ = self.say(name, request, allowed=allowed)
        self._keep(id_, name, to, n, one.proposer)
        one.open = one.open and id_ is None

    @rule(name=names, at=picks)
    def withdraws(self, name: str, at: int) -> None:
        about, one = self.pick(self.proposed, at)
        allowed = one is not None and one.open and one.proposer == name
        if self.say(name, withdraw(about), allowed=allowed, begins=False):
            one.open = False

    @rule(name=names, at=picks)
    def rejects(self, name: str, at: int) -> None:
        about, one = self.pick(self.proposed, at)
        allowed = one is not None and one.open and one.proposer != name
        if self.say(name, reject(about), allowed=allowed and self.may(name, "reject")):
            one.open = False

    @rule(name=names, to=names, given=st.lists(atoms, min_size=1, max_size=3, unique=True))
    def gives(self, name: str, to: str, given: list[str]) -> None:
        allowed = to in self.here and to != name and self.may(name, "grant")
        allowed = allowed and all(self.may(name, atom) for atom in given)
        id_ = self.say(name, grant(to, *(ATOMS[atom] for atom in given)), allowed=allowed)
        if id_ is not None:
            self.given.append(Given(id_, name, to, tuple(given)))

    @rule(to=names, given=st.lists(atoms, min_size=1, max_size=3, unique=True))
    def the_owner_gives(self, to: str, given: list[str]) -> None:
        self.gives(OWNER, to, [*given, *({"grant"} - {*given})])

    @rule(through=names, to=names, atom=atoms)
    def passes_on_what_it_got(self, through: str, to: str, atom: str) -> None:
        self.the_owner_gives(through, [atom])
        self.gives(through, to, [atom])

    @precondition(lambda self: self.given)
    @rule(name=actors, at=picks)
    def takes_back(self, name: str, at: int) -> None:
        one = self.given[at % len(self.given)]
        alive = any(self._supported(one, atom) for atom in one.atoms)
        allowed = alive and (self.may(name, "revoke") or one.granter == name)
        if self.say(name, revoke(grant_id=one.id), allowed=allowed):
            self.given.remove(one)

    def teardown(self) -> None:
        assert known(self.play.rebuilt()) == known(self.play.room)

    def _supported(self, one: Given, atom: str) -> bool:
        return self.may(one.granter, atom, self.given.index(one))

    @rule(name=names, whom=names)
    def kicks(self, name: str, whom: str) -> None:
        allowed = whom in self.here and whom not in (name, OWNER) and self.may(name, "kick")
        if self.say(name, kick(whom), allowed=allowed):
            self._gone(whom)
            # What they gave ends with them.
            self.given = [one for one in self.given if one.granter != whom]
            self.paused.discard(whom)
            self.looped.discard(whom)
            for one in self.proposed.values():
                one.open = one.open and one.proposer != whom

    @rule(name=actors, whom=names)
    def pauses(self, name: str, whom: str) -> None:
        allowed = whom in self.here and whom not in (name, OWNER) and self.may(name, "pause")
        if self.say(name, {"kind": "participant.pause", "to": [whom]}, allowed=allowed):
            self.paused.add(whom)
            self.looped.discard(whom)

    @rule(name=names, whom=names)
    def resumes(self, name: str, whom: str) -> None:
        resume = {"kind": "participant.resume", "to": [whom]}
        by_a_person = name not in AGENTS or whom not in self.looped
        if self.say(name, resume, allowed=self.may(name, "resume") and by_a_person):
            self.paused.discard(whom)
            self.looped.discard(whom)

    @rule(name=names, kind=reserved)
    def forges(self, name: str, kind: str) -> None:
        self.say(name, {"kind": kind, "payload": {"recipient": name}}, allowed=False)

    @rule(name=names, raw=st.binary(max_size=40))
    def babbles(self, name: str, raw: bytes) -> None:
        before = self.play.room.seq
        self.play.room.receive(name, [raw], self.play.now)
        assert self.play.room.seq == before

    @invariant()
    def the_room_and_the_model_agree(self) -> None:
        assert {who["id"] for who in self.play.room.participants()} == self.here
        open_ = {one.id for one in self.play.room.proposals() if one.state.value == "open"}
        assert open_ == {id_ for id_, one in self.proposed.items() if one.open}
        granted = self.play.room.grants()
        held = {(one.recipient_name, repr(what)) for one in granted for what in one.capabilities}
        assert held == {
            (one.recipient, repr(ATOMS[atom]))
            for one in self.given
            for atom in one.atoms
            if self._supported(one, atom)
        }
        for name in sorted(self.here):
            owed, _ = self.play.room.waiting(who(name), ROLES.get(name, Role.MEMBER))
            assert {request.id: standing for request, standing in owed} == {
                id_: one.standing(self.play.now)
                for id_, one in self.asked.items()
                if one.target == name
            }
        assert [one.seq for one in self.play.stored] == [*range(1, len(self.play.stored) + 1)]


TestRoomRules = RoomRules.TestCase
TestRoomRules.settings = settings(
    max_examples=settings.default.max_examples // 2, stateful_step_count=50, deadline=None
)
TestRoomRules = pytest.mark.requirement(
    "request.response-only-from-target",
    "request.response-once",
    "proposal.states",
    "capability.grant-at-most-own",
    "capability.revoke-cascades",
    "capability.change-at-next-message",
    "serving.newest",
    "serving.begun-once",
    "serving.interrupted",
    "capability.target",
    "participant.pause-enforced",
    "room.loop-guard",
    "proposal.kicked",
)(TestRoomRules)
