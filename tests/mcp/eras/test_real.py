"""A client of one era uses a server of the other: both are the SDK's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError

from folkmoot.core.session import ProtocolVersion
from folkmoot.mcp.eras import EraBridge
from tests.mcp.eras.real import between, serve_handshake, serve_stateless
from tests.peers.clients import Ears
from tests.peers.sdk_server import STATELESS, Notebook, notebook

pytestmark = [
    pytest.mark.requirement("mcp.eras-bridged"),
    # The SDK tells its users that subscriptions will go; handshake clients have them.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

NOTE = "note://today"

PAIRS = {
    "handshake client": ("legacy", serve_stateless),
    "stateless client": ("2026-07-28", serve_handshake),
    "client of both": ("auto", serve_handshake),
}
each_pair = pytest.mark.parametrize("pair", PAIRS)
one_of_each = pytest.mark.parametrize("pair", ["handshake client", "stateless client"])


def notes(book: Notebook) -> Server[Any]:
    """A server that also notes who subscribes, and tells of changes."""
    server = notebook(book)

    @server.tool()
    async def tell(ctx: Context[Any, Any]) -> str:
        """Say in the way of the era that a note and the tools have changed."""
        if ctx.protocol_version == STATELESS:
            await ctx.notify_resource_updated(NOTE)
            await ctx.notify_tools_changed()
        else:
            await ctx.session.send_resource_updated(NOTE)
            await ctx.session.send_tool_list_changed()
        return "told"

    @server.tool()
    async def fail() -> None:
        raise MCPError(code=-32050, message="No.", data={"why": "so"})

    async def noted(_: Any, params: Any) -> types.EmptyResult:
        book.happened.append(params.uri)
        return types.EmptyResult()

    async def forgotten(_: Any, params: Any) -> types.EmptyResult:
        book.happened.remove(params.uri)
        return types.EmptyResult()

    low = server._lowlevel_server
    low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, noted)
    low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, forgotten)
    return low


@asynccontextmanager
async def meeting(
    pair: str, ears: Ears | None = None, *, one_client: bool = True
) -> AsyncIterator[tuple[Client, Notebook]]:
    """A client of one era, and the server of the other that it uses."""
    mode, serve = PAIRS[pair]
    book, bridge = Notebook(), EraBridge(one_client=one_client)
    way = between(notes(book), serve, bridge)
    async with Client(way, mode=mode, **(ears or Ears()).callbacks()) as client:
        yield client, book
        assert not bridge.transparent


def text(result: types.CallToolResult) -> str:
    """What a tool answered."""
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


@each_pair
async def test_tools_prompts_resources_and_completion_cross_the_eras(pair):
    async with meeting(pair) as (client, _):
        listed = await client.list_tools()
        assert "add" in [tool.name for tool in listed.tools]
        assert text(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
        read = await client.read_resource(NOTE)
        assert [each.text for each in read.contents] == ["Rain."]
        assert (await client.list_resources()).resources[0].uri == NOTE
        assert (await client.list_prompts()).prompts[0].name == "summarise"
        prompt = await client.get_prompt("summarise", {"topic": "tea"})
        assert prompt.messages[0].content.text == "Summarise tea."  # type: ignore[union-attr]
        ref = types.PromptReference(type="ref/prompt", name="summarise")
        completed = await client.complete(ref, {"name": "topic", "value": "t"})
        assert completed.completion.values == ["t…", "summarise"]


@one_of_each
@pytest.mark.parametrize("one_client", [True, False])
async def test_what_a_server_asks_during_calls_is_answered_by_the_client(pair, one_client):
    async with meeting(pair, one_client=one_client) as (client, _):

        async def answered(tool: str, words: str, **arguments: str) -> None:
            assert text(await client.call_tool(tool, arguments)).startswith(words)

        asked = [
            lambda: answered("greet", "Hello, Ada: The model says"),
            lambda: answered("visit", "accept", url="https://there.test/"),
        ]
        for ask in asked:
            await ask()
        if one_client:
            # At the same time each still gets its own answer.
            await asyncio.gather(*(ask() for ask in asked))


@one_of_each
async def test_progress_is_told_while_a_call_runs_and_an_error_arrives_as_it_is(pair):
    told: asyncio.Queue[tuple[float, float | None, str | None]] = asyncio.Queue()

    async def tell(*progress: Any) -> None:
        told.put_nowait(progress)

    async with meeting(pair) as (client, _):
        worked = await client.call_tool("work", {"steps": 1}, progress_callback=tell)
        assert (text(worked), await told.get()) == ("done", (1, 1, "step 1"))
        with pytest.raises(MCPError) as failed:
            await client.call_tool("fail")
        error = failed.value.error
        assert (error.code, error.message, error.data) == (-32050, "No.", {"why": "so"})


@one_of_each
async def test_a_cancelled_call_is_cancelled_at_the_server(pair):
    async with meeting(pair) as (client, book):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "hang")
            await book.hanging.wait()
            tasks.cancel_scope.cancel()
        await book.over.wait()
        await client.call_tool("add", {"a": 1, "b": 2})


async def test_a_handshake_client_hears_of_changes_it_subscribed_to():
    ears = Ears()
    async with meeting("handshake client", ears) as (client, _):
        await client.session.subscribe_resource(NOTE)
        await client.call_tool("tell")
        for changed in ("resources/updated", "tools/list_changed"):
            await ears.until(f"notifications/{changed}")
        await client.session.unsubscribe_resource(NOTE)
        ears.notices.clear()
        await client.call_tool("tell")
        await client.call_tool("add", {"a": 1, "b": 2})
        assert "resources/updated" not in str(ears.notices)


async def test_a_stateless_client_hears_on_its_listen_what_a_handshake_server_tells():
    async with meeting("stateless client") as (client, book):
        wanted: Any = {"tools_list_changed": True, "resource_subscriptions": [NOTE]}
        async with client.listen(**wanted) as heard:
            assert book.happened == [NOTE]
            assert heard.honored.resource_subscriptions == [NOTE]
            await client.call_tool("tell")
            told = {type(await anext(heard)).__name__, type(await anext(heard)).__name__}
            assert told == {"ResourceUpdated", "ToolsListChanged"}
        await client.call_tool("add", {"a": 1, "b": 2})
        assert book.happened == []


@pytest.mark.requirement("proxy.negotiates-as-directly")
@pytest.mark.parametrize(
    ("mode", "serve", "version", "transparent"),
    [
        ("auto", serve_handshake, "2025-11-25", True),
        ("auto", serve_stateless, "2026-07-28", True),
        # It is bridged though its server cannot be discovered.
        ("2026-07-28", serve_handshake, "2026-07-28", False),
        ("legacy", serve_handshake, "2025-11-25", True),
        ("2026-07-28", serve_stateless, "2026-07-28", True),
    ],
)
async def test_two_that_can_speak_one_era_need_no_bridge(mode, serve, version, transparent):
    bridge = EraBridge(one_client=True, discoverable=False)
    async with Client(between(notes(Notebook()), serve, bridge), mode=mode) as client:
        assert client.protocol_version == version
        assert text(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
        assert bridge.transparent is transparent
        spoken = "2025-11-25" if serve is serve_handshake else "2026-07-28"
        assert bridge.server_version == ProtocolVersion(spoken)
