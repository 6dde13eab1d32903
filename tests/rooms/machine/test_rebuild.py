"""A room that is rebuilt from a snapshot, what came after it, and the ids of what came before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from folkmoot.core.strict import encode
from folkmoot.rooms.machine import REPLAYED, Append, Attach, Facts, Role, Room, Tell
from folkmoot.rooms.machine.model import Used
from tests.rooms.machine.playbook import (
    SETTINGS,
    Play,
    call,
    chat,
    joins,
    known,
    leaves,
    principal,
    proposal,
    read,
    says,
    stored,
)


def refusal(play: Play, room: Room, id_: str) -> dict[str, Any] | None:
    """What bob is told when he uses an id; nothing if it is free."""
    play.room = room
    message = encode({"protocol": "mcpx/v1", **chat(), "id": id_})
    (effect,) = play.receive("bob", message)
    return read(effect.data)["payload"] if isinstance(effect, Tell) else None


@pytest.fixture
def long(stage: Callable[..., Play]) -> Play:
    """A play in which bob said m1 to m20."""
    play = stage("alice", "bob", "files")
    for n in range(1, 21):
        play >> says("bob", chat(), id=f"m{n}") << stored("chat.message", "bob")
    return play


def test_any_snapshot_and_what_came_after_it_make_the_same_room(play):
    snapshots = [play.room.snapshot()]
    for step, effects in (
        (says("bob", proposal(), id="p1"), 2),
        (says("alice", call("files"), id="q1"), 1),
        (says("bob", chat(), id="m1"), 1),
        (leaves("bob"), 1),
        (joins("carol"), 2),
    ):
        play >> step
        assert len(play.waiting) == effects
        play.waiting.clear()
        snapshots.append(play.room.snapshot())
    for snapshot in snapshots:
        assert known(play.resumed(snapshot)) == known(play.room)


def test_messages_before_the_snapshot_need_not_be_given(long):
    snapshot, seq = long.room.snapshot(), long.room.seq
    kept = [msgspec.structs.replace(one, data=b"never read") for one in long.stored[9:]]
    room = Room.rebuild(SETTINGS, long.new_id, kept, long.now, snapshot=snapshot, first_seq=1)
    assert (room.seq, room.first_seq) == (seq, 1)
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    refused = refusal(long, room, "m1")
    assert (refused["error"], refused["seq"]) == ("id_used", 4)
    assert refusal(long, room, "m21") is None
    assert room.seq == seq + 1


def test_chat_need_not_be_given_where_the_last_message_is_known(play):
    snapshot = play.room.snapshot()
    play >> says("bob", proposal(), id="p1") << stored("mcp.proposal.tools/call", "bob")
    play.waiting.clear()
    play >> says("bob", chat()) << stored("chat.message", "bob")
    replayed = [one for one in play.stored if one.kind.startswith(REPLAYED)]
    assert [one.kind for one in replayed[3:]] == ["mcp.proposal.tools/call:read"]
    room = Room.rebuild(
        SETTINGS, play.new_id, replayed, play.now, snapshot=snapshot, last_seq=play.room.seq
    )
    assert known(room) == known(play.room)


def test_the_history_begins_where_it_is_said_to(long):
    snapshot = long.room.snapshot()
    for first_seq, complete in ((5, True), (6, False)):
        room = long.resumed(snapshot, first_seq=first_seq)
        effects = room.join("bob", principal("bob"), Role.MEMBER, long.now, after=4)
        (attach,) = [one for one in effects if isinstance(one, Attach)]
        told = read(attach.welcome)["payload"]
        assert told["history"]["first_seq"] == room.first_seq == first_seq
        assert told["resume"]["complete"] is complete


def test_without_a_word_about_it_the_history_begins_where_the_snapshot_says(long):
    long.room.trim(7)
    room = long.resumed(long.room.snapshot(), first_seq=None)
    assert room.first_seq == 7


def test_after_a_restart_ids_are_looked_up_and_those_since_then_are_not(long):
    room = long.resumed(long.room.snapshot())
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    assert refusal(long, room, "m3") is not None
    assert refusal(long, room, "new") is None
    assert refusal(long, room, "new") is not None
    assert long.looked_up == ["m3", "new"]


def test_a_room_whose_history_is_gone_looks_nothing_up(long):
    room = long.resumed(long.room.snapshot(), first_seq=long.room.seq + 1)
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    assert refusal(long, room, "m3") is None
    assert long.looked_up == []


def test_once_the_history_is_as_short_as_memory_nothing_is_looked_up(long):
    seq = long.room.seq
    room = long.resumed(long.room.snapshot())
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    assert refusal(long, room, "one") is None
    room.trim(seq)
    assert refusal(long, room, "two") is None
    assert long.looked_up == ["one", "two"]
    room.trim(seq + 1)
    assert refusal(long, room, "three") is None
    room.trim(seq + 2)
    assert refusal(long, room, "four") is None
    assert long.looked_up == ["one", "two"]
    assert refusal(long, room, "four") is not None


def test_of_many_messages_those_before_the_first_that_needs_a_lookup_are_taken(long):
    room = long.resumed(long.room.snapshot())
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    messages = [
        encode({"protocol": "mcpx/v1", **chat(), **named}) for named in ({}, {"id": "m3"}, {})
    ]
    effects, taken = room.receive("bob", messages, long.now)
    assert ([type(one) for one in effects], taken) == ([Append], 1)
    facts = Facts({"m3": Used(6, "account-bob")})
    effects, taken = room.receive("bob", messages[1:], long.now, facts)
    assert ([type(one) for one in effects], taken) == ([Tell, Append], 2)
