"""A room that is rebuilt from a snapshot, what came after it, and the ids of what came before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from folkmoot.core.strict import encode
from folkmoot.rooms.machine import Append, Attach, Remembered, Role, Room, Tell, Used
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


def ids_of(messages: Iterable[Append]) -> list[Remembered]:
    return [(one.id, one.seq, one.account) for one in messages]


def refusal(room: Room, id_: str, now: float) -> dict[str, Any] | None:
    """What bob is told when he uses an id; nothing if it is free."""
    message = encode({"protocol": "mcpx/v1", **chat(), "id": id_})
    (effect,) = room.receive("bob", message, now)
    return read(effect.data)["payload"] if isinstance(effect, Tell) else None


class Shelf:
    """A store that is asked about ids, and remembers about which."""

    def __init__(self, messages: Iterable[Append]) -> None:
        self.asked: list[str] = []
        self._used: dict[str, Used] = {one.id: (one.seq, one.account) for one in messages}

    def __call__(self, id_: str) -> Used | None:
        self.asked.append(id_)
        return self._used.get(id_)


@pytest.fixture
def long(stage: Callable[..., Play]) -> Play:
    """A play in which bob said m1 to m20."""
    play = stage(SETTINGS, "alice", "bob", "files")
    for n in range(1, 21):
        play >> says("bob", chat(), id=f"m{n}") << stored("chat.message", "bob")
    return play


def test_any_snapshot_and_what_came_after_it_make_the_same_room(play: Play) -> None:
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


def test_messages_before_the_snapshot_need_not_be_given(long: Play) -> None:
    snapshot = long.room.snapshot()
    room = Room.rebuild(
        SETTINGS,
        long.new_id,
        [],
        long.now,
        snapshot=snapshot,
        ids=ids_of(long.stored),
        first_seq=1,
    )
    assert (room.seq, room.first_seq) == (long.room.seq, 1)
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    refused = refusal(room, "m1", long.now)
    assert refused is not None
    assert (refused["error"], refused["seq"]) == ("id_used", 4)
    assert refusal(room, "m21", long.now) is None
    assert room.seq == long.room.seq + 1


def test_the_history_begins_where_it_is_said_to(long: Play) -> None:
    snapshot = long.room.snapshot()
    for first_seq, complete in ((5, True), (6, False)):
        room = long.resumed(snapshot, first_seq=first_seq)
        effects = room.join("bob", principal("bob"), Role.MEMBER, long.now, after=4)
        (attach,) = [one for one in effects if isinstance(one, Attach)]
        told = read(attach.welcome)["payload"]
        assert told["history"]["first_seq"] == room.first_seq == first_seq
        assert told["resume"]["complete"] is complete


def test_without_a_word_about_it_the_history_begins_where_the_snapshot_says(long: Play) -> None:
    long.room.trim(7)
    room = long.resumed(long.room.snapshot(), first_seq=None)
    assert room.first_seq == 7


def test_an_id_is_looked_up_only_where_the_history_is_longer_than_the_ids(long: Play) -> None:
    snapshot, tail = long.room.snapshot(), ids_of(long.stored[10:])
    for first_seq, looked_up in ((1, ["new", "m3"]), (11, [])):
        shelf = Shelf(long.stored)
        room = long.resumed(snapshot, ids=tail, first_seq=first_seq, older=shelf)
        room.join("bob", principal("bob"), Role.MEMBER, long.now)
        assert refusal(room, "m20", long.now) is not None
        assert refusal(room, "new", long.now) is None
        assert (refusal(room, "m3", long.now) is not None) is bool(looked_up)
        assert shelf.asked == looked_up


def test_a_room_without_any_ids_looks_all_of_them_up(long: Play) -> None:
    shelf = Shelf(long.stored)
    room = long.resumed(long.room.snapshot(), ids=[], older=shelf)
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    assert refusal(room, "m20", long.now) is not None
    assert shelf.asked == ["m20"]


def test_an_id_that_is_given_twice_is_remembered_once(long: Play) -> None:
    bounds = msgspec.structs.replace(SETTINGS.bounds, ids=len(long.stored))
    long.settings = msgspec.structs.replace(SETTINGS, bounds=bounds)
    shelf = Shelf(long.stored)
    room = Room.rebuild(
        long.settings, long.new_id, long.stored, long.now, ids=ids_of(long.stored), older=shelf
    )
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    assert refusal(room, "m1", long.now) is not None
    assert shelf.asked == []


def test_once_the_history_is_as_short_as_memory_nothing_is_looked_up(long: Play) -> None:
    shelf = Shelf(long.stored)
    room = long.resumed(long.room.snapshot(), ids=ids_of(long.stored[10:]), older=shelf)
    room.join("bob", principal("bob"), Role.MEMBER, long.now)
    room.trim(10)
    assert refusal(room, "one", long.now) is None
    assert shelf.asked == ["one"]
    room.trim(11)
    assert refusal(room, "two", long.now) is None
    room.trim(12)
    assert refusal(room, "three", long.now) is None
    assert shelf.asked == ["one"]
