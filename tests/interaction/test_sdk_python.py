"""The official Python SDK exchanges mail with a hub that runs as people run it: as a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.process import Process

INBOX = "mmp://mailboxes/inbox"

MODES = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28", "auto": "2026-07-28"}
"""The modes of the client, and the version in which each must end up."""


class Watch:
    """What a client hears between its answers."""

    def __init__(self) -> None:
        self.streaming = asyncio.Event()
        self.told: asyncio.Queue[str] = asyncio.Queue()

    async def response(self, response: httpx2.Response) -> None:
        """See the stream of the handshake era open: what is told before is lost."""
        if response.request.method == "GET" and response.is_success:
            self.streaming.set()

    async def message(self, message: Any) -> None:
        """Keep the notices."""
        if getattr(message, "method", "") == "notifications/resources/updated":
            self.told.put_nowait(str(message.params.uri))


@asynccontextmanager
async def client(url: str, mode: str, watch: Watch) -> AsyncIterator[Client]:
    # Without certificates, which take longer to load than the test to run.
    async with httpx2.AsyncClient(
        verify=False, timeout=60, event_hooks={"response": [watch.response]}
    ) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, message_handler=watch.message) as made:
            yield made


@asynccontextmanager
async def subscribed(made: Client, watch: Watch) -> AsyncIterator[asyncio.Queue[str]]:
    """Be told of new mail, in the way of the era."""
    if made.protocol_version == MODES["legacy"]:
        await watch.streaming.wait()
        await made.subscribe_resource(INBOX)
        yield watch.told
        return
    async with made.listen(resource_subscriptions=[INBOX]) as events, asyncio.TaskGroup() as tasks:

        async def pass_on() -> None:
            async for event in events:
                watch.told.put_nowait(str(getattr(event, "uri", "")))

        passing = tasks.create_task(pass_on())
        yield watch.told
        passing.cancel()


async def call(made: Client, name: str, **arguments: Any) -> Any:
    result = await made.call_tool(name, arguments)
    (block,) = result.content
    return {"is_error": result.is_error, **json.loads(getattr(block, "text", ""))}


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.requirement("mcp.both-eras", "notice.both-eras")
@pytest.mark.parametrize("mode", MODES)
async def test_the_python_sdk_registers_sends_reads_and_is_notified(mode, tmp_path):
    with Process(tmp_path) as hub:
        url = f"http://127.0.0.1:{hub.port}/mcp"
        async with client(url, mode, Watch()) as stranger:
            assert stranger.protocol_version == MODES[mode]
            refused = await call(stranger, "msg_inbox")
            assert refused == {"is_error": True, "error": "Authentication required."}
            tokens = [(await call(stranger, "msg_register", handle="alice"))["token"]]
        async with client(url, mode, Watch()) as stranger:
            tokens += [(await call(stranger, "msg_register", handle="bob"))["token"]]
        alice_url, bob_url = (f"{url}?token={token}" for token in tokens)
        watch = Watch()
        async with client(alice_url, mode, Watch()) as alice, client(bob_url, mode, watch) as bob:
            tools = {tool.name for tool in (await bob.list_tools()).tools}
            assert "msg_send" in tools
            assert all(name.startswith(("msg_", "room_", "folkmoot_")) for name in tools)
            async with subscribed(bob, watch) as told:
                sent = await call(alice, "msg_send", to="bob", body="Grüße from Python ✓")
                assert await told.get() == INBOX
            (digest,) = (await bob.read_resource(INBOX)).contents
            assert json.loads(getattr(digest, "text", ""))["recent_senders"] == ["alice"]
            (message,) = (await call(bob, "msg_inbox"))["messages"]
            assert (message["from_handle"], message["body"]) == ("alice", "Grüße from Python ✓")
            await call(bob, "msg_reply", message_id=sent["message_id"], body="Received")
            (answer,) = (await call(alice, "msg_inbox"))["messages"]
            assert (answer["from_handle"], answer["body"]) == ("bob", "Received")
            unknown = await call(alice, "msg_send", to="nobody", body="Hello?")
            assert unknown == {"is_error": True, "error": "User not found."}
        hub.stop()
