"""Playbooks: scripts of what comes into a room and what must come out of it.

    play >> joins("bob")              << attached("bob") << stored("system.presence.join")
    play >> says("bob", chat("hello")) << stored("chat.message", "bob", payload={"text": "hello"})
    play >> says("bob", kick("alice")) << refused("bob", "capability_denied")

`>>` puts something in, `<<` names the next effect that must have come out, in order. Nothing may
come out that the script does not name. After every step the room is also rebuilt from what it
appended, from a snapshot, and from the snapshot before the step with what came after it; it must
know the same as the one that runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from folkmoot.core import strict
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.rooms.machine import (
    Append,
    Attach,
    Audit,
    Close,
    Effect,
    Expel,
    Facts,
    Invite,
    Known,
    Role,
    Room,
    RoomSettings,
    Tell,
    Used,
)

Envelope: TypeAlias = dict[str, Any]
Step: TypeAlias = "Callable[[Play], list[Effect]]"
Expectation: TypeAlias = "Callable[[Play, Effect], None]"

SETTINGS = RoomSettings(name="square", epoch="e1")
START = 1_800_000_000.0

ROLES = {"alice": Role.OWNER, "guest-kim": Role.GUEST}
TYPES = {"files": PrincipalType.AGENT, "guest-kim": PrincipalType.GUEST}


def principal(name: str) -> Principal:
    """Everyone's account is called after their name, unless a script says otherwise."""
    return Principal(f"account-{name}", name, TYPES.get(name, PrincipalType.PERSON))


class Play:
    """A room that is being played with: its clock, its connections and what it did."""

    def __init__(self, settings: RoomSettings = SETTINGS, *present: str) -> None:
        self.settings = settings
        self.now = START
        self.made = 0
        self.room = Room(settings, self.new_id)
        self.waiting: list[Effect] = []
        self.stored: list[Append] = []
        self.rebuilds = True
        # Who may come in and is not here, by name.
        self.absent: dict[str, Known] = {}
        # The ids and names that were looked up, in order.
        self.looked_up: list[str] = []
        for name in present:
            self._take(joins(name)(self))
            self.waiting.clear()

    def new_id(self) -> str:
        self.made += 1
        return f"g{self.made}"

    def __rshift__(self, step: Step) -> Play:
        self.done()
        earlier = self.room.snapshot() if self.rebuilds else None
        self._take(step(self), earlier)
        return self

    def __lshift__(self, expectation: Expectation) -> Play:
        assert self.waiting, "nothing more came out"
        expectation(self, self.waiting.pop(0))
        return self

    def ignore(self, step: Step) -> Play:
        """Put something in, whatever comes out."""
        self >> step
        self.waiting.clear()
        return self

    def proposes(self, name: str, envelope: Envelope, id_: str = "p1", **more: Any) -> Play:
        """Someone makes a proposal, which is kept and logged."""
        self >> says(name, envelope, id=id_, **more) << stored("mcp.proposal.tools/call", name)
        return self << logged("proposal.open", name, id_)

    def gives(self, who: str, whom: str, *capabilities: Any, id_: str) -> Play:
        """A grant that is kept, acknowledged, logged, and its recipient welcomed anew."""
        kind = "capability.grant"
        ack = {"status": "granted", "recipient": whom, "capabilities": list(capabilities)}
        self >> says(who, grant(whom, *capabilities), id=id_) << stored(kind, who, id=id_)
        self << stored("capability.grant-ack", to=[who, whom], correlation_id=[id_], payload=ack)
        return self << logged(kind, who, whom, grant=id_) << told(whom, "system.welcome")

    def takes(self, who: str, *losers: str, **what: Any) -> Play:
        """A revocation that is carried out."""
        kind = "capability.revoke"
        self >> says(who, revoke(**what)) << stored(kind, who) << logged(kind, who)
        for name in losers:
            self << told(name, "system.welcome")
        return self

    def done(self) -> None:
        """Nothing came out that the script did not name."""
        assert not self.waiting, f"also came out: {self.waiting}"

    def _take(self, effects: list[Effect], earlier: bytes | None = None) -> None:
        # What policy refuses is in the log as well, right after the refusal.
        self.waiting = [one for one in effects if not is_refusal(one)]
        for told, one in zip([None, *effects], effects, strict=False):
            assert not is_refusal(one) or isinstance(told, Tell)
        for effect in effects:
            if isinstance(effect, Append):
                self.stored.append(effect)
                assert effect.seq == len(self.stored) == read(effect.data)["seq"]
                assert effect.id == read(effect.data)["id"]
        assert self.room.seq == len(self.stored)
        if self.rebuilds:
            assert known(self.rebuilt()) == known(self.room)
            assert known(self.rebuilt(snapshot=self.room.snapshot())) == known(self.room)
            if earlier is not None:
                assert known(self.resumed(earlier)) == known(self.room)

    def receive(self, on: str, raw: bytes) -> list[Effect]:
        """What comes of a message, with what the room needs of its store looked up."""
        effects, taken = self.room.receive(on, [raw], self.now)
        return effects if taken else effects + self._looked_up(self.room, on, raw)

    def _looked_up(self, room: Room, on: str, raw: bytes) -> list[Effect]:
        ids, names = room.lookup([room.decode(raw)])
        self.looked_up += [*ids, *names]
        used: dict[str, Used | None] = {one.id: Used(one.seq, one.account) for one in self.stored}
        facts = Facts(
            {id_: used.get(id_) for id_ in ids}, {name: self.absent.get(name) for name in names}
        )
        effects, taken = room.receive(on, [raw], self.now, facts)
        assert taken == 1
        return effects

    def resumed(self, snapshot: bytes, **more: Any) -> Room:
        """The room as it would be after a restart, from what was said after a snapshot."""
        after = msgspec.json.decode(snapshot)["seq"]
        options = {"snapshot": snapshot, "first_seq": 1, **more}
        return Room.rebuild(self.settings, self.new_id, self.stored[after:], self.now, **options)

    def rebuilt(self, **more: Any) -> Room:
        """The room as it would be after a restart."""
        return Room.rebuild(self.settings, self.new_id, self.stored, self.now, **more)

    @property
    def last(self) -> Envelope:
        """The last message of the history."""
        return read(self.stored[-1].data)


