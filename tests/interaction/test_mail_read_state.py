"""What was read is what arrived: marking, waiting, and clients that vanish."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from tests.mcp_harness import (
    INITIALIZE,
    Meeting,
    Person,
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
    await until(lambda: someone_waits(hub))
    await alice.call("msg/send", to="bob", body="Now")
    (message,) = (await waiting)["messages"]
    assert message["body"] == "Now"
    await until(lambda: has_unread(bob, 0))
    assert not (await bob.call("msg/inbox", wait=1))["messages"]


async def has_unread(person: Person, count: int) -> bool:
    """What an answer brought is read once it has been sent, which another node sees a bit later."""
    return (await person.call("msg/digest"))["total_unread"] == count


async def someone_waits(there: Meeting) -> bool:
    return there.hub.bus.subscriptions > 0


async def nobody_waits(there: Meeting) -> bool:
    return there.hub.bus.subscriptions == 0


@pytest.mark.requirement("tool.inbox.vanished-client")
@both_eras
async def test_a_client_that_vanishes_while_it_waits_has_read_nothing(era, hub):
    alice, bob = await hub.people("alice", "bob")
    query = f"?token={bob.token}"
    arguments = {"name": "msg_inbox", "arguments": {"wait": 50}}
    message: dict[str, Any] = rpc("tools/call", arguments, 7)
    headers: dict[str, str] = {}
    if era == "stateless":
        message, headers = modern("tools/call", **arguments)
    else:
        opened = await hub.post(INITIALIZE, query=query)
        headers = {"mcp-session-id": opened.headers["mcp-session-id"]}
    writer = await start(hub, query, headers, message)
    await until(lambda: someone_waits(hub))
    writer.transport.abort()
    # In either era the call ends with its client, long before its time is up.
    await until(lambda: nobody_waits(hub))
    await alice.call("msg/send", to="bob", body="Still unread")
    assert (await bob.call("msg/digest"))["total_unread"] == 1


async def start(
    there: Meeting, query: str, headers: dict[str, str], message: Any
) -> asyncio.StreamWriter:
    """Send a request on a connection of its own and read nothing."""
    _, writer = await asyncio.open_connection("127.0.0.1", there.port)
    body = json.dumps(message).encode()
    named = {
        "host": f"127.0.0.1:{there.port}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    writer.write(f"POST /mcp{query} HTTP/1.1\r\n{head}\r\n".encode() + body)
    await writer.drain()
    return writer


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
            await until(lambda: someone_waits(there))
            there.hub.stop()
            answered.append(await waiting)
    assert [answer["messages"] for answer in answered] == [[]]
