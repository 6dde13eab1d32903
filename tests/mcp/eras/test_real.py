"""A client of one era uses a server of the other: both are the SDK's own."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from folkmoot.core.session import ProtocolVersion
from folkmoot.mcp.eras import EraBridge
from folkmoot.mcp.wire import HANDSHAKE_VERSION
from tests.mcp.eras.everything import NAME, RESOURCE, Everything
from tests.mcp.eras.real import between, serve_handshake, serve_stateless

pytestmark = pytest.mark.requirement("mcp.eras-bridged")

PAIRS = {
    "handshake client": ("legacy", serve_stateless),
    "stateless client": ("2026-07-28", serve_handshake),
    "client of both": ("auto", serve_handshake),
}
each_pair = pytest.mark.parametrize("pair", PAIRS)
one_of_each = pytest.mark.parametrize("pair", ["handshake client", "stateless client"])


class Person:
    """Someone who answers what a server asks, and keeps what it hears."""

    def __init__(self) -> None:
        self.logged: list[str] = []
        self.heard: list[str] = []
        self.told = anyio.Event()

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        content: Any = {"name": "Ada"} if params.mode == "form" else None
        return types.ElicitResult(action="accept", content=content)

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        said = params.messages[0].content.text
        content = types.TextContent(type="text", text=said.upper())
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada")])  # type: ignore[arg-type]

    async def log(self, params: Any) -> None:
        self.logged.append(params.level)

    async def hear(self, message: Any) -> None:
        if not isinstance(message, Exception):
            self.heard.append(message.method)
            if {"notifications/resources/updated", "notifications/tools/list_changed"} <= set(
                self.heard
            ):
                self.told.set()


@asynccontextmanager
async def meeting(
    pair: str, person: Person | None = None, *, one_client: bool = True, **more: Any
) -> AsyncIterator[tuple[Client, Everything]]:
    """A client of one era, and the server of the other that it uses."""
    mode, serve = PAIRS[pair]
    everything = Everything()
    who = person or Person()
    bridge = EraBridge(one_client=one_client)
    callbacks: dict[str, Any] = {
        "elicitation_callback": who.elicit,
        "sampling_callback": who.sample,
        "list_roots_callback": who.roots,
        "logging_callback": who.log,
        "message_handler": who.hear,
    }
    way = between(everything.server, serve, bridge)
    async with Client(way, mode=mode, **(callbacks | more)) as client:
        yield client, everything
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
        assert "echo" in [tool.name for tool in listed.tools]
        assert text(await client.call_tool("echo", {"text": "hällo"})) == "hällo"
        read = await client.read_resource(RESOURCE)
        assert isinstance(read.contents[0], types.TextResourceContents)
        assert read.contents[0].text == "sunny"
        assert (await client.list_resources()).resources[0].uri == RESOURCE
        assert (await client.list_prompts()).prompts[0].name == "greet"
        prompt = await client.get_prompt("greet", {"who": "Bob"})
        assert prompt.messages[0].content.text == "Greet Bob"  # type: ignore[union-attr]
        ref = types.PromptReference(type="ref/prompt", name="greet")
        completed = await client.complete(ref, {"name": "who", "value": "A"})
        assert completed.completion.values == ["Ada"]


@pytest.mark.parametrize("pair", ["handshake client", "client of both"])
async def test_what_a_server_says_of_itself_crosses_the_eras(pair):
    async with meeting(pair) as (client, _):
        assert (client.server_info.name, client.server_info.version) == (NAME, "7")
        assert client.instructions == "Ask."
        capabilities = client.server_capabilities
        assert capabilities.resources.subscribe
        assert capabilities.tools.list_changed


ANSWERS: dict[str, dict[str, Any]] = {
    "elicit": {"action": "accept", "content": {"name": "Ada"}},
    "visit": {"action": "accept"},
    "sample": {"role": "assistant", "content": {"type": "text", "text": "HI"}, "model": "m"},
    "roots": {"roots": [{"uri": "file:///home/ada"}]},
}


@one_of_each
@pytest.mark.parametrize("one_client", [True, False])
async def test_what_a_server_asks_during_calls_is_answered_by_the_client(pair, one_client):
    async with meeting(pair, one_client=one_client) as (client, _):

        async def answered(tool: str) -> None:
            given = json.loads(text(await client.call_tool(tool)))
            assert given.items() >= ANSWERS[tool].items()

        for tool in ANSWERS:
            await answered(tool)
        if one_client:
            # At the same time each still gets its own answer.
            await asyncio.gather(*map(answered, ANSWERS))


@one_of_each
async def test_progress_is_told_while_a_call_runs_and_an_error_arrives_as_it_is(pair):
    told: list[tuple[float, float | None, str | None]] = []
    seen = anyio.Event()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        seen.set()

    async with meeting(pair) as (client, _):
        assert text(await client.call_tool("steps", progress_callback=tell)) == "done"
        await seen.wait()
        assert told == [(1, 2, "half")]
        with pytest.raises(MCPError) as failed:
            await client.call_tool("fail")
        error = failed.value.error
        assert (error.code, error.message, error.data) == (-32050, "No.", {"why": "so"})


@one_of_each
async def test_a_cancelled_call_is_cancelled_at_the_server(pair):
    async with meeting(pair) as (client, everything):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "stay")
            await everything.entered.wait()
            tasks.cancel_scope.cancel()
        await everything.cancelled.wait()
        assert text(await client.call_tool("echo", {"text": "on"})) == "on"


async def test_a_handshake_client_hears_of_changes_it_subscribed_to():
    person = Person()
    async with meeting("handshake client", person) as (client, _):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await client.session.subscribe_resource(RESOURCE)
            await client.call_tool("touch")
            await person.told.wait()
            await client.session.unsubscribe_resource(RESOURCE)
        person.heard.clear()
        await client.call_tool("touch")
        await client.call_tool("echo", {"text": ""})
        assert "notifications/resources/updated" not in person.heard


async def test_a_stateless_client_hears_on_its_listen_what_a_handshake_server_tells():
    async with meeting("stateless client") as (client, everything):
        wanted: Any = {"tools_list_changed": True, "resource_subscriptions": [RESOURCE]}
        async with client.listen(**wanted) as heard:
            assert everything.subscribed == [RESOURCE]
            assert heard.honored.resource_subscriptions == [RESOURCE]
            await client.call_tool("touch")
            told = {type(await anext(heard)).__name__, type(await anext(heard)).__name__}
            assert told == {"ResourceUpdated", "ToolsListChanged"}
        await client.call_tool("echo", {"text": ""})
        assert everything.subscribed == []


async def test_a_handshake_client_sets_the_level_of_what_a_stateless_server_logs():
    person = Person()
    async with meeting("handshake client", person) as (client, _):
        for level in ("debug", "error", "info"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await client.session.set_logging_level(level)
            await client.call_tool("log")
        await client.call_tool("echo", {"text": ""})
    assert person.logged == ["debug", "warning", "warning"]


async def test_a_stateless_client_hears_the_log_messages_that_its_requests_want():
    person = Person()
    async with meeting("stateless client", person, log_level="info") as (client, everything):
        await client.call_tool("log")
        await client.call_tool("echo", {"text": ""})
        assert person.logged == ["warning"]
        assert everything.levels == ["info"]


@pytest.mark.requirement("proxy.negotiates-as-directly")
@pytest.mark.parametrize(
    ("serve", "version"), [(serve_handshake, "2025-11-25"), (serve_stateless, "2026-07-28")]
)
async def test_a_client_of_both_eras_finds_the_one_that_the_server_speaks(serve, version):
    everything, bridge = Everything(), EraBridge(one_client=True, discoverable=False)
    async with Client(between(everything.server, serve, bridge), mode="auto") as client:
        assert client.protocol_version == version
        assert text(await client.call_tool("echo", {"text": "a"})) == "a"
        assert bridge.transparent


async def test_a_stateless_client_is_bridged_though_the_server_cannot_be_discovered():
    everything, bridge = Everything(), EraBridge(one_client=True, discoverable=False)
    way = between(everything.server, serve_handshake, bridge)
    async with Client(way, mode="2026-07-28") as client:
        assert text(await client.call_tool("echo", {"text": "a"})) == "a"
        assert not bridge.transparent


@pytest.mark.parametrize(
    ("mode", "serve"), [("legacy", serve_handshake), ("2026-07-28", serve_stateless)]
)
async def test_two_of_one_era_need_no_bridge(mode, serve):
    everything, bridge = Everything(), EraBridge()
    async with Client(between(everything.server, serve, bridge), mode=mode) as client:
        assert text(await client.call_tool("echo", {"text": "a"})) == "a"
        assert bridge.transparent
        spoken = HANDSHAKE_VERSION if mode == "legacy" else mode
        assert bridge.server_version == ProtocolVersion(spoken)
