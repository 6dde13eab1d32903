"""A hub that stops while a backend has not answered."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.app import Hub
from folkmoot.core.message import Response
from folkmoot.gateway.model import Inventory, UpstreamRequest
from folkmoot.settings.backends import BackendSpec, GatewaySpec
from tests.gateway.scripted import Scripted, told, tool
from tests.mcp_harness import ERAS, Meeting, settings
from tests.peers.gateway import token_of
from tests.transports.mcp.gateway_support import wired


class Hanging(Scripted):
    """Never answers."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.begun = asyncio.Event()

    async def request(self, wanted: UpstreamRequest) -> Response:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError(wanted.method)


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_outlasts_the_hub_is_answered_before_the_connection_ends(tmp_path, era):
    off = BackendSpec(name="slow", namespace="slow", command=("x",), everyone=True, enabled=False)
    chosen = settings(tmp_path, http={"shutdown_seconds": 4})
    leave, here = asyncio.Event(), asyncio.Event()
    hub = Hub(chosen, gateway=GatewaySpec(backends={"slow": off}))

    async def live() -> None:
        async with hub.running():
            here.set()
            await leave.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(live())
        await here.wait()
        backend = Hanging()
        hub.behind.gateway.attach(backend)
        await hub.behind.gateway.arrived("slow", Inventory(tools=(tool("sleep"),)))
        there = Meeting(hub, era)
        wire = await wired(there, await token_of(there, "ada"), era)
        asking = wire.ask("tools/call", {"name": "slow_sleep", "arguments": {}})
        answer = tasks.create_task(asking)
        await backend.begun.wait()
        leave.set()
        assert told((await answer)["result"])["code"] == "hub_stopping"
        await wire.leave()
