"""An author who does not read: the buffer is bounded, and still nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.client import Gap
from folkmoot.client import link as links
from folkmoot.client import queues as buffers
from folkmoot.core.closecodes import CloseCode
from tests.client.support import check_whole, eventually, offer_double, read_to

SMALL = 8
MANY = 200


@pytest.fixture(autouse=True)
def small_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "MAX_INBOX", SMALL)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[links.Link]:
    """Every connection that is opened, to be looked at."""
    opened: list[links.Link] = []
    made = links.Link.__init__

    def remember(self: links.Link, on_text: object) -> None:
        made(self, on_text)  # type: ignore[arg-type]
        opened.append(self)

    monkeypatch.setattr(links.Link, "__init__", remember)
    return opened


async def test_one_who_does_not_read_is_read_for_no_more_and_then_misses_nothing(
    alice, bob, connections
):
    alice._entered().inbox.discard()
    mine = connections[1]
    for n in range(MANY):
        await alice.say(str(n))
    await eventually(lambda: mine._paused)
    assert len(bob._entered().inbox._messages) <= 2 * SMALL
    check_whole(await read_to(bob, str(MANY - 1)))
    assert not mine._paused


async def test_one_who_was_too_slow_comes_back_when_there_is_room(hub, alice, bob, connections):
    alice._entered().inbox.discard()
    for n in range(MANY):
        await alice.say(str(n))
    await eventually(lambda: connections[1]._paused)
    hub.clients[1].cut(CloseCode.TOO_SLOW)
    await eventually(lambda: len(hub.clients) == 1)
    await alice.say("meanwhile")
    assert len(hub.joins) == 2
    check_whole(await read_to(bob, "meanwhile"))
    assert len(hub.joins) >= 3


async def test_one_whose_connection_ended_meanwhile_stays_away_until_there_is_room_or_need(
    hub, alice, bob, connections
):
    for n in range(MANY):
        await alice.say(str(n))
    await eventually(lambda: connections[1]._paused)
    connections[1].drop()
    await eventually(lambda: bob._entered()._wanted is not None)
    mine = hub.joins[1]["conn"]
    assert [asked["conn"] for asked in hub.joins].count(mine) == 1
    await bob.say("need")
    assert [asked["conn"] for asked in hub.joins].count(mine) == 2
    check_whole(await read_to(bob, "need"))


async def test_one_who_waits_for_an_answer_gets_it_though_nothing_is_read(alice, bob):

    @bob.tool
    async def chatty() -> str:
        for n in range(MANY):
            await bob.say(str(n))
        return "done"

    assert (await alice.call("bob", "chatty")).text == "done"
    assert len(alice._entered().inbox._messages) <= 2 * SMALL
    await bob.say("the end")
    check_whole(await read_to(alice, "the end"))


async def test_one_who_serves_tools_goes_on_serving_and_reads_everything_later(hub, alice, bob):
    offer_double(bob)
    for n in range(MANY):
        assert (await alice.call("bob", "double", {"n": n})).text == str(2 * n)
    await alice.say("the end")
    joined = hub.kinds().count("system.presence.join")
    check_whole(await read_to(bob, "the end"))
    # Everything was fetched again on other connections, and nobody saw it leave.
    assert len(hub.joins) > 2
    assert hub.kinds().count("system.presence.join") == joined


async def test_what_did_not_fit_and_is_no_longer_kept_is_told_as_a_gap(hub, alice, bob):
    offer_double(bob)
    for n in range(MANY):
        await alice.call("bob", "double", {"n": n})
    last = (await alice.say("the end")).seq
    await bob.say("I know of it")
    hub.room.trim(last)
    read = await read_to(bob, "the end")
    (gap,) = (m for m in read if isinstance(m, Gap))
    before = read[: read.index(gap)]
    assert gap.after == before[-1].seq
    assert gap.seq == last - 1
    # What the client itself heard was not lost: it goes on answering.
    assert (await alice.call("bob", "double", {"n": 1})).text == "2"


async def test_a_buffer_is_full_by_bytes_as_well(alice, bob, connections, monkeypatch):
    monkeypatch.setattr(buffers, "MAX_INBOX", 1000)
    monkeypatch.setattr(buffers, "MAX_INBOX_BYTES", 10_000)
    for n in range(20):
        await alice.say("x" * 1000 + str(n))
    await eventually(lambda: connections[1]._paused)
    await alice.say("the end")
    check_whole(await read_to(bob, "the end"))


async def test_several_readers_share_the_messages(alice, bob):
    read: list[int] = []

    async def reader() -> None:
        async for message in bob:
            read.append(message.seq)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(reader()) for _ in range(3)]
        for n in range(MANY):
            last = (await alice.say(str(n))).seq
        await eventually(lambda: last in read)
        for one in readers:
            one.cancel()
    assert sorted(read) == list(range(2, last + 1))
