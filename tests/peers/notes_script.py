"""What a client does with a server that takes notes, and what it gets: all that MCP has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mcp import Client
from mcp_types import LOG_LEVEL_META_KEY, PromptReference, ResourceTemplateReference

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
from tests.peers.script import LOGGED, normal, refusal
from tests.peers.servers import Place

NAMESPACE: Final = "notes"
# What is the hub's own to answer, or is compared in another way.
OTHERWISE: Final = frozenset({"tools", "prompts", "resources", "templates", "bad arguments"})
# The requirements that a server proves which does the same behind the hub.
PROVED: Final = (
    "gateway.routes-by-namespace",
    "gateway.backends-own-name",
    "gateway.tools-aggregated",
    "gateway.resources-aggregated",
    "gateway.snake-case",
    "gateway.foreign-uris",
    "gateway.result-uris",
)
WANTS_LOGS: Final = {LOG_LEVEL_META_KEY: "debug"}


async def notes_used(client: Client, ears: Ears) -> dict[str, Any]:
    """Ask for all that the server has, in one order; the results by what was done."""
    call = client.call_tool
    progress: list[Any] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append([done, total, message])

    did: dict[str, Any] = {
        "tools": await client.list_tools(),
        "add": await call("add", {"a": 2, "b": 3}),
        "show": await call("showAll", {}),
        "failing": await call("failing", {}),
        "work": await call("work", {"steps": 2}, progress_callback=note, meta=WANTS_LOGS),
    }
    did["progress"] = progress
    await ears.until(LOGGED, count=2)
    did["logs"] = [each["params"] for each in ears.notices if each["method"] == LOGGED]
    did["greet"] = await call("greet", {})
    did["visit"] = await call("visit", {"url": "https://example.org/x"})
    did["asked"] = [{**each, "elicitationId": "", "_meta": {}} for each in ears.asked]
    did["bad arguments"] = await refusal(call("add", {"a": "x"}))
    did["resources"] = await client.list_resources()
    did["templates"] = await client.list_resource_templates()
    did["read"] = await client.read_resource("note://today")
    did["read by template"] = await client.read_resource("note://b%20c")
    did["unknown resource"] = await refusal(client.read_resource("paper://nothing"))
    did["prompts"] = await client.list_prompts()
    did["prompt"] = await client.get_prompt("summarise", {"topic": "rain"})
    prompt = PromptReference(type="ref/prompt", name="summarise")
    template = ResourceTemplateReference(type="ref/resource", uri="note://{name}")
    did["completed"] = await client.complete(prompt, {"name": "topic", "value": "r"})
    did["template completed"] = await client.complete(template, {"name": "name", "value": "r"})
    return {name: normal(value) for name, value in did.items()}


async def used_at(place: Place, mode: str) -> dict[str, Any]:
    """What a client gets of the server itself."""
    ears = Ears()
    async with client_of(place, ears, mode=mode) as client:
        return await notes_used(client, ears)


async def check_notes(there: Meeting, era: str, token: str, own: dict[str, Any]) -> None:
    """A client of the hub gets the same."""
    ears = Ears()
    async with guest(there, token, ears, era=era) as client:
        through: Any = Through(client, NAMESPACE)
        here = await notes_used(through, ears)
        check_same(own, here, NAMESPACE, OTHERWISE)
        check_tools(own["tools"]["tools"], here["tools"]["tools"], NAMESPACE)
        shown = (await through.call_tool("showAll", {})).content
        for uri in (shown[3].uri, shown[4].resource.uri):
            [read] = (await client.read_resource(uri)).contents
            assert read.uri == uri
            assert uri.startswith("notes://note/-/")


async def check_place(place: Place, folder: Path) -> None:
    """Clients of both eras get of a server by way of the hub what they get without it."""
    async with fronted(folder, backend(NAMESPACE, place)) as there:
        token = await token_of(there, "ada")
        for era, mode in ERAS.items():
            own = await used_at(place, mode)
            assert [each["mode"] for each in own["asked"] if "mode" in each] == ["form", "url"]
            await check_notes(there, era, token, own)
