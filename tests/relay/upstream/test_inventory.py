"""Everything a server lists, and what becomes of lists that are no such thing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.gateway.model import Inventory
from folkmoot.relay.upstream import inventory
from folkmoot.relay.upstream.inventory import take_inventory
from tests.mcp.client.places import Asked, Place, speaking
from tests.mcp.client.saying import python
from tests.relay.upstream.scripted import ERAS, command
from tests.relay.upstream.test_http import sdk_http

Lists = Callable[[str, str | None], dict[str, Any]]
EVERYTHING = {"tools": {}, "resources": {}, "prompts": {}}


async def taken(lists: Lists, offers: dict[str, Any] = EVERYTHING) -> tuple[Inventory, list[str]]:
    """What is found at a server whose lists a function makes of a method and a cursor.

    With it the methods of lists that the server was asked.
    """

    async def answer(asked: Asked) -> None:
        message = asked.message
        found = lists(message["method"], message.get("params", {}).get("cursor"))
        if "error" in found:
            await asked.error(**found["error"])
        else:
            await asked.result({"resultType": "complete", **found})

    async with Place(speaking(answer, offers)).open() as place:
        inventory = await take_inventory(place.url, seconds=30)
        methods = [each.message["method"] for each in place.of("POST") if each.body]
        return inventory, [method for method in methods if method.endswith("/list")]


NOTHING: dict[str, Any] = {kind.member: [] for kind in inventory.KINDS}


@pytest.mark.long
async def test_ten_thousand_tools_over_many_pages_are_all_there_and_in_their_order():
    def pages(method: str, cursor: str | None) -> dict[str, Any]:
        begin = int(cursor or 0)
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        tools = [{"name": f"tool_{n}", "inputSchema": schema} for n in range(begin, begin + 100)]
        more = {"nextCursor": str(begin + 100)} if begin + 100 < 10_000 else {}
        return {"tools": tools, **more}

    found, asked = await taken(pages, {"tools": {}})
    assert [tool["name"] for tool in found.tools] == [f"tool_{n}" for n in range(10_000)]
    assert asked == ["tools/list"] * 100
    assert found.faults == ()


async def test_only_what_the_server_says_it_has_is_asked_for():
    found, asked = await taken(lambda *_: NOTHING, {"prompts": {}})
    assert asked == ["prompts/list"]
    assert found.capabilities == {"prompts": {}}


async def test_a_server_that_names_a_page_again_is_left_with_what_was_got():
    def circles(method: str, cursor: str | None) -> dict[str, Any]:
        following = {None: "a", "a": "b", "b": "a"}[cursor]
        return {"tools": [{"name": f"at_{cursor}"}], "nextCursor": following}

    found, asked = await taken(circles, {"tools": {}})
    assert [tool["name"] for tool in found.tools] == ["at_None", "at_a", "at_b"]
    assert asked == ["tools/list"] * 3
    assert "again" in found.faults[0]


@pytest.mark.parametrize(
    ("bound", "value", "said"),
    [
        ("MOST_ENTRIES", 25, "25 entries"),
        ("MOST_PAGES", 3, "3 pages"),
        ("MOST_BYTES", 2**10, "MiB"),
    ],
)
async def test_lists_without_an_end_are_cut_off(bound, value, said, monkeypatch):
    monkeypatch.setattr(inventory, bound, value)

    def endless(method: str, cursor: str | None) -> dict[str, Any]:
        tools = [{"name": f"tool_{n}_of_{cursor}", "inputSchema": {}} for n in range(10)]
        return {"tools": tools, "nextCursor": str(int(cursor or 0) + 1)}

    found, _ = await taken(endless, {"tools": {}})
    assert 10 <= len(found.tools) <= 30
    assert said in found.faults[0]


async def test_a_list_that_fails_is_told_of_and_the_others_are_there():
    lists: dict[str, Any] = {
        "tools/list": {"tools": [{"name": "one"}]},
        "resources/list": {"error": {"code": -32603, "message": "The disk is on fire."}},
        "resources/templates/list": {"error": {"code": -32601, "message": "Method not found"}},
        "prompts/list": {"prompts": "none"},
    }
    found, _ = await taken(lambda method, _: lists[method])
    assert [tool["name"] for tool in found.tools] == ["one"]
    assert found.faults == (
        "resources/list cannot be had: The disk is on fire.",
        "prompts/list cannot be had: the answer is no list.",
    )


async def test_entries_that_cannot_be_used_are_left_out_and_told_of():
    odd: dict[str, Any] = {
        "tools": ["text", {"name": ""}, {"title": "x"}, {"name": 7}, {"name": "good"}],
        "resources": [{"name": "no uri"}, {"uri": "a://b"}],
    }
    found, _ = await taken(lambda method, _: NOTHING | odd, {"tools": {}, "resources": {}})
    assert [tool["name"] for tool in found.tools] == ["good"]
    assert [each["uri"] for each in found.resources] == ["a://b"]
    assert any("no usable uri" in fault and "'no uri'" in fault for fault in found.faults)
    assert any("no usable name" in fault for fault in found.faults)


@pytest.mark.parametrize("era", ERAS)
async def test_a_command_is_asked_as_a_url_is(era):
    found = await take_inventory(command(era), env={"A": "b"}, seconds=20)
    assert [tool["name"] for tool in found.tools] == ["echo", "die"]
    assert [each["uri"] for each in found.resources] == ["note://1"]
    assert found.stateless is (era == "stateless")
    assert (found.server["name"], found.instructions) == ("scripted", "Ask.")


async def test_the_lists_of_a_server_of_the_sdk_are_as_its_own_client_gets_them():
    from mcp import Client

    async with sdk_http() as url:
        found = await take_inventory(url, headers={"x-any": "thing"}, seconds=20)
        async with Client(url) as client:
            tools = (await client.list_tools()).tools
        named = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        assert json.loads(json.dumps(found.tools)) == named
        assert found.stateless


async def test_a_server_that_cannot_be_had_is_an_error_that_says_why():
    for target, why in (
        ("http://127.0.0.1:1/mcp", "cannot be reached"),
        (["/no/such/program"], "cannot be started"),
        (python("while True: input()"), "did not answer within 1"),
    ):
        with pytest.raises(e.FolkmootError, match=why):
            await take_inventory(target, seconds=1)
