"""Streams of events: who hears what, what is kept for whom, and what it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from folkmoot.bus import MemoryBus
from folkmoot.core import errors as e
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.mcp.server.streams import StreamReader
from folkmoot.transports.events import EventStreams, Following
from folkmoot.transports.limits import MAX_EVENTS_WAITING, MAX_EVENTS_WAITING_BYTES
from tests.conftest import settings_of

SECONDS = 60.0
MAIL = {"seq": 1, "id": "m1", "thread_id": "t1", "urgent": False, "muted": False}


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus()


@pytest.fixture
def here(bus: MemoryBus, request: pytest.FixtureRequest) -> EventStreams:
    limits = {"most": 100, "most_each": 3, "resume_seconds": SECONDS, "most_bytes": 1 << 24}
    return EventStreams(bus, **{**limits, **settings_of(request)})


def who(id_: str, **members: Any) -> Following:
    principal = Principal(id_, id_, PrincipalType.PERSON)
    with_ = members.pop("with_", f"c_{id_}")
    return Following(principal=principal, id=id_, credential_id=with_, **members)


def parsed(data: bytes) -> list[tuple[str, str, Any]]:
    """The id, the name and the data of each event."""
    found = []
    for block in data.decode().strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


async def heard(reader: StreamReader) -> list[tuple[str, Any]]:
    """What is there to be read, without ids."""
    return [(name, data) for _, name, data in await told(reader)]


async def told(reader: StreamReader) -> list[tuple[str, str, Any]]:
    data = await reader.more(0)
    return parsed(data) if data else []


async def following(here: EventStreams, follows: Following, **rooms: int) -> StreamReader:
    """What someone hears who is in these rooms."""

    async def known() -> dict[int, str]:
        return {number: name for name, number in rooms.items()}

    one, reader, _ = here.follow(follows)
    await one.follow_rooms(known)
    return reader


async def test_everyone_hears_of_their_own_things_and_of_nobody_elses(bus, here):
    ann, bob = [await following(here, who(each)) for each in ("ann", "bob")]
    bus.emit("mail.ann", MAIL)
    bus.emit("sent.ann", {"id": "m2", "thread_id": "t1"})
    bus.emit("mail.ann", {"change": "read", "thread_id": None})
    bus.emit("contacts.ann", {"handle": "bob", "change": "blocked"})
    bus.emit("tokens.ann", {"id": "c_9", "change": "created"})
    renamed = {"id": "ann", "change": "handle", "handle": "anna", "type": "person"}
    bus.emit("account.ann", renamed)
    bus.emit("members.ann", {"room_id": 7, "room": "square", "state": "invited"})
    received = {"message_id": "m1", "thread_id": "t1", "urgent": False, "muted": False}
    assert await heard(ann) == [
        ("mail.received", received),
        ("mail.sent", {"message_id": "m2", "thread_id": "t1"}),
        ("mail.changed", {"change": "read", "thread_id": None}),
        ("contacts.changed", {"handle": "bob", "change": "blocked"}),
        ("tokens.changed", {"id": "c_9", "change": "created"}),
        ("account.changed", {"handle": "anna", "change": "handle"}),
        ("room.membership", {"room": "square", "state": "invited"}),
    ]
    assert await heard(bob) == []


async def test_what_is_for_operators_is_told_to_operators_alone(bus, here):
    people = who("ann"), who("root", operator=True), who("", with_="", operator=True)
    ann, root, socket = [await following(here, each) for each in people]
    bus.emit("held", {"view": {"id": 3}, "change": "held"})
    bus.emit("server.files", {"state": "down"})
    bus.emit("pins.files", {"by": "x", "accepted": True})
    bus.emit("grants.bob", None)
    bus.emit("tokens.bob", {"id": "c_1", "change": "created"})
    bus.emit("account.bob", {"id": "bob", "change": "suspended"})
    bus.emit("audit", {"id": 7})
    bus.emit("settings", None)
    operators = [
        ("held.changed", {"id": 3, "change": "held"}),
        ("server.changed", {"server": "files", "state": "down"}),
        ("pins.changed", {"server": "files"}),
        ("people.changed", {"change": "rights"}),
        ("people.changed", {"change": "tokens"}),
        ("people.changed", {"change": "account"}),
        ("audit.changed", {"id": 7}),
    ]
    lists = {"lists": ["tools", "prompts", "resources", "templates"]}
    assert await heard(ann) == [("tools.changed", lists)]
    assert (await heard(root))[:7] == operators
    assert await heard(socket) == [*operators, ("settings.changed", {})]


async def test_rights_are_asked_at_each_event_and_their_change_is_told(bus, here):
    denied = set[str]()

    def permits(_: Principal, operation: str, arguments: dict[str, Any]) -> bool:
        return operation not in denied and arguments.get("room") not in denied

    ann = await following(here, who("ann", permits=permits))
    bus.emit("mail.ann", MAIL)
    denied.add("msg/inbox")
    bus.emit("mail.ann", MAIL)
    bus.emit("mail.ann", {"change": "read", "thread_id": "t1"})
    assert [name for name, _ in await heard(ann)] == ["mail.received", "mail.changed"]
    bus.emit("members.ann", {"room_id": 7, "room": "square", "state": "member"})
    bus.emit("said.7", {"seq": 1, "presence": [], "proposals": [], "rights": False, "talk": False})
    bus.emit("unread.guest:2", {"room": "square", "change": "mention"})
    bus.emit("unread.guest:1", {"room": "square", "change": "mention"})
    denied.add("square")
    bus.emit("said.7", {"seq": 2, "presence": [], "proposals": []})
    bus.emit("grants.ann", None)
    # What waited was told under other rights.
    assert await heard(ann) == [("reload", {"reason": "rights"})]


async def test_rooms_are_followed_while_one_is_in_them(bus, here):
    ann, reader, _ = here.follow(who("ann"))

    async def rooms() -> dict[int, str]:
        # These come while the store is read, and are newer than what it says.
        bus.emit("members.ann", {"room_id": 2, "room": "two", "state": None})
        bus.emit("members.ann", {"room_id": 3, "room": "three", "state": "member"})
        return {1: "one", 2: "two"}

    await ann.follow_rooms(rooms)
    await heard(reader)
    news = {
        "seq": 5,
        "presence": [{"participant": "bob", "change": "join"}],
        "proposals": [{"proposal": "p1", "change": "made"}],
        "rights": False,
        "talk": True,
    }
    for room in (1, 2, 3, 4):
        bus.emit(f"said.{room}", news)
    assert await heard(reader) == [
        told
        for room in ("one", "three")
        for told in (
            ("room.message", {"room": room, "seq": 5, "talk": True}),
            ("room.presence", {"room": room, "participant": "bob", "change": "join"}),
            ("room.proposal", {"room": room, "proposal": "p1", "change": "made"}),
        )
    ]
    bus.emit("room.1", {"by": "", "gone": False})
    bus.emit("room.1", {"by": "", "gone": True})
    bus.emit("members.ann", {"room_id": 3, "room": "three", "state": "banned"})
    for room in (1, 3):
        bus.emit(f"said.{room}", news)
    assert await heard(reader) == [
        ("room.changed", {"room": "one", "change": "settings"}),
        ("room.changed", {"room": "one", "change": "removed"}),
        ("room.membership", {"room": "three", "state": "banned"}),
    ]


async def test_a_guest_hears_of_its_room_alone_until_it_is_put_out(bus, here):
    reader = await following(here, who("guest:1", is_account=False), square=7)
    bus.emit("said.7", {"seq": 1, "presence": [], "proposals": [], "rights": False, "talk": False})
    bus.emit("unread.guest:2", {"room": "square", "change": "mention"})
    bus.emit("unread.guest:1", {"room": "square", "change": "mention"})
    bus.emit("backend.files", {"lists": ["tools"]})
    bus.emit("settings", None)
    assert await heard(reader) == [
        ("room.message", {"room": "square", "seq": 1, "talk": False}),
        ("room.unread", {"room": "square", "change": "mention"}),
    ]
    bus.emit("members.guest:1", {"room_id": 7, "room": "square", "state": "banned"})
    assert await reader.more(0) is None
    assert len(here) == 0


ENDS = [
    ("credential.c_1", {"account": "ann"}),
    ("account.ann", {"id": "ann", "change": "suspended", "handle": "ann", "type": "person"}),
    ("account.ann", {"id": "ann", "change": "recovered", "handle": "ann", "type": "person"}),
]


@pytest.mark.parametrize(("subject", "data"), ENDS)
async def test_a_stream_ends_with_what_let_it_in_and_cannot_be_resumed(bus, here, subject, data):
    ann = who("ann", with_="c_1")
    _, reader, _ = here.follow(ann)
    _, other, _ = here.follow(who("bob"))
    bus.emit("mail.ann", MAIL)
    ((last, _, _),) = await told(reader)
    bus.emit(subject, data)
    bus.emit("mail.ann", MAIL)
    assert await reader.more(0) is None
    assert await other.more(0) == b""
    assert len(here) == 1
    _, again, _ = here.follow(ann, last)
    assert await heard(again) == [("reload", {"reason": "gap"})]


async def test_a_stream_ends_when_its_token_expires(here):
    _, reader, _ = here.follow(who("ann", expires_in=0.01))
    assert await reader.more(SECONDS) is None
    assert len(here) == 0


async def test_a_stream_goes_on_after_the_last_event_that_arrived(bus, here):
    ann = who("ann")
    _, reader, first = here.follow(ann)
    begun = parsed(first.replace(b"retry", b"event: message\nretry").replace(b"data: ", b"data: 0"))
    for number in range(4):
        bus.emit("mail.ann", {**MAIL, "id": f"m{number}"})
    ids = [id_ for id_, _, _ in await told(reader)]
    reader.leave()
    bus.emit("mail.ann", {**MAIL, "id": "m4"})
    for last, missing in ((begun[0][0], 5), (ids[1], 3), (ids[3], 1)):
        _, again, prefix = here.follow(ann, last)
        assert prefix == b""
        found = await told(again)
        assert [data["message_id"] for _, _, data in found] == [
            f"m{number}" for number in range(5 - missing, 5)
        ]
        again.leave()
    assert (len(here), here.resumed) == (1, 3)


async def test_nobody_resumes_anothers_stream_nor_one_of_another_credential(bus, here):
    _, reader, _ = here.follow(who("ann"))
    bus.emit("mail.ann", MAIL)
    ((last, _, _),) = await told(reader)
    bus.emit("mail.ann", {**MAIL, "id": "secret"})
    for other in (who("bob"), who("ann", with_="c_narrow"), who("ann", operator=True)):
        for event_id in (last, "made up", f"{last}0", "", "a" * 100_000):
            one, again, _ = here.follow(other, event_id)
            expected = [("reload", {"reason": "gap"})] if event_id else []
            assert await heard(again) == expected
            one.end()
    # Whoever has the stream still has it.
    assert [data["message_id"] for _, data in await heard(reader)] == ["secret"]


async def test_a_slow_reader_is_told_to_reload_and_costs_no_more_than_its_bounds(bus, here):
    one, slow, _ = here.follow(who("ann"))
    _, quick, _ = here.follow(who("ann"))
    bus.emit("mail.ann", MAIL)
    being_written = await slow.more(0)
    assert being_written
    count = 0
    for number in range(5_000):
        bus.emit("mail.ann", {**MAIL, "id": f"m{number}"})
        count += len(await heard(quick))
        assert one.stream.unsent <= MAX_EVENTS_WAITING_BYTES + 1_024
        assert one.stream.waiting <= MAX_EVENTS_WAITING + 1
    assert count == 5_001
    found = await heard(slow)
    assert found[0] == ("reload", {"reason": "overflow"})
    assert found[-1][1]["message_id"] == "m4999"
    # What was dropped cannot be resumed over.
    slow.leave()
    (last, _, _) = parsed(being_written)[0]
    _, again, _ = here.follow(who("ann"), last)
    assert await heard(again) == [("reload", {"reason": "gap"})]
    assert here.told["reload"] > 1


@pytest.mark.settings(most=5)
async def test_streams_are_bounded_for_each_account_and_for_the_hub(here):
    readers = [here.follow(who("ann"))[1] for _ in range(3)]
    with pytest.raises(e.ConnectionsExceeded):
        here.follow(who("ann"))
    # One that is only kept for a client that may come back gives way.
    readers[1].leave()
    _, newest, _ = here.follow(who("ann"))
    assert len(here) == 3
    here.follow(who("bob"))
    here.follow(who("bob"))
    with pytest.raises(e.HubFull):
        here.follow(who("eve"))
    newest.leave()
    here.follow(who("eve"))
    assert len(here) == 5


@pytest.mark.settings(most=3_000, most_each=3_000, most_bytes=1 << 20)
async def test_streams_that_were_left_are_forgotten_with_all_they_listened_to(bus, here):
    # A session has a sixteenth of the memory: far fewer than come are kept.
    for _ in range(1_000):
        _, reader, _ = here.follow(who("ann"))
        reader.leave()
    assert len(here) <= 64
    kept = [one for own in here._own.values() for one in own.followers.values()]
    for one in kept:
        one.end()
    assert (len(here), here._own) == (0, {})
    assert not bus._listeners


@pytest.mark.settings(most=1_000)
@pytest.mark.parametrize("others", [17, 400])
async def test_an_event_costs_as_much_as_those_whom_it_concerns_however_many_follow(
    bus, here, others
):
    asked: list[Principal] = []

    def permits(follower: Principal, *_: Any) -> bool:
        asked.append(follower)
        return True

    for each in (*["ann"] * 3, *(f"other{number}" for number in range(others))):
        here.follow(who(each, permits=permits))
    bus.emit("mail.ann", MAIL)
    assert asked == [who("ann").principal] * 3