def is_refusal(effect: Effect) -> bool:
    """Whether an effect is the audit line of what policy refused."""
    return isinstance(effect, Audit) and effect.action == "policy.refused"


def read(data: bytes) -> Envelope:
    """A message as a strict client reads it."""
    message: Envelope = strict.decode_object(data)
    return message


def known(room: Room) -> Any:
    """All that a room knows, comparable."""
    snapshot = msgspec.json.decode(room.snapshot())
    # A role is what the shell says when someone comes in; a rebuilt room only guesses it.
    snapshot["here"] = sorted((who["account"], who["name"]) for who in snapshot["here"])
    snapshot["first_seq"] = 1
    return snapshot


def fits(given: Any, wanted: Any) -> bool:
    """Whether a value says what is wanted; objects may say more."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        return all(name in given and fits(given[name], wanted[name]) for name in wanted)
    return type(given) is type(wanted) and bool(given == wanted)


def check(given: Envelope, **wanted: Any) -> None:
    wanted = {name.rstrip("_"): value for name, value in wanted.items()}
    assert fits(given, wanted), f"{json.dumps(given)} is not {wanted}"


def joins(name: str, on: str | None = None, role: Role | None = None, **more: Any) -> Step:
    """Someone comes in on a connection, which is called like them unless told."""
    who = more.pop("who", principal(name))
    role = role or ROLES.get(name, Role.MEMBER)
    return lambda play: play.room.join(on or name, who, role, play.now, **more)


def leaves(on: str) -> Step:
    """A connection ends."""
    return lambda play: play.room.disconnect(on, play.now)


def says(on: str, envelope: Envelope | bytes, **more: Any) -> Step:
    """A message comes on a connection."""
    if isinstance(envelope, bytes):
        raw = envelope
    else:
        members = {name.rstrip("_"): value for name, value in more.items()}
        raw = strict.encode({"protocol": "mcpx/v1", **envelope, **members})
    return lambda play: play.receive(on, raw)


def waits(seconds: float) -> Step:
    """Time goes by."""

    def step(play: Play) -> list[Effect]:
        play.now += seconds
        return play.room.tick(play.now)

    return step


def does(change: Callable[[Room, float], list[Effect]]) -> Step:
    """The shell calls the room in some other way."""
    return lambda play: change(play.room, play.now)


def stored(kind: str, from_: str = "gateway", **wanted: Any) -> Expectation:
    """A message becomes part of the history."""

    def expect(play: Play, effect: Effect) -> None:
        assert isinstance(effect, Append), effect
        check(read(effect.data), kind=kind, from_=from_, **wanted)

    return expect


def refused(on: str, code: str, about: str | None = None, **wanted: Any) -> Expectation:
    """The sender alone is told that the message was refused."""

    named = {} if about is None else {"correlation_id": [about]}
    expect_told = told(on, "system.error", payload={"error": code, **wanted}, **named)

    def expect(play: Play, effect: Effect) -> None:
        expect_told(play, effect)
        shown = read(effect.data)["payload"].keys()
        assert {"message", "attempted_kind", "your_capabilities"} <= shown

    return expect


def told(on: str, kind: str, **wanted: Any) -> Expectation:
    """One connection alone is told something."""

    def expect(play: Play, effect: Effect) -> None:
        assert isinstance(effect, Tell), effect
        assert effect.connection == on
        message = read(effect.data)
        assert "seq" not in message
        check(message, kind=kind, **wanted)

    return expect


def attached(on: str, after: int | None = None, **wanted: Any) -> Expectation:
    """A connection is welcomed, and gets what comes from here on."""

    def expect(play: Play, effect: Effect) -> None:
        assert isinstance(effect, Attach), effect
        assert (effect.connection, effect.after) == (on, after)
        welcome = read(effect.welcome)
        assert "seq" not in welcome
        check(welcome, kind="system.welcome", from_="gateway", payload=wanted)
        assert welcome["payload"]["history"]["last_seq"] == effect.through

    return expect


def closed(on: str, code: int) -> Expectation:
    """A connection is ended."""

    def expect(play: Play, effect: Effect) -> None:
        assert effect == Close(on, code)  # type: ignore[arg-type]

    return expect


def logged(action: str, by: str, about: str | None = None, **detail: Any) -> Expectation:
    """The log tells who did what, and when."""

    def expect(play: Play, effect: Effect) -> None:
        assert isinstance(effect, Audit), effect
        assert (effect.action, effect.by, effect.at) == (action, by, play.now)
        assert about in (None, effect.about)
        check(dict(effect.detail), **detail)

    return expect


def expelled(name: str, by: str) -> Expectation:
    """The shell is to let someone in no more."""

    def expect(play: Play, effect: Effect) -> None:
        assert effect == Expel(f"account-{name}", name, principal(by))

    return expect


def invited(
    by: str,
    id_: str,
    *,
    handle: str | None = None,
    guest: str | None = None,
    capabilities: tuple[Any, ...] = (),
) -> Expectation:
    """The shell is to make an invitation."""

    def expect(play: Play, effect: Effect) -> None:
        assert effect == Invite(by, id_, principal(by), handle, guest, capabilities)

    return expect


def chat(text: str = "hello", **body: Any) -> Envelope:
    """Chat in its short form."""
    return {"kind": "chat.message", "payload": {"text": text, **body}}


def chat_notice(text: str = "hello", **body: Any) -> Envelope:
    """Chat as an MCP notification."""
    method = "notifications/chat/message"
    return notice(method, {"text": text, **body})


def notice(method: str, params: Any = None, about: str | None = None) -> Envelope:
    """An MCP notification."""
    payload = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    envelope = {"kind": f"mcp.notification.{method}", "payload": payload}
    return envelope if about is None else {**envelope, "correlation_id": [about]}


def call(to: str | list[str], tool: str = "read", arguments: Any = None, n: Any = 1) -> Envelope:
    """A request to call a tool."""
    asked = {"method": "tools/call", "params": _params(tool, arguments)}
    to = [to] if isinstance(to, str) else to
    payload = {"jsonrpc": "2.0", "id": n, **asked}
    return {"kind": "mcp.request.tools/call", "to": to, "payload": payload}


def answer(about: str, to: str | list[str] = "alice", n: Any = 1, **more: Any) -> Envelope:
    """The response to a tool's call."""
    outcome = more or {"result": {"content": []}}
    return {
        "kind": "mcp.response.tools/call",
        "to": [to] if isinstance(to, str) else to,
        "correlation_id": [about],
        "payload": {"jsonrpc": "2.0", "id": n, **outcome},
    }


