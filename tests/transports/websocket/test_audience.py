"""Frames for many, and frames for one, in the order they were sent."""

from __future__ import annotations

from folkmoot.transports.websocket import Audience, text_frame
from tests.transports.websocket.support import client


async def test_a_frame_for_one_keeps_its_place_among_those_for_all(hub):
    async with client(hub) as ann, client(hub) as bob:
        await hub.party.number(2)
        link, audience = hub.party.guests[0].link, hub.party.audience
        for whom, said in zip(
            (audience, link, audience, link, link, audience), b"123456", strict=True
        ):
            whom.send(text_frame(bytes([said])))
        assert b"".join([await ann.text() for _ in range(6)]) == b"123456"
        assert b"".join([await bob.text() for _ in range(3)]) == b"136"


async def test_who_joins_within_a_tick_hears_what_follows_and_who_leaves_what_came_before(hub):
    async with client(hub) as ann, client(hub) as bob:
        await hub.party.number(2)
        first, second = (guest.link for guest in hub.party.guests)
        audience = Audience()
        audience.add(first)
        audience.send(text_frame(b"1"))
        second.send(text_frame(b"welcome"))
        audience.add(second)
        audience.send(text_frame(b"2"))
        audience.remove(first)
        audience.send(text_frame(b"3"))
        assert first not in audience
        assert len(audience) == 1
        assert [await bob.text() for _ in range(3)] == [b"welcome", b"2", b"3"]
        first.send(text_frame(b"bye"))
        assert [await ann.text() for _ in range(3)] == [b"1", b"2", b"bye"]
        assert len(hub.party.audience) == 0


async def test_the_frames_of_a_tick_reach_a_link_in_one_write(hub):
    async with client(hub) as ann:
        await hub.party.number(1)
        link, audience = hub.party.guests[0].link, hub.party.audience
        for number in range(1000):
            audience.send(text_frame(b"%d" % number))
        assert link.unsent == 0
        link.send(text_frame(b"own"))
        # The socket takes all of it at once, so it comes in one piece.
        found = len(await ann.reader.read(1 << 20))
    assert found == sum(2 + len(str(number)) for number in range(1000)) + len("..own")


async def test_a_closed_link_leaves_its_audience_by_itself_and_joins_none(hub):
    async with client(hub) as ann:
        link = (await hub.guest()).link
        hub.party.audience.send(text_frame(b"before"))
        link.close(4403)
        assert len(hub.party.audience) == 0
        hub.party.audience.add(link)
        assert len(hub.party.audience) == 0
        assert await ann.text() == b"before"
        assert await ann.closed() == 4403
