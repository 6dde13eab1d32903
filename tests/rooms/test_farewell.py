"""What becomes of an account's rooms when it is deleted."""

from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import Visitor
from folkmoot.rooms.access import leave_all_rooms
from folkmoot.rooms.limits import IDLE_SECONDS, SWEEP_SECONDS
from tests.rooms.gathering import Gathering, chat
from tests.store.support import rows


async def names(here: Gathering, visitor: Visitor) -> list[str]:
    return [room.name for room in (await here.rooms.list(visitor)).rooms]


async def delete(here: Gathering, visitor: Visitor) -> None:
    assert visitor.account is not None
    await here.accounts.delete(visitor.account, also=leave_all_rooms)


async def sweep(here: Gathering) -> None:
    """Let the upkeep look at everything, twice, since a room must be let go first."""
    for _ in range(2):
        here.clock.seconds += max(SWEEP_SECONDS, IDLE_SECONDS) + 1
        await here.rooms._upkeep.round()


async def test_whoever_is_deleted_is_put_out_and_holds_nothing(hub):
    _, ear = await hub.meet(hub.bob, grants={"bob": ["mcp.request.*"]})
    await hub.rooms.post(hub.bob, "square", chat("remember me"))
    listening, _ = await hub.join(hub.ann)
    await delete(hub, hub.bob)
    assert await ear.until_closed() is CloseCode.NOT_AUTHENTICATED
    left = await listening.until_kind("system.presence.leave")
    assert left["payload"]["participant"]["id"] == "bob"
    assert (await hub.rooms.get(hub.ann, "square")).grants == {}
    page = await hub.rooms.messages(hub.ann, "square")
    assert any(b"remember me" in bytes(raw) for raw in page.messages)


@pytest.mark.parametrize("access", ["private", "invite"])
async def test_a_room_that_nobody_may_come_into_any_more_is_removed(hub, access):
    await hub.create(hub.ann, "lonely", access=access)
    await hub.create(hub.ann, "shared", access=access, grants={"bob": []})
    await hub.create(hub.ann, "hosting", access=access)
    await hub.create(hub.ann, "open", access="open")
    await hub.rooms.post(hub.ann, "lonely", chat("to myself"))
    await hub.rooms.invite(hub.ann, "hosting", guest="zoe")
    guest, _ = await hub.guest("yan", "hosting")
    await sweep(hub)
    assert len(await names(hub, hub.ann)) == 4
    await delete(hub, hub.ann)
    await sweep(hub)
    stored = await hub.store.read(rows("SELECT name FROM rooms ORDER BY name"))
    assert stored == [("hosting",), ("open",), ("shared",)]
    with pytest.raises(e.RoomNotFound):
        await hub.rooms.messages(hub.bob, "lonely")
    assert "shared" in await names(hub, hub.bob)
    await hub.rooms.post(guest, "hosting", chat("still here"))
    # The name is free for others.
    await hub.create(hub.bob, "lonely")
