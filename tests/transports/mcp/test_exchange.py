from __future__ import annotations

import asyncio
from typing import Any

import pytest

from folkmoot.accounts import Account
from folkmoot.tools.model import Caller
from folkmoot.transports.mcp.deliveries import Deliveries
from folkmoot.transports.mcp.exchange import Exchange
from tests.harness import run

START = {"type": "http.response.start", "status": 200, "headers": []}
ALICE = Account("id", "alice", "alice", "", "public", "", "person", "key", None, 0, 0)


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def answer(*parts: dict[str, Any], gone: bool, after: int = 0) -> list[str]:
    """Answer with these parts, and tell what happened in which order."""
    happened: list[str] = []

    async def receive() -> Any:
        if not gone:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        happened.append(message.get("body", b"start").decode())

    async def delivered() -> None:
        happened.append("delivered")

    deliveries = Deliveries()
    async with deliveries.running():
        exchange = Exchange(caller=Caller(account=ALICE), scope={})
        sending = exchange.answering(receive, send, deliveries)
        for number, each in enumerate((START, *parts)):
            if number == after:
                exchange.pending.append(delivered)
            await sending(each)
            await deliveries.settled(ALICE.id)
    return happened


@pytest.mark.requirement("tool.inbox.vanished-client")
def test_what_follows_a_delivery_waits_for_the_answer_itself() -> None:
    whole = run(answer(part(b"{}"), gone=False))
    assert whole == ["start", "{}", "delivered"]
    stream = (part(b": ping\r\n\r\n", more=True), part(b"data: {}\r\n\r\n", more=True), part(b""))
    happened = run(answer(*stream, gone=False))
    assert happened == ["start", ": ping\r\n\r\n", "data: {}\r\n\r\n", "delivered", ""]


@pytest.mark.requirement("tool.inbox.vanished-client")
def test_nothing_follows_an_answer_to_a_client_that_has_left() -> None:
    assert run(answer(part(b"{}"), gone=True)) == ["start", "{}"]


def test_a_delivery_outlives_the_request_it_belongs_to_and_its_own_failure() -> None:
    async def main() -> list[str]:
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
        return happened

    assert run(main()) == ["request over", "marked", "next request"]