def proposal(tool: str = "read", arguments: Any = None, **payload: Any) -> Envelope:
    """A proposal to call a tool."""
    payload = {"method": "tools/call", "params": _params(tool, arguments), **payload}
    return {"kind": "mcp.proposal.tools/call", "payload": payload}


def begin(about: str) -> Envelope:
    """The connection that serves begins a request."""
    return {"kind": "mcpx.begin.request", "correlation_id": [about]}


def _params(tool: str, arguments: Any) -> dict[str, Any]:
    return {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}


def fulfil(about: str, to: str = "files", **call_: Any) -> Envelope:
    """A request that fulfils a proposal."""
    return {**call(to, **call_), "correlation_id": [about]}


def withdraw(about: str) -> Envelope:
    return {"kind": "mcpx.withdraw.proposal", "correlation_id": [about]}


def reject(about: str, reason: str = "no need") -> Envelope:
    rejection = {"kind": "mcpx.reject.proposal", "payload": {"reason": reason}}
    return {**rejection, "correlation_id": [about]}


def grant(recipient: str, *capabilities: Any) -> Envelope:
    payload = {"recipient": recipient, "capabilities": list(capabilities)}
    return {"kind": "capability.grant", "payload": payload}


def revoke(**payload: Any) -> Envelope:
    return {"kind": "capability.revoke", "payload": payload}


def kick(name: str) -> Envelope:
    return {"kind": "room.kick", "payload": {"participant": name}}
