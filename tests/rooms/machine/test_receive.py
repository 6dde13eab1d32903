"""Plain chat is received in runs, and comes out as if each message had been received alone."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.core.policy import PrincipalType
from folkmoot.core.strict import Limits
from folkmoot.ratelimits import Limit, Rate
from folkmoot.rooms.machine import Append, Effect, Rates, Role, Room, RoomSettings, Tell, receive
from folkmoot.rooms.machine.chat import read_plain
from folkmoot.rooms.machine.model import NO_FACTS
from tests.rooms.machine.playbook import SETTINGS, START, principal

HEAD = '{"protocol":"mcpx/v1","kind":"chat.message",'


def chat(text: str = "hello", **more: Any) -> bytes:
    message = {"protocol": "mcpx/v1", "kind": "chat.message", "payload": {"text": text}, **more}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


PLAIN = {
    "text": chat(),
    "format": chat(payload={"text": "hi", "format": "markdown"}),
    "old format": chat(payload={"text": "hi", "format": "text"}),
    "an id": chat(id="m1"),
    "letters": chat("Grüße 🎈"),
    "escapes": chat('a "quoted"\nline'),
    "another order": HEAD[:-1].encode() + b',"id":"m2","payload":{"text":"x"}}',
    "long": chat("x" * 70_000),
}
OTHER = {
    "nothing": b"",
    "no json": b"{",
    "not UTF-8": HEAD.encode() + b'"payload":{"text":"\xff"}}',
    "a blank": b" " + chat(),
    "an empty text": chat(""),
    "a blank text": chat(" \n"),
    "no text": chat(payload={}),
    "an unknown format": chat(payload={"text": "x", "format": "html"}),
    "null": chat(id=None),
    "a null format": chat(payload={"text": "x", "format": None}),
    "a duplicate": HEAD.encode() + b'"payload":{"text":"x"},"payload":{"text":"y"}}',
    "a duplicate text": HEAD.encode() + b'"payload":{"text":"x","text":"y"}}',
    "an escape": HEAD.encode() + rb'"payload":{"text":"\u0041"}}',
    "half a pair": HEAD.encode() + rb'"payload":{"text":"\ud800"}}',
    "another protocol": chat(protocol="mcpx/v2"),
    "its own seq": chat(seq=7),
    "a recipient": chat(to=["alice"]),
    "a sender": chat(**{"from": "bob"}),
    "a forged sender": chat(**{"from": "alice"}),
    "a mention": chat(payload={"text": "x", "mentions": ["alice"]}),
    "MCP in disguise": chat(payload={"text": "x", "jsonrpc": "2.0"}),
    "an id with a control character": chat(id="a\x7fb"),
    "an overlong id": chat(id="x" * 129),
    "an unknown member": chat(mood="good"),
    "a context": chat(context="thread-1"),
    "an old kind": chat(kind="chat"),
    "a method": chat(kind="chat.message.plain"),
    "a thought": chat(kind="reasoning.thought"),
    "too large": chat("x" * 100_000),
}
CASES = {**PLAIN, **OTHER}


def members_hold(*rights: Any) -> dict[str, Any]:
    return {"rights": {**SETTINGS.rights, Role.MEMBER: rights}}


RIGHTS = {
    "all": {},
    "none": members_hold(),
    "a deny": {"account_rights": {"account-bob": ("!mcp.notification.notifications/chat/*",)}},
    "a constraint": {"rights": {Role.MEMBER: ({"kind": "chat.*", "payload": {"text": "hello"}},)}},
    "a chat limit": {"chat": {PrincipalType.PERSON: Limit(3, 60)}},
    "rates": {"rates": Rates(sent=Rate(1, 5_000), answers=Rate(1, 5_000))},
    "few values": {"limits": Limits(message_bytes=90_000, values=4)},
    "old spellings": {"accept_old_spellings": True},
}


def quota(author: str, owner: str | None, size: int) -> None:
    """Two of the long messages fit, but not a third."""
    if size > 180_000:
        raise e.QuotaExceeded("No room is left.")


def room(settings: RoomSettings, *, limited: bool = False, stored: bool = False) -> Room:
    made = iter(range(10_000))
    admit = quota if limited else None
    found = Room(settings, lambda: f"g{next(made)}", stored=stored, admit=admit)
    for name in ("alice", "bob", "files"):
        role = Role.OWNER if name == "alice" else Role.MEMBER
        found.join(name[0], principal(name), role, START)
    return found


def said(here: Room, connection: str, messages: list[bytes]) -> list[Effect]:
    return here.receive(connection, messages, START, NO_FACTS)[0]


def alone(here: Room, connection: str, messages: list[bytes]) -> list[Effect]:
    """The same, with plain chat received as any other message."""
    with mock.patch.object(receive, "_may_be_plain", return_value=False):
        return said(here, connection, messages)


@pytest.mark.parametrize("name", CASES)
def test_what_is_plain_is_known_by_reading_it(name):
    assert (read_plain(CASES[name]) is not None) is (name in PLAIN or name == "too large")


@pytest.mark.parametrize("name", RIGHTS)
@pytest.mark.parametrize("connection", ["b", "f"])
def test_a_run_of_messages_does_what_each_of_them_would_do(name, connection):
    limits = {"limits": Limits(message_bytes=90_000)}
    settings = msgspec.structs.replace(SETTINGS, **{**limits, **RIGHTS[name]})
    messages = [*PLAIN.values(), *CASES.values(), *PLAIN.values(), *PLAIN.values()]
    for limited in (False, True):
        runs, one_by_one = room(settings, limited=limited), room(settings, limited=limited)
        assert said(runs, connection, messages) == alone(one_by_one, connection, messages)
        assert runs.snapshot() == one_by_one.snapshot()
        assert runs.seq == one_by_one.seq


def test_a_message_that_is_refused_does_not_count_against_those_after_it():
    here = room(SETTINGS, limited=True)
    sizes = (90_000, 100_000, 1_000, 100_000, 1_000)
    effects = said(here, "b", [chat("x" * size) for size in sizes])
    assert [type(one) for one in effects] == [Append, Tell, Append, Tell, Append]


def test_a_person_releases_agents_whom_the_loop_guard_holds_also_in_a_run():
    settings = msgspec.structs.replace(SETTINGS, loop_guard=1)
    runs, one_by_one = room(settings), room(settings)
    for here, say in ((runs, said), (one_by_one, alone)):
        here.join("g", agent("clock"), Role.MEMBER, START)
        for connection in ("f", "g", "f"):
            say(here, connection, [chat()])
    assert said(runs, "f", [chat()]) == alone(one_by_one, "f", [chat()])
    assert said(runs, "b", [chat(), chat()]) == alone(one_by_one, "b", [chat(), chat()])


def agent(name: str) -> Any:
    return msgspec.structs.replace(principal(name), type=PrincipalType.AGENT)


def test_a_used_id_is_refused_within_a_run():
    here = room(SETTINGS)
    effects = said(here, "b", [chat(id="m1"), chat(id="m1"), chat(id="m2")])
    assert [type(one) for one in effects] == [Append, Tell, Append]


def test_a_run_ends_where_an_id_must_be_looked_up():
    bounds = msgspec.structs.replace(SETTINGS.bounds, ids=2)
    here = room(msgspec.structs.replace(SETTINGS, bounds=bounds), stored=True)
    effects, taken = here.receive("b", [chat(), chat(), chat(id="m1"), chat()], START)
    assert (len(effects), taken) == (2, 2)


def test_what_the_hub_denies_is_asked_for_each_message():
    asked: list[str] = []
    here = Room(
        SETTINGS,
        iter(map(str, range(99))).__next__,
        hub_check=lambda _: lambda *a: asked.append(a[1]),
    )
    here.join("b", principal("bob"), Role.MEMBER, START)
    said(here, "b", [chat(), chat()])
    assert asked == ["square", "square"]
