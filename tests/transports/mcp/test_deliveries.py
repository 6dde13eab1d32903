from __future__ import annotations

import asyncio

from folkmoot.transports.mcp.service import Deliveries


async def test_a_delivery_outlives_the_request_it_belongs_to_and_its_own_failure():
    happened: list[str] = []
    written = asyncio.Event()

    async def slow() -> None:
        await written.wait()
        happened.append("marked")

    async def failing() -> None:
        raise ValueError("not to be seen")

    deliveries = Deliveries()
    async with deliveries.running():
        deliveries.start("alice", slow)
        deliveries.start("alice", failing)
        await deliveries.settled("bob")
        happened.append("request over")
        written.set()
        await deliveries.settled("alice")
        happened.append("next request")
    assert happened == ["request over", "marked", "next request"]
