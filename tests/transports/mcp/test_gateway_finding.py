"""`?tools=search`: two tools that stand for all others, and judge nothing by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.gateway.model import UpstreamRequest
from tests.mcp_harness import both_eras
from tests.transports.mcp.gateway_support import (
    Demo,
    Wire,
    messages,
    payload,
    progress,
    settle,
    text,
    wired,
)


async def speaking(wanted: UpstreamRequest) -> Any:
    assert wanted.tell is not None
    wanted.tell(progress(1))
    return text("spoken")


@pytest.fixture
def backend() -> Demo:
    return Demo(secret=speaking, speaking=speaking)


@both_eras
async def test_few_tools_find_and_call_all_others(hub):
    made = await hub.hub.accounts.register("ann", also=hub.hub.mail.welcome)
    ann = await hub.returning(made.token, "&tools=search")
    names = [tool.name for tool in (await ann.client.list_tools()).tools]
    assert names == ["folkmoot_find_tool", "folkmoot_call_tool"]
    found = (await ann.call("folkmoot_find_tool", query="answers given"))["tools"]
    assert found[0]["name"] == "demo_echo"
    assert found[0]["inputSchema"]["properties"]["text"]["type"] == "string"
    assert found[0]["description"]
    own = (await ann.call("folkmoot_find_tool", query="block a user", limit=1))["tools"]
    assert [each["name"] for each in own] == ["msg_block"]
    said = await ann.refused("folkmoot_find_tool", query="x", limit=51)
    assert said == "limit must be an integer from 1 to 50."
    inner = {"name": "demo_echo", "arguments": {"text": "hi"}}
    result = await ann.client.call_tool("folkmoot_call_tool", inner)
    assert not result.is_error
    assert payload(result.model_dump(by_alias=True)) == {"text": "hi"}
    whoami = await ann.call("folkmoot_call_tool", name="msg_whoami")
    assert whoami["handle"] == "ann"


@pytest.mark.requirement("wire-name.resolved-inside-call-tool")
@both_eras
@pytest.mark.settings(everyone=False)
async def test_a_call_inside_another_is_judged_as_the_call_it_is(hub, backend, ann, bob):
    wire, bobs, stranger = [await wired(hub, who) for who in (ann, bob, "")]
    await settle(
        hub,
        ann=(
            *("mcp.request.tools/call:demo:*", "!mcp.request.tools/call:demo:secret"),
            "!mcp.request.tools/call:msg/digest",
        ),
    )

    async def told(who: Wire, outer: str, **arguments: Any) -> Any:
        return payload(
            (await who.ask("tools/call", {"name": outer, "arguments": arguments}))["result"]
        )

    for outer in ("folkmoot_call_tool", "folkmoot/call_tool"):
        for name, kind in (
            *((name, "demo:secret") for name in ("demo_secret", "demo:secret")),
            *((name, "msg/digest") for name in ("msg_digest", "msg/digest")),
        ):
            said = await told(wire, outer, name=name, arguments={})
            assert said["code"] == "capability_denied"
            assert said["attempted_kind"] == f"mcp.request.tools/call:{kind}"
    # What someone may not call they do not find either.
    find = {"outer": "folkmoot_find_tool", "query": "demo answers given"}
    found = [
        [it["name"] for it in (await told(who, **find))["tools"]] for who in (wire, bobs, stranger)
    ]
    assert found[0][:2] == ["demo_echo", "demo_speaking"]
    assert not [name for name in found[0] if "secret" in name]
    assert not [name for names in found[1:] for name in names if "demo" in name]
    hub.hub.behind.gateway.lost("demo", "It is away.")
    absent = [(await told(who, **find)).get("absent") for who in (wire, bobs)]
    assert absent == [{"demo": "It is away."}, None]
    await hub.hub.behind.gateway.arrived("demo", backend.inventory())
    for who, sentence in ((bobs, "no permission for"), (stranger, "Authentication")):
        assert sentence in (await told(who, "folkmoot_call_tool", name="demo_echo"))["error"]
    assert backend.asked == []


@both_eras
async def test_a_call_inside_another_goes_one_level_deep_and_says_what_is_wrong(backend, wire):
    echo = {"name": "demo_echo", "arguments": {}}
    for arguments, sentence in (
        ({"name": "folkmoot_call_tool", "arguments": echo}, "cannot call itself"),
        ({"name": "folkmoot/call_tool"}, "cannot call itself"),
        ({}, "Missing argument: name."),
        ({"name": 7}, "name must be a string."),
        ({"name": "demo_echo", "arguments": "x"}, "arguments must be an object."),
        ({"name": "demo_echo", "more": 1}, "Unknown argument: more."),
    ):
        params = {"name": "folkmoot_call_tool", "arguments": arguments}
        told = (await wire.ask("tools/call", params))["result"]
        assert told["isError"] is True
        assert sentence in payload(told)["error"]
    assert backend.asked == []
    unknown = {"name": "folkmoot_call_tool", "arguments": {"name": "demo_ecko"}}
    told = await wire.ask("tools/call", unknown)
    assert "Did you mean demo_echo?" in told["error"]["message"]
    inner = {"name": "folkmoot_call_tool", "arguments": {"name": "demo_speaking"}}
    message = wire.message("tools/call", inner, 1, {"progressToken": 9})
    first, last = messages(await wire.post(message))
    assert first["params"]["progressToken"] == 9
    assert last["result"]["content"][0]["text"] == "spoken"
