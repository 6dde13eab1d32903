"""What becomes of an account's rooms when it is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import Visitor
from folkmoot.rooms.access import leave_all_rooms
from folkmoot.rooms.limits import IDLE_SECONDS, SWEEP_SECONDS
from tests.rooms.gathering import Gathering, chat, gathering


def account_of(visitor: Visitor) -> Account:
    assert visitor.account is not None
    return visitor.account


async def names(here: Gathering, visitor: Visitor) -> list[str]:
    return [room.name for room in (await here.rooms.list(visitor)).rooms]


async def delete(here: Gathering, visitor: Visitor) -> None:
    await here.accounts.delete(account_of(visitor), also=leave_all_rooms)


async def sweep(here: Gathering) -> None:
    """Let the upkeep look at everything, twice, since a room must be let go first."""
    for _ in range(2):
        here.clock.seconds += max(SWEEP_SECONDS, IDLE_SECONDS) + 1
        await here.rooms._upkeep.round()


async def test_whoever_is_deleted_is_put_out_and_holds_nothing(tmp_path: Path) -> None:
    async with gathering(tmp_path) as here:
        ann, bob = await here.people("ann", "bob")
        await here.create(ann, grants={"bob": ["mcp.request.*"]})
        ear, _ = await here.join(bob)
        await here.rooms.post(bob, "square", chat("remember me"))
        listening, _ = await here.join(ann)
        await delete(here, bob)
        assert await ear.until_closed() is CloseCode.NOT_AUTHENTICATED
        left = await listening.until_kind("system.presence.leave")
        assert left["payload"]["participant"]["id"] == "bob"
        assert (await here.rooms.get(ann, "square")).grants == {}
        page = await here.rooms.messages(ann, "square")
        assert any(b"remember me" in bytes(raw) for raw in page.messages)


@pytest.mark.parametrize("access", ["private", "invite"])
async def test_a_room_that_nobody_may_come_into_any_more_is_removed(
    access: str, tmp_path: Path
) -> None:
    async with gathering(tmp_path) as here:
        ann, bob = await here.people("ann", "bob")
        await here.create(ann, "lonely", access=access)
        await here.create(ann, "shared", access=access, grants={"bob": []})
        await here.create(ann, "hosting", access=access)
        await here.create(ann, "open", access="open")
        await here.rooms.post(ann, "lonely", chat("to myself"))
        await here.rooms.invite(ann, "hosting", guest="zoe")
        guest, _ = await here.rooms.exchange(
            "hosting", (await here.rooms.invite(ann, "hosting", guest="yan")).token or ""
        )
        await sweep(here)
        assert len(await names(here, ann)) == 4
        await delete(here, ann)
        await sweep(here)

        async def stored(tx: object) -> object:
            return await tx.fetch(  # type: ignore[attr-defined]
                "SELECT name FROM rooms ORDER BY name"
            )

        assert await here.store.read(stored) == [("hosting",), ("open",), ("shared",)]
        with pytest.raises(e.RoomNotFound):
            await here.rooms.messages(bob, "lonely")
        assert "shared" in await names(here, bob)
        await here.rooms.post(guest, "hosting", chat("still here"))
        # The name is free for others.
        await here.create(bob, "lonely")
