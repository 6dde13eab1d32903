"""What is new to members and guests: counted from how far they read, with who mentions them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from benchmarks.steps import metered
from folkmoot.core import errors as e
from folkmoot.core.events import UNREAD, subject
from folkmoot.rooms import Visitor
from folkmoot.rooms.access import leave_all_rooms
from folkmoot.rooms.limits import COUNTED_MESSAGES, MAX_COUNTED, MAX_MENTIONED
from folkmoot.rooms.unread import mentioned
from tests.rooms.gathering import Gathering, chat, envelope
from tests.store.support import rows
from tests.stores import ON_POSTGRES

METHOD = "notifications/chat/message"
PROPOSAL = envelope("mcp.proposal.tools/call", {"method": "tools/call", "params": {"name": "mow"}})


async def news(hub: Gathering, visitor: Visitor, room: str = "square") -> tuple[Any, Any]:
    view = await hub.rooms.get(visitor, room)
    (listed,) = [one for one in (await hub.rooms.list(visitor)).rooms if one.name == room]
    assert (view.unread, view.mentions) == (listed.unread, listed.mentions)
    return view.unread, view.mentions


async def say(hub: Gathering, visitor: Visitor, text: str, **members: Any) -> int:
    stored = await hub.rooms.post(visitor, "square", chat(text, **members))
    return int(json.loads(stored)["seq"])


async def test_what_others_say_and_propose_is_unread_until_it_is_read(hub):
    await hub.meet(hub.bob)
    await say(hub, hub.ann, "one")
    seq = await say(hub, hub.ann, "two")
    await hub.rooms.post(hub.ann, "square", PROPOSAL)
    await hub.rooms.post(hub.ann, "square", envelope("reasoning.start", {"text": "hm"}))
    assert await news(hub, hub.bob) == (3, 0)
    assert await news(hub, hub.ann) == (0, 0)
    read = await hub.rooms.mark_read(hub.bob, "square", seq)
    assert (read.read_seq, read.unread) == (seq, 1)
    assert (await hub.rooms.mark_read(hub.bob, "square")).unread == 0
    assert await news(hub, hub.bob) == (0, 0)


async def test_reading_never_moves_back_and_never_beyond_the_last_message(hub):
    await hub.meet(hub.bob)
    last = await say(hub, hub.ann, "one")
    assert (await hub.rooms.mark_read(hub.bob, "square", 2**53)).read_seq == last
    assert (await hub.rooms.mark_read(hub.bob, "square", 1)).read_seq == last
    await say(hub, hub.ann, "two")
    assert await news(hub, hub.bob) == (1, 0)


async def test_what_was_said_before_someone_came_is_not_new_to_them(hub):
    await hub.create(hub.ann)
    await say(hub, hub.ann, "long ago, @bob")
    await hub.join(hub.bob)
    kim, _ = await hub.guest("kim")
    assert await news(hub, hub.bob) == await news(hub, kim) == (0, 0)
    await say(hub, hub.ann, "now")
    assert await news(hub, hub.bob) == await news(hub, kim) == (1, 0)


@pytest.mark.parametrize(
    "message",
    [
        chat("look at this, @bob."),
        chat("@Bob?"),
        chat("(@bob)"),
        chat("for you", to=["bob"]),
        envelope(payload={"text": "you", "mentions": ["bob"]}),
        envelope(
            f"mcp.notification.{METHOD}",
            {"jsonrpc": "2.0", "method": METHOD, "params": {"text": "hey @bob, @bob"}},
        ),
    ],
    ids=["text", "capital", "brackets", "to", "listed", "notification"],
)
async def test_a_message_mentions_someone(hub, message):
    await hub.meet(hub.bob)
    await hub.rooms.post(hub.ann, "square", message)
    assert await news(hub, hub.bob) == (1, 1)


@pytest.mark.parametrize("text", ["bob", "mail bob@bob", "@@bob", "@bobby", "@ bob", "x@bob"])
async def test_other_words_mention_nobody(hub, text):
    await hub.meet(hub.bob)
    await say(hub, hub.ann, text)
    assert await news(hub, hub.bob) == (1, 0)


async def test_nobody_mentions_themselves_or_someone_who_is_not_there(hub):
    (cyd,) = await hub.people("cyd")
    await hub.meet(hub.bob, access="invite", grants={"bob": []})
    await hub.rooms.invite(hub.ann, "square", handle="cyd")
    await say(hub, hub.bob, "@bob @cyd @ann @nobody")
    assert await news(hub, hub.bob) == (0, 0)
    assert await news(hub, hub.ann) == (1, 1)
    await hub.join(cyd)
    assert await news(hub, cyd) == (0, 0)


async def test_mentions_after_the_place_that_was_read_stay(hub):
    await hub.meet(hub.bob)
    first = await say(hub, hub.ann, "@bob one")
    await say(hub, hub.ann, "@bob two")
    assert (await hub.rooms.mark_read(hub.bob, "square", first)).mentions == 1
    assert await news(hub, hub.bob) == (1, 1)


async def test_guests_are_mentioned_and_read_as_members_do(hub):
    await hub.create(hub.ann)
    kim, _ = await hub.guest("kim")
    await say(hub, hub.ann, "welcome, @kim")
    assert await news(hub, kim) == (1, 1)
    assert (await hub.rooms.mark_read(kim, "square")).mentions == 0
    await say(hub, hub.ann, "bye, @kim")
    await hub.rooms.post(hub.ann, "square", envelope("room.kick", {"participant": "kim"}))
    assert await hub.store.read(rows("SELECT * FROM room_mentions")) == []


async def test_whoever_is_not_in_a_room_reads_nothing_there(hub):
    await hub.create(hub.ann, access="invite")
    with pytest.raises(e.RoomForbidden):
        await hub.rooms.mark_read(hub.bob, "square")
    await hub.create(hub.ann, "elsewhere")
    kim, _ = await hub.guest("kim")
    with pytest.raises(e.RoomNotFound):
        await hub.rooms.mark_read(kim, "elsewhere")
    assert (await hub.rooms.unread_rooms(hub.bob)).rooms == []


async def test_an_open_room_that_someone_looks_into_does_not_make_them_a_member(hub):
    await hub.create(hub.ann)
    assert (await hub.rooms.mark_read(hub.bob, "square")).unread == 0
    assert (await hub.rooms.get(hub.bob, "square")).role is None


async def test_all_that_is_new_is_found_at_once_with_invitations_and_mentions_first(hub):
    for name in ("square", "quiet", "read", "loud"):
        await hub.create(hub.ann, name)
        await hub.join(hub.bob, name)
    await hub.create(hub.ann, "secret", access="private")
    await hub.rooms.invite(hub.ann, "secret", handle="bob")
    for name, text in (("square", "one"), ("read", "@bob"), ("loud", "@bob"), ("secret", "ssh")):
        await hub.rooms.post(hub.ann, name, chat(text))
    await hub.rooms.mark_read(hub.bob, "read")
    found = await hub.rooms.unread_rooms(hub.bob)
    assert [(one.room, one.unread, one.mentions, one.invited) for one in found.rooms] == [
        ("secret", 0, 0, True),
        ("loud", 1, 1, False),
        ("square", 1, 0, False),
    ]
    assert (found.unread, found.mentions, found.invitations) == (2, 1, 1)
    listed = {one.name: one.invited for one in (await hub.rooms.list(hub.bob)).rooms}
    assert [name for name, invited in listed.items() if invited] == ["secret"]


async def test_a_room_in_memory_alone_counts_nothing(hub):
    await hub.meet(hub.bob, durable=False)
    await say(hub, hub.ann, "@bob")
    assert await news(hub, hub.bob) == (0, 0)


async def test_what_is_unread_is_counted_up_to_a_number_among_the_last_messages(hub):
    live, ear = await hub.meet(hub.bob)
    live.receive(ear, *(chat(f"@ann {number}") for number in range(MAX_COUNTED + 20)))
    await live.flushed()
    assert await news(hub, hub.ann) == (MAX_COUNTED, MAX_COUNTED)
    assert len(await hub.store.read(rows("SELECT * FROM room_mentions"))) == MAX_COUNTED
    for at in range(0, COUNTED_MESSAGES, 100):
        noise = (envelope("reasoning.start", {"text": f"{at + more}"}) for more in range(100))
        live.receive(ear, *noise)
    await live.flushed()
    # There is something, wherever it is.
    assert await news(hub, hub.ann) == (1, MAX_COUNTED)
    (found,) = (await hub.rooms.unread_rooms(hub.ann)).rooms
    assert found.unread == 1


async def test_ten_thousand_names_in_a_text_are_a_few_mentions(hub):
    await hub.meet(hub.bob)
    await say(hub, hub.ann, " ".join(f"@someone{number}" for number in range(10_000)) + " @bob")
    assert await news(hub, hub.bob) == (1, 0)
    names = [f"n{number}" for number in range(10_000)]
    assert mentioned(chat(" ".join(f"@{name}" for name in names))) == names[:MAX_MENTIONED]
    listed = envelope(payload={"text": "x", "mentions": names})
    assert mentioned(listed) == names[:MAX_MENTIONED]
    assert mentioned(chat("@ada " * 100_000)) == ["ada"]
    assert mentioned(envelope(payload={"text": "x", "mentions": ["y" * 1_000_000]})) == []


@pytest.mark.skipif(ON_POSTGRES, reason="SQLite counts its steps")
async def test_chat_that_mentions_nobody_costs_nothing_and_ten_names_as_much_as_one(tmp_path):
    from tests.rooms.gathering import gathering

    with metered() as meter:
        async with gathering(tmp_path) as hub:
            hub.ann, hub.bob = await hub.people("ann", "bob")
            await hub.meet(hub.bob)
            await say(hub, hub.ann, "hello")
            meter.statements.clear()
            await say(hub, hub.ann, "hello again")
            assert not [sql for sql in meter.statements if "room_mentions" in sql]
            meter.statements.clear()
            await say(hub, hub.ann, " ".join(f"@name{number}" for number in range(100)))
            assert len([sql for sql in meter.statements if "room_mentions" in sql]) == 2


async def test_whoever_leaves_or_is_gone_leaves_no_mentions(hub):
    (cyd,) = await hub.people("cyd")
    await hub.meet(hub.bob, cyd)
    await say(hub, hub.ann, "@bob @cyd")
    await hub.rooms.depart(hub.bob, "square")
    await hub.accounts.delete(cyd.account, also=leave_all_rooms)
    assert await hub.store.read(rows("SELECT * FROM room_mentions")) == []


async def test_devices_are_told_of_mentions_and_of_what_was_read_elsewhere(hub):
    await hub.meet(hub.bob)
    told: list[Any] = []
    stop = hub.store.bus.listen(
        subject(UNREAD, hub.bob.principal.account_id), lambda event: told.append(event.data)
    )
    await say(hub, hub.ann, "nobody")
    await say(hub, hub.ann, "@bob")
    await hub.rooms.mark_read(hub.bob, "square")
    await hub.rooms.mark_read(hub.bob, "square")
    stop()
    assert told == [
        {"room": "square", "change": "mention"},
        {"room": "square", "change": "read"},
    ]


@pytest.mark.parametrize(
    "kind", ["chat.messages", "chat.message.x", "chat.message.text.x", "chat.messagex.y"]
)
@pytest.mark.parametrize(
    "payload",
    [5, [], "@bob", {"x": "@bob"}, {"text": 5, "x": "@"}, {"text": "@bob", "mentions": 5}],
)
async def test_what_only_looks_like_chat_is_refused_or_kept_and_the_room_goes_on(
    hub, kind, payload
):
    await hub.meet(hub.bob)
    with suppress(e.FolkmootError):
        await hub.rooms.post(hub.ann, "square", envelope(kind, payload))
    await say(hub, hub.ann, "still here, @bob")
    assert (await news(hub, hub.bob))[1] == 1
