"""What was read is what arrived: marking, waiting, and clients that vanish."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from tests.harness import head
from tests.mcp_harness import (
    BOTH,
    INITIALIZE,
    both_eras,
    meeting,
    modern,
    rpc,
    until,
)


@pytest.mark.requirement("tool.inbox.wait")
@both_eras
async def test_waiting_ends_with_the_first_new_message(hub):
    alice, bob = await hub.people("alice", "bob")
    waiting = asyncio.create_task(bob.call("msg/inbox", wait=55))
    await until(lambda: hub.hub.bus.subscriptions)
    await alice.call("msg/send", to="bob", body="Now")
    (message,) = (await waiting)["messages"]
    assert message["body"] == "Now"

    async def unread() -> int:
        return (await bob.call("msg/digest"))["total_unread"]

    # What an answer brought is read once it was sent, which another node sees a bit later.
    await until(unread, 0)
    assert not (await bob.call("msg/inbox", wait=1))["messages"]


@pytest.mark.requirement("tool.inbox.vanished-client")
@both_eras
async def test_a_client_that_vanishes_while_it_waits_has_read_nothing(era, hub):
    alice, bob = await hub.people("alice", "bob")
    query = f"?token={bob.token}"
    arguments = {"name": "msg_inbox", "arguments": {"wait": 50}}
    message, headers = modern("tools/call", **arguments)
    if era == "handshake":
        opened = await hub.post(INITIALIZE, query=query)
        message = rpc("tools/call", arguments, 7)
        headers = {"mcp-session-id": opened.headers["mcp-session-id"]}
    body = json.dumps(message).encode()
    named = {**BOTH, **headers, "content-length": str(len(body))}
    _, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(head(f"/mcp{query}", "POST", **named) + body)
    await until(lambda: hub.hub.bus.subscriptions)
    writer.transport.abort()
    # In either era the call ends with its client, long before its time is up.
    await until(lambda: not hub.hub.bus.subscriptions)
    await alice.call("msg/send", to="bob", body="Still unread")
    assert (await bob.call("msg/digest"))["total_unread"] == 1


@both_eras
async def test_a_stopping_hub_ends_waits_and_streams(era, tmp_path):
    answered: list[Any] = []
    # The client of the handshake era may still try to open its stream again, and find nobody.
    with suppress(ExceptionGroup):
        async with meeting(tmp_path, era, http={"shutdown_seconds": 60}) as there:
            bob = await there.person("bob")
            # Of a tool that it has not seen listed the client asks for the list, after the answer.
            await bob.client.list_tools()
            waiting = asyncio.create_task(bob.call("msg_inbox", wait=55))
            await until(lambda: there.hub.bus.subscriptions)
            there.hub.stop()
            answered.append(await waiting)
    assert [answer["messages"] for answer in answered] == [[]]
