"""A lease that lapsed while no other node was there: rooms go on as if nothing had been."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.message import Response
from folkmoot.rooms import Visitor, journal
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.machine import Role
from folkmoot.rooms.ports import Asked
from tests import postgres
from tests.clocks import StillClock
from tests.harness import reached
from tests.rooms.gathering import Ear, Gathering, chat, envelope, gathered

pytestmark = postgres.NEEDED


class Echo:
    """A backend that answers with the method it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def known(self) -> tuple[str, ...]:
        return ("echo",)

    def may_bring(self, *_: Any) -> bool:
        return True

    async def answer(self, asked: Asked, _tell: Any) -> Response:
        self.asked.append(asked.request.method)
        return Response(id=asked.request.id, result={"method": asked.request.method})


class Sole(Gathering):
    """The only hub at a database."""

    backend: Any = None
    # After how many more units the lease is over.
    lapses: int = 0
    # Whether another has the rooms then.
    taken: bool = False
    # Why no unit can be run.
    failure: Exception | None = None

    def watch(self) -> None:
        """Have what the test says happen between units."""
        write = self.store.write

        async def written(unit: Any, **how: Any) -> Any:
            if self.failure is not None:
                raise self.failure
            result = await write(unit, **how)
            self.lapses -= 1
            if self.lapses == 0:
                self.lapse()
                if self.taken:
                    await self.take_rooms()
            return result

        self.store.write = written

    def lapse(self) -> None:
        """The lease is over, and nobody came meanwhile."""
        self.store._lease._lease.ended()

    async def take_rooms(self) -> None:
        """Another took all rooms, and this hub has its lease again."""
        async with self.store._pool.acquire() as connection:
            await connection.execute("UPDATE room_owners SET owner_epoch = owner_epoch + 1")
            await self.store._lease.renew(connection)

    async def room(self, **spec: Any) -> tuple[Visitor, LiveRoom, Ear]:
        [ann] = await self.people("ann")
        await self.create(ann, backends=["echo"], **spec)
        ear, live = await self.join(ann)
        return ann, live, ear


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Sole]:
    from folkmoot.store.postgres import HubNode, PostgresStore

    url = await postgres.schema_of(tmp_path)
    store = await PostgresStore.open(url, connections=3, node=HubNode("one", "1"))
    try:
        backend = Echo()
        hub = await gathered(store, StillClock(), backends=backend)
        sole = Sole(store, hub.clock, hub.accounts, hub.rooms, backend=backend)
        sole.watch()
        async with hub.rooms.running():
            yield sole
    finally:
        await store.close()


def asking(number: int) -> bytes:
    payload = {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
    return envelope("mcp.request.tools/list", payload, to=["echo"])


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
@pytest.mark.parametrize("lapses", [0, 1], ids=["before", "after-the-commit"])
async def test_a_backend_is_asked_although_the_lease_lapsed(hub, durable, lapses):
    ann, live, ear = await hub.room(durable=durable)
    hub.lapse()
    await hub.store.ready()
    hub.lapses = lapses
    await live.post(ann.principal, Role.OWNER, asking(1))
    answer = await ear.until_kind("mcp.response.tools/list")
    assert answer["payload"]["result"] == {"method": "tools/list"}
    assert ear.is_open
    assert hub.backend.asked == ["tools/list"]


async def test_no_backend_is_asked_for_a_room_that_was_taken_in_the_lapse(hub):
    ann, live, ear = await hub.room()
    hub.lapses, hub.taken = 1, True
    # It is stored, so whoever has the room now tells that it may have been done.
    await live.post(ann.principal, Role.OWNER, asking(1))
    assert await ear.until_closed() is CloseCode.RESTARTING
    assert live.is_taken_over
    await reached(lambda: not live.serving.under_way)
    assert hub.backend.asked == []


async def test_a_request_in_a_room_in_memory_that_was_taken_in_the_lapse_is_not_carried_out(hub):
    ann, live, ear = await hub.room(durable=False)
    hub.lapse()
    await hub.take_rooms()
    with pytest.raises(e.RoomTakenOver):
        await live.post(ann.principal, Role.OWNER, asking(1))
    assert await ear.until_closed() is CloseCode.RESTARTING
    assert "mcp.request.tools/list" not in ear.kinds
    assert hub.backend.asked == []


async def test_a_room_that_was_taken_while_it_was_loaded_is_not_surely_ours(hub):
    [ann] = await hub.people("ann")
    await hub.create(ann)
    owners = hub.store.room_owners
    take = owners.take

    async def take_and_lapse(room_id: int) -> Any:
        owner = await take(room_id)
        hub.lapse()
        await hub.take_rooms()
        return owner

    owners.take = take_and_lapse
    live, _ = await hub.rooms.enter(ann, "square")
    assert not live.is_ours
    assert not await live.make_sure()


async def test_a_lease_that_lapsed_by_the_database_alone_has_a_new_term(hub):
    lease, has_held = hub.store._lease, hub.store.room_owners.lease()
    async with hub.store._pool.acquire() as connection:
        assert has_held()
        await connection.execute("UPDATE nodes SET until = 1")
        await lease.renew(connection)
    assert lease.holds
    assert not has_held()


async def test_what_a_durable_room_commits_proves_that_it_is_ours(hub):
    ann, live, _ = await hub.room()
    hub.lapse()
    assert not live.is_ours
    await live.post(ann.principal, Role.OWNER, chat("after"))
    assert live.is_ours


async def test_a_room_in_memory_outlives_a_database_that_is_away(hub, monkeypatch):
    monkeypatch.setattr(journal, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(journal, "MAX_UNSTORED", 5)
    _, live, ear = await hub.room(durable=False)
    live.receive(ear, chat("before"))
    await ear.until_kind("chat.message")
    hub.lapse()
    hub.failure = e.DatabaseUnreachable("The database is away.")
    for number in range(6):
        live.receive(ear, chat(f"meanwhile {number}"))
    await asyncio.sleep(0.1)
    live.receive(ear, chat("one more"))
    assert (ear.is_open, ear.held, ear.texts) == (True, True, ["before"])
    hub.failure = None
    await reached(lambda: "one more" in ear.texts)
    assert ear.texts == ["before", *(f"meanwhile {n}" for n in range(6)), "one more"]
    assert not ear.held


async def test_a_room_in_memory_ends_when_another_hub_has_the_database(hub):
    _, live, ear = await hub.room(durable=False)
    hub.lapse()
    hub.failure = e.DatabaseInUse("Another hub has it.")
    live.receive(ear, chat("too late"))
    await ear.until_closed()
    assert live.is_ended
