"""A node that is drained: others get its rooms, and whoever is connected elsewhere stays so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot import app
from folkmoot.app import Hub
from folkmoot.cli.operator import running
from folkmoot.cli.serve import hub_report, readiness
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.ports import ListedNode
from folkmoot.datafolder import Paths
from folkmoot.rooms.live import LiveRoom
from tests import nats, postgres
from tests.faults.backends import operator
from tests.harness import ask
from tests.interaction.room_client import ROOM, chat, joined, turned_away
from tests.mcp_harness import until
from tests.nodes import port
from tests.test_two_hubs import Pair, several_nodes

pytestmark = [*postgres.NEEDED, *nats.NEEDED]


@pytest.fixture
async def hubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    monkeypatch.setattr(app, "DRAIN_SECONDS", 0.0)
    async with several_nodes(tmp_path) as found:
        yield Pair(*found)


async def listed(hub: Hub) -> dict[str, ListedNode]:
    return {each.process: each for each in await hub.store.room_owners.list_nodes()}


async def is_drained(hub: Hub, asked: Hub) -> bool:
    return (await listed(asked))[hub.bus.node].drained


async def test_a_node_that_is_drained_hands_its_rooms_over_and_is_not_ready(hubs, monkeypatch):
    first, second = hubs
    ann, bob = await hubs.people("ann", "bob")
    await hubs.call(first, ann.token, "room/create", name=ROOM)
    async with (
        joined(port(first), ann.token) as here,
        joined(port(second), bob.token) as there,
    ):
        await here.said(chat("from the owner"))
        await there.said(chat("from elsewhere"))
        assert (await listed(second))[first.bus.node].rooms == 1
        with pytest.raises(e.CommandInvalid, match="No running node is called nobody"):
            await operator(hubs.first, "folkmoot/drain", node="nobody")
        await operator(hubs.first, "folkmoot/drain", node=first.bus.node)
        await until(lambda: is_drained(first, second))
        assert await here.closed() == CloseCode.RESTARTING
        await there.said(chat("afterwards"))
        nodes = await listed(second)
        assert [nodes[each.bus.node].rooms for each in hubs] == [0, 1]
        assert (await ask(port(second), "/health/ready")).status == 200

        async def told() -> tuple[int, list[Any]]:
            report = await asyncio.to_thread(hub_report, running(Paths(first.settings.data_folder)))
            return (await ask(port(first), "/health/ready")).status, readiness(report)

        await until(told, (503, [("Ready", "no: draining, or drained")]))
        assert await turned_away(port(first), ann.token) == CloseCode.RESTARTING
        async with joined(port(second), ann.token) as again:
            await again.said(chat("here again"))
    # Everything else goes on at the node until it is stopped.
    assert (await hubs.call(first, ann.token, "msg/whoami")).status == 200
    with pytest.raises(e.CommandInvalid, match="No other node"):
        await operator(hubs.first, "folkmoot/drain", node=second.bus.node)


async def test_a_node_can_be_drained_while_everybody_talks_there(hubs, monkeypatch):
    first, second = hubs
    ann = await first.accounts.register("ann")
    await hubs.call(first, ann.token, "room/create", name=ROOM)
    places: list[int] = []
    async with joined(port(first), ann.token), joined(port(second), ann.token) as there:

        async def talk() -> None:
            while len(places) < 50 or not await is_drained(first, second):
                said = await there.said(chat(f"word {len(places)}"))
                places.append(said["seq"])

        talking = asyncio.create_task(talk())
        await operator(hubs.first, "folkmoot/drain")
        await talking
        # The connection stayed, and everything was said once and in its order.
        assert places == sorted(set(places))


async def test_two_nodes_that_are_drained_at_once_are_not_both(hubs):
    drained = await asyncio.gather(*(hub.store.room_owners.drain(hub.bus.node) for hub in hubs))
    assert sorted(drained) == [False, True]


async def test_rooms_that_wait_to_be_given_away_go_on(hubs, monkeypatch):
    monkeypatch.setattr("folkmoot.rooms.nodes.DRAINED_AT_ONCE", 1)
    first, second = hubs
    ann = await first.accounts.register("ann")
    for name in ("one", "two", "three"):
        await hubs.call(first, ann.token, "room/create", name=name)
        await hubs.call(first, ann.token, "room/say", room=name, text="hello")
    nodes = first.rooms._nodes
    stopping: list[int] = []
    give_away = nodes._hand_over

    async def note(live: LiveRoom) -> None:
        stopping.append(sum(each.is_stopping for each in nodes.live))
        await give_away(live)

    monkeypatch.setattr(nodes, "_hand_over", note)
    await operator(hubs.first, "folkmoot/drain", node=first.bus.node)
    await until(lambda: is_drained(first, second))
    assert stopping == [1, 1, 1]
