"""The rest of the hub uses a room only by its port, so that a room may live elsewhere."""

from __future__ import annotations

import json
from typing import Any

from folkmoot.rooms.model import RoomRecord
from folkmoot.rooms.ports import RoomPort
from tests.rooms.gathering import Ear, chat, envelope

PORT = frozenset(name for name in vars(RoomPort) if not name.startswith("_"))


class Elsewhere:
    """A room of which nothing but its port can be reached."""

    def __init__(self, room: RoomPort) -> None:
        self._room = room

    def __getattr__(self, name: str) -> Any:
        assert name in PORT, f"{name} is not part of the port"
        return getattr(self._room, name)


async def test_all_that_people_do_in_a_room_goes_by_its_port(hub):
    rooms = hub.rooms
    load = rooms._live.load

    async def elsewhere(record: RoomRecord) -> Any:
        return Elsewhere(await load(record))

    rooms._live.open = elsewhere  # type: ignore[method-assign]
    ann, bob = hub.ann, hub.bob
    await hub.create(ann, access="open")
    ear = Ear()
    room, role = await rooms.enter(bob, "square")
    room.join(ear, bob, role)
    rooms.receiver(room, ear, bob)(chat("one"), chat("two", id="m2"))
    await ear.until_kind("chat.message")
    said = json.loads(await rooms.post(ann, "square", chat("three")))
    page = await rooms.messages(ann, "square", after=said["seq"] - 1, wait=1)
    assert [json.loads(bytes(one))["id"] for one in page.messages] == [said["id"]]
    proposed = {"method": "tools/call", "params": {"name": "read", "arguments": {}}}
    await rooms.post(bob, "square", envelope("mcp.proposal.tools/call", proposed, id="p1"))
    assert [one.id for one in await rooms.proposals(ann, "square")] == ["p1"]
    assert [one.id for one in (await rooms.waiting(ann, "square")).proposals] == ["p1"]
    assert (await rooms.asks.open_for(ann)).proposals[0].id == "p1"
    await rooms.visit(ann, "square")
    here = [one["id"] for one in await rooms.participants(bob, "square")]
    assert sorted(here) == ["ann", "bob"]
    assert (await rooms.get(ann, "square")).participants == 2
    assert (await rooms.rights(ann, "square")).grants == []
    assert await rooms.open_request(ann, "square", "q1") is None
    await rooms.depart(ann, "square")
    room.left(ear)
    await room.flushed()
    assert (await rooms.get(ann, "square")).participants == 0
