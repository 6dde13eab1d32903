"""Lists of `/mcp` before backends: whose entries they show, page by page."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types.methods import validate_server_result
from msgspec import structs

from folkmoot.gateway.model import Inventory
from folkmoot.mcp.wire import TASKS_EXTENSION
from folkmoot.names.lint import judge
from folkmoot.names.listing import read_lists
from folkmoot.names.project import Project
from folkmoot.relay.upstream.inventory import take_inventory
from tests.mcp_harness import MODERN, Person, both_eras, until
from tests.transports.mcp.gateway_support import (
    Demo,
    Wire,
    fronted,
    settle,
    wired,
)

LISTED: dict[str, Any] = {
    "resources": ({"uri": "notes://a", "name": "a"}, {"uri": "ui://page", "name": "page"}),
    "templates": ({"uriTemplate": "notes://{name}", "name": "any"},),
    "prompts": ({"name": "greet"}, {"name": "partTwo"}),
}
METHODS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


@pytest.fixture
def backend() -> Demo:
    demo = Demo(**{f"tool_{number}": Demo.request for number in range(5)})  # type: ignore[arg-type]
    demo.listed = LISTED
    return demo


async def listed(wire: Wire, method: str, query: str = "") -> list[str]:
    """The names or URIs of a whole list, every page of it."""
    found: list[str] = []
    params: dict[str, Any] = {}
    while True:
        result = (await wire.ask(method, params, query=query))["result"]
        found += [
            entry.get("uri") or entry.get("uriTemplate") or entry["name"]
            for entry in result[METHODS[method]]
        ]
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


@both_eras
@pytest.mark.settings(gateway={"page_size": 10})
async def test_lists_show_what_the_hub_and_its_backends_have_page_by_page(ann, wire):
    tools = await listed(wire, "tools/list")
    assert tools[0] == "msg_register"
    assert tools[-6:] == ["demo_echo", *(f"demo_tool_{number}" for number in range(5))]
    assert len(set(tools)) == len(tools)
    assert await listed(wire, "resources/list") == [
        *("mmp://mailboxes/inbox", "ui://mmp-inbox"),
        *("demo://notes/-/a", "ui://demo/page"),
    ]
    assert await listed(wire, "resources/templates/list") == ["demo://notes/-/{name}"]
    assert await listed(wire, "prompts/list") == ["demo_greet", "demo_part_two"]
    assert (await listed(wire, "tools/list", "?names=canonical"))[-1] == "demo:tool_4"
    wrong = await wire.ask("tools/list", {"cursor": "nonsense"})
    assert wrong["error"]["data"]["code"] == "argument_invalid"
    shown = await ann.client.list_tools()
    assert shown.next_cursor is not None
    assert (await ann.client.list_tools(cursor=shown.next_cursor)).tools


@both_eras
async def test_lists_have_the_form_that_official_clients_read(hub, era):
    hub.hub.behind.gateway.attach(Demo("away"))
    await settle(hub, everyone=True)
    wire = await wired(hub, await hub.person("ann"))
    for method in METHODS:
        for query in ("", "?names=canonical", "?tools=all", "?tools=search"):
            told = await wire.ask(method, {}, id_="one", query=query)
            assert told["id"] == "one"
            version = MODERN if era == "stateless" else "2025-11-25"
            validate_server_result(method, version, told["result"])


async def test_older_versions_of_the_handshake_era_see_the_same(hub, ann):
    for version in ("2024-11-05", "2025-06-18"):
        wire = await wired(hub, ann, version=version)
        assert "demo_echo" in await listed(wire, "tools/list")
        assert "demo://notes/-/a" in await listed(wire, "resources/list")
        assert "demo_greet" in await listed(wire, "prompts/list")
        told = await wire.ask("tools/call", {"name": "demo_echo"})
        assert told["result"]["content"][0]["text"] == "{}"


async def test_what_the_hub_can_do_is_what_it_says_it_can(tmp_path):
    async with fronted(tmp_path, "handshake") as there:
        ann = await there.person("ann")
        stateless = await wired(there, ann, "stateless")

        async def told() -> tuple[Any, Any]:
            discovered = (await stateless.ask("server/discover"))["result"]
            again = await there.returning(ann.token)
            can = again.client.server_capabilities
            dumped = can.model_dump(by_alias=True, exclude_none=True)
            # Tasks belong to the protocol in one era, and to an extension in the other.
            assert dumped.pop("tasks")["requests"] == {"tools": {"call": {}}}
            assert discovered["capabilities"]["extensions"].pop(TASKS_EXTENSION) == {}
            assert dumped == discovered["capabilities"]
            assert again.client.instructions == discovered["instructions"]
            return discovered["capabilities"], discovered["instructions"]

        can, instructions = await told()
        assert can["tools"] == can["prompts"] == {"listChanged": True}
        assert can["resources"] == {"subscribe": True, "listChanged": True}
        assert {"completions", "logging"} <= can.keys()
        assert "server_tool" not in instructions
        demo = Demo()
        there.hub.behind.gateway.attach(demo)
        await there.hub.behind.gateway.arrived("demo", demo.inventory())

        async def is_told() -> bool:
            return "server_tool" in (await told())[1]

        await until(is_told)


@pytest.mark.requirement("gateway.rights-by-effective-kind")
async def test_everyone_is_told_of_what_they_may_use_and_strangers_of_nothing(tmp_path):
    said = {**LISTED, "instructions": "Echo softly."}
    async with fronted(tmp_path, "handshake", Demo(), everyone=False, listed=said) as there:
        ann, bob, cyd = await there.people("ann", "bob", "cyd")
        await settle(
            there,
            ann=("mcp.request.tools/call:demo:*",),
            bob=("mcp.request.prompts/get:demo:greet", "mcp.request.resources/read:demo://*"),
        )
        of_ann = {"tools/list": ["demo_echo"]}
        of_bob = {
            "resources/list": ["demo://notes/-/a", "ui://demo/page"],
            "resources/templates/list": ["demo://notes/-/{name}"],
            "prompts/list": ["demo_greet"],
        }
        seen_by: list[tuple[Person | str, dict[str, list[str]]]]
        seen_by = [(ann, of_ann), (bob, of_bob), (cyd, {}), ("", {})]
        for who, sees in seen_by:
            for wire in (await wired(there, who), await wired(there, who, "stateless")):
                lists = {method: await listed(wire, method) for method in METHODS}
                theirs = {each: [it for it in lists[each] if "demo" in it] for each in lists}
                assert {each: names for each, names in theirs.items() if names} == sees
            told = (await wire.ask("server/discover"))["result"]["instructions"]
            assert ("\n\ndemo:\n  Echo softly." in told) is bool(sees)
            if isinstance(who, Person):
                assert (await there.returning(who.token)).client.instructions == told


FOREIGN: dict[str, Any] = {
    "resources": (
        {"uri": "test://static/document/architecture.md", "name": "a"},
        {"uri": "file:///srv/README.md", "name": "b"},
        {"uri": "https://example.org/a?b#c", "name": "c"},
        {"uri": "urn:isbn:1", "name": "d"},
        {"uri": "ui://page", "name": "page"},
    ),
    "templates": ({"uriTemplate": "test://text/{id}", "name": "any"},),
    "prompts": ({"name": "partTwo"},),
}


def project_of(found: Inventory) -> Project:
    """What a hub lists, as the linter reads it."""
    return read_lists(structs.asdict(found), found.server)


@pytest.mark.requirement("names.lint-hub", "gateway.shown-uris")
async def test_the_linter_finds_no_fault_in_what_a_hub_lists(tmp_path):
    demo = Demo(readFile=Demo.request)  # type: ignore[arg-type]
    async with fronted(tmp_path, "stateless", demo, listed=FOREIGN) as there:
        ann = await there.person("ann")
        found = await take_inventory(f"{there.url}?token={ann.token}", seconds=20)
        project = project_of(found)
        assert {"msg/send", "demo:read_file", "demo://file/-/-/srv/--r--e--a--d--m--e.md"} <= {
            each.name for each in project.declared
        }
        assert judge(project) == []
        # A fault of a backend's own is told all the same.
        own = {"uri": "demo://Notes/a", "name": "own"}
        await there.hub.behind.gateway.arrived("demo", demo.inventory(resources=(own,)))
        found = await take_inventory(f"{there.url}?token={ann.token}", seconds=20)
        (fault,) = judge(project_of(found))
        assert (fault.rule, fault.name) == ("type-characters", "demo://Notes/a")
