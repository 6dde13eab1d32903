"""server-everything behind the hub: a client gets of it what it gets without the hub."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp_types import LOG_LEVEL_META_KEY

from tests.harness import run
from tests.mcp_harness import ERAS, Meeting
from tests.peers.clients import Ears, client_of
from tests.peers.gateway import (
    Through,
    backend,
    check_same,
    check_tools,
    fronted,
    guest,
    token_of,
)
from tests.peers.script import LOGGED, RESOURCE, UPDATED, everything_used
from tests.peers.servers import Place, Transport, everything

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.timeout(600),
    pytest.mark.long,
]

NAMESPACE = "every"
TRIES = 5
# What is the hub's own to answer, or is compared in another way.
OTHERWISE = frozenset(
    {
        *("server", "capabilities", "instructions", "ping", "tools", "prompts"),
        *("resources", "templates", "roots", "unknown tool", "bad arguments"),
    }
)
# Tools that need what a server shared by many cannot have: a client's folders.
NOT_PASSED_ON = frozenset({"get-roots-list"})


def check_used(own: dict[str, Any], here: dict[str, Any]) -> None:
    """What a client gets by way of the hub is what it gets from the server."""
    check_same(own, here, NAMESPACE, OTHERWISE)
    tools = [tool for tool in own["tools"]["tools"] if tool["name"] not in NOT_PASSED_ON]
    check_tools(tools, here["tools"]["tools"], NAMESPACE)
    assert here["unknown tool"]["message"] == "Unknown tool: every_no_such_tool."
    assert here["bad arguments"]["isError"]


async def check_links(client: Through) -> None:
    """What a result links to, or holds, can be read by the URI that is told."""
    linked = await client.call_tool("get-resource-links", {"count": 2})
    held = await client.call_tool("get-resource-reference", {"resourceType": "Blob"})
    prompt = {"resourceType": "Text", "resourceId": "2"}
    prompted = await client.get_prompt("resource-prompt", prompt)
    zipped = {"name": "a.gz", "data": "data:text/plain,hello"}
    uris = [
        *(block.uri for block in linked.content[1:]),
        held.content[1].resource.uri,
        prompted.messages[1].content.resource.uri,
        (await client.call_tool("gzip-file-as-resource", zipped)).content[0].uri,
    ]
    for uri in uris:
        assert uri.startswith("every://demo/-/resource/"), uri
        [read] = (await client._client.read_resource(uri)).contents
        assert read.uri == uri


async def check_questions(client: Through, ears: Ears) -> None:
    """A question that leads to a page comes to the person, and the answer to the server."""
    page = {"url": "https://example.org/x", "elicitationId": "theirs"}
    told = await client.call_tool("trigger-url-elicitation", page)
    assert "User completed the URL elicitation flow" in told.content[0].text
    asked = ears.asked[-1]
    assert (asked["mode"], asked["url"], asked["elicitationId"]) == ("url", *page.values())


async def check_logs(client: Through, ears: Ears, era: str) -> None:
    """What the server logs during a call comes to whoever called, as each era asks for it."""
    meta = {LOG_LEVEL_META_KEY: "debug"} if era == "stateless" else None
    if era == "handshake":
        await client.session.set_logging_level("debug")
    for _ in range(TRIES):
        # What it logs while the hub reads its lists may be about that: it comes to nobody, and the
        # hub says that it dropped some.
        ears.notices[:] = [each for each in ears.notices if each["method"] != LOGGED]
        await client.call_tool("toggle-simulated-logging", {}, meta=meta)
        with suppress(TimeoutError):
            await ears.until(LOGGED, 2)
        await client.call_tool("toggle-simulated-logging", {})
        logged = [each["params"]["data"] for each in ears.notices if each["method"] == LOGGED]
        if any("level" in each for each in logged):
            break
    else:
        pytest.fail("nothing that the server logged has come")


async def check_updates(client: Through, ears: Ears, era: str) -> None:
    """Whoever watches a resource hears of its changes."""
    if era == "stateless":
        async with client.listen(resource_subscriptions=[RESOURCE]) as updates:
            await client.call_tool("toggle-subscriber-updates", {})
            assert client.uri(RESOURCE) in str(await anext(aiter(updates)))
            await client.call_tool("toggle-subscriber-updates", {})
        return
    await client.session.subscribe_resource(RESOURCE)
    await client.call_tool("toggle-subscriber-updates", {})
    assert (await ears.until(UPDATED))["params"]["uri"] == client.uri(RESOURCE)
    await client.call_tool("toggle-subscriber-updates", {})
    await client.session.unsubscribe_resource(RESOURCE)


async def check_rest(there: Meeting, era: str, token: str) -> None:
    ears = Ears()
    async with guest(there, token, ears, era=era) as client:
        through = Through(client, NAMESPACE)
        await check_links(through)
        await check_questions(through, ears)
        await check_logs(through, ears, era)
        await check_updates(through, ears, era)


def check_everything(transport: Transport, folder: Path) -> None:
    async def main(server: Place) -> None:
        ears = Ears()
        async with client_of(server, ears) as client:
            own = await everything_used(client, ears)
        async with fronted(folder, backend(NAMESPACE, server)) as there:
            token = await token_of(there, "ada")
            for era in ERAS:
                ears = Ears()
                async with guest(there, token, ears, era=era) as client:
                    check_used(own, await everything_used(Through(client, NAMESPACE), ears))
            # Some of this has the server list more than it did.
            for era in ERAS:
                await check_rest(there, era, token)

    with everything(transport) as server:
        run(main(server), 280)


@pytest.mark.requirement(
    "gateway.routes-by-namespace",
    "gateway.backends-own-name",
    "gateway.tools-aggregated",
    "gateway.resources-aggregated",
    "gateway.snake-case",
    "gateway.foreign-uris",
    "gateway.result-uris",
    "gateway.server-requests",
)
def test_clients_of_both_eras_get_of_server_everything_what_they_get_without_the_hub(tmp_path):
    check_everything("stdio", tmp_path)


@pytest.mark.requirement("gateway.routes-by-namespace", "gateway.result-uris")
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_the_same_is_so_where_server_everything_is_reached_over_http(transport, tmp_path):
    check_everything(transport, tmp_path)
