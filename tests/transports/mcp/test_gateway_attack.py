"""Hostile clients of `/mcp`: no spelling, no nesting and no old token opens what is closed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from folkmoot.gateway.model import Inventory, UpstreamRequest
from folkmoot.transports.mcp.resources import Resources
from tests.transports.mcp.gateway_support import (
    PLAIN_TOOL,
    Demo,
    echo,
    fronted,
    handshake,
    settle,
    text,
    wired,
)

ARGUMENT = {"argument": {"name": "a", "value": "b"}}
HIDING = """
demo://file///pub/..%2Fetc/passwd demo://file///pub/..%5cetc demo://file///pub/%252e%252e/etc
demo://file///pub/..;/etc demo://file///pub/%2E%2e/etc demo://file/-/-/pub/--02e--02e/etc/passwd
demo://file/-/-/pub/../etc/passwd demo://file/-/-/pub/--0252e--0252e/etc
demo://file/-/-/pub--02f..--02fetc demo://file/-/-/--p--u--b/a
demo://uri/-/file--03a/-/-/etc/passwd demo://file///pub/my%20keys/a
"""
REGION = {"type": "string", "x-mcp-header": "Region"}
SHIP = {
    **PLAIN_TOOL,
    "name": "ship",
    "inputSchema": {"type": "object", "properties": {"region": REGION, "text": {"type": "string"}}},
}


async def read(wanted: UpstreamRequest) -> Any:
    if wanted.method == "resources/read":
        return {"contents": [{"uri": wanted.params["uri"], "text": "read"}]}
    return {"completion": {"values": []}}


async def asks(wanted: UpstreamRequest) -> Any:
    """Wants to be told something before it goes on."""
    if "inputResponses" in wanted.params:
        return text("done")
    form = {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
    question = {"method": "elicitation/create", "params": form}
    return {"resultType": "input_required", "inputRequests": {"a": question}, "requestState": "s"}


@pytest.fixture
def era() -> str:
    return "stateless"


@pytest.fixture
def backend() -> Demo:
    demo = Demo(asks=asks, hangs=echo)
    demo.other = read
    return demo


@pytest.mark.settings(everyone=False)
async def test_no_escape_leads_out_of_what_one_may_read(hub, backend, wire):
    public = "demo://file///pub/*"
    given = (f"mcp.request.resources/*:{public}", f"mcp.request.completion/*:{public}")
    await settle(hub, ann=(*given, "!mcp.request.resources/*:demo://file///pub/my keys/*"))
    hidden = HIDING.split()
    for uri in hidden:
        assert "error" in await wire.ask("resources/read", {"uri": uri}), uri
        ref = {"ref": {"type": "ref/resource", "uri": uri}, **ARGUMENT}
        await wire.ask("completion/complete", ref)
    listen = {"notifications": {"resourceSubscriptions": hidden}}
    async with wire.streamed(wire.message("subscriptions/listen", listen, 2, None)) as events:
        agreed = await anext(events)
    assert agreed["params"]["notifications"].get("resourceSubscriptions") is None
    asked = {json.dumps(each.params) for each in backend.asked}
    # What is completed is a template, which nobody denied.
    assert all("my%20keys" in each and "ref" in each for each in asked)
    assert "result" in await wire.ask("resources/read", {"uri": "demo://file///pub/a%20b"})


@pytest.mark.settings(everyone=False)
async def test_no_doubled_slash_leads_to_a_resource_that_is_denied(hub, backend, wire):
    everything, secret = "resources/*:demo://*", "resources/*:demo://x/notes/secret*"
    await settle(hub, ann=(f"mcp.request.{everything}", f"!mcp.request.{secret}"))
    for path in ("x/notes//secret1", "x//notes/secret1", "/x/notes/secret1", "x\\notes\\secret1"):
        answer = await wire.ask("resources/read", {"uri": f"demo://{path}"})
        assert answer["error"]["data"]["code"] == "capability_denied", path
    assert backend.asked == []
    await wire.ask("resources/read", {"uri": "demo://x/notes//open1"})
    assert [each.params["uri"] for each in backend.asked] == ["demo://x/notes//open1"]


@handshake
@pytest.mark.parametrize("ending", ["recovered", "deleted"])
async def test_a_call_that_waits_for_its_client_ends_with_the_token_it_was_made_with(
    ending, hub, backend, ann
):
    begun = asyncio.Event()

    async def hangs(_: UpstreamRequest) -> Any:
        begun.set()
        await asyncio.Event().wait()

    backend.tools["hangs"] = hangs
    wire, accounts = await wired(hub, ann, capabilities={"elicitation": {}}), hub.hub.accounts
    hanging = asyncio.ensure_future(wire.ask("tools/call", {"name": "demo_hangs"}, id_=8))
    await begun.wait()
    async with wire.streamed(wire.message("tools/call", {"name": "demo_asks"}, 7, None)) as events:
        question = await anext(events)
        if ending == "recovered":
            await accounts.recover("ann", ann.recovery_code)
        else:
            await accounts.delete(await accounts.named("ann"))
        await wire.reply(question, {"action": "accept", "content": {}})
        assert "Authentication required." in str(await anext(events))
    assert "Authentication required." in str(await hanging)
    assert not any("inputResponses" in each.params for each in backend.asked)
    assert [each.params["name"] for each in backend.cancelled] == ["hangs"]


async def test_a_listen_that_names_thousands_of_resources_holds_nobody_up(wire, monkeypatch):
    looked = []
    watch = Resources.watch

    def counted(self: Resources, *asked: Any) -> Any:
        looked.append(asked)
        return watch(self, *asked)

    monkeypatch.setattr(Resources, "watch", counted)
    filters = {"resourceSubscriptions": [f"demo://a/{n}" for n in range(15_000)]}
    listen = wire.message("subscriptions/listen", {"notifications": filters}, 2, None)
    async with wire.streamed(listen) as events:
        agreed = await anext(events)
    assert len(agreed["params"]["notifications"]["resourceSubscriptions"]) == 256
    assert len(looked) < 300


@pytest.mark.parametrize("names", ['"demo:echo", "msg/lookup"', '"demo_echo", "msg_lookup"'])
async def test_no_rule_is_passed_by_inside_another_call_or_by_a_spelling(names, tmp_path, backend):
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "no"\nuse = "tools"\noptions = {{ deny = [{names}] }}\n')
    own = {"name": "msg_lookup", "arguments": {"handle": "ann"}}
    ruled = {"interceptors": {"rules": str(rules)}}
    async with fronted(tmp_path, "stateless", backend, **ruled) as there:
        wire = await wired(there, await there.person("ann"))
        for call in (
            {"name": "demo_echo"},
            {"name": "demo:echo"},
            {"name": "folkmoot_call_tool", "arguments": {"name": "demo_echo"}},
            {"name": "folkmoot/call_tool", "arguments": {"name": "demo:echo", "arguments": {}}},
            own,
            {"name": "folkmoot_call_tool", "arguments": own},
        ):
            told = await wire.ask("tools/call", call)
            assert told["error"]["data"]["code"] == "blocked", call
        found = {"name": "folkmoot_call_tool", "arguments": {"name": "msg_contacts"}}
        assert "contacts" in str(await wire.ask("tools/call", found))
        assert backend.asked == []


@pytest.mark.settings(everyone=False)
async def test_whoever_may_not_call_a_tool_hears_nothing_of_its_schema(hub, ann):
    await hub.hub.behind.gateway.arrived("demo", Inventory(tools=(SHIP,)))
    for token in (ann.token, ""):
        wire = await wired(hub, token)
        told = []
        for name in ("demo_ship", "demo_none"):
            call = {"name": name, "arguments": {"region": "eu"}}
            told.append(json.dumps(await wire.ask("tools/call", call)).replace("ship", "none"))
        assert told[0] == told[1]


@pytest.mark.requirement("mcp.param-headers")
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
async def test_a_call_that_lacks_a_header_its_tool_wants_reaches_no_backend(
    recorded, tmp_path, backend
):
    values = {"record": {"folder": str(tmp_path / "tapes")}} if recorded else {}
    async with fronted(tmp_path / "hub", "stateless", backend, **values) as there:
        backend.tools["ship"] = echo
        await there.hub.behind.gateway.arrived("demo", Inventory(tools=(SHIP,)))
        ann = await there.person("ann")
        wire = await wired(there, ann)
        call: dict[str, Any] = {"name": "demo_ship", "arguments": {"region": "eu"}}
        for headers in (None, {"mcp-param-region": "us"}):
            told = await wire.ask("tools/call", call, headers=headers)
            assert told["error"]["code"] == -32020
        assert backend.asked == []
        told = await wire.ask("tools/call", call, headers={"mcp-param-region": "eu"})
        assert "eu" in str(told["result"])
        without = {"name": "demo_ship", "arguments": {"text": "no region"}}
        assert "no region" in str((await wire.ask("tools/call", without))["result"])
        # Neither a call inside another nor one of a session has such headers.
        inside = {"name": "folkmoot_call_tool", "arguments": call}
        assert "eu" in str((await wire.ask("tools/call", inside))["result"])
        shaken = await wired(there, ann, "handshake")
        assert "eu" in str((await shaken.ask("tools/call", call))["result"])


@pytest.mark.parametrize("odd", ['"\\ud800"', '{"\\udfff": 1}', "NaN", "1e999"])
async def test_what_no_other_reader_takes_is_told_to_its_sender_and_to_no_backend(
    odd, backend, wire, caplog
):
    for place in ("arguments", "_meta"):
        message = wire.message("tools/call", {"name": "demo_echo", "arguments": {}}, 1, None)
        message["params"][place]["it"] = "@"
        body = json.dumps(message).replace('"@"', odd).encode()
        headers = wire.headers(message)
        answer = await wire.http.post(wire.there.url, content=body, headers=headers)
        assert answer.json()["error"]["code"] == -32700
    assert backend.asked == []
    assert not [each for each in caplog.records if each.exc_info]


@pytest.mark.settings(everyone=False)
async def test_no_spelling_of_a_path_leads_out_of_its_folder_or_into_a_denied_one(
    hub, backend, wire
):
    def on(path: str, *, deny: bool = False) -> dict[str, Any]:
        kind = f"{'!' if deny else ''}mcp.request.tools/call:demo:echo"
        under = {"path": {"under": path}}
        return {"kind": kind, "payload": {"params": {"arguments": under}}}

    await settle(hub, ann=(on("notes/"), on("notes/secret", deny=True)))  # type: ignore[arg-type]
    refused = ["notes/../../etc/passwd", "notes//secret/1", "notes/./secret", "/etc/passwd", "../x"]
    refused += ["notes/%2e%2e/a", "notes\\..\\a", "notes/a/../secret", "notes/\u0000"]
    for path in (*refused, 1, None, ["notes/a", "other"]):
        call = {"name": "demo_echo", "arguments": {"path": path}}
        assert "capability_denied" in json.dumps(await wire.ask("tools/call", call)), path
    assert backend.asked == []
    for path in ("notes/a", "notes//b", "./notes/c/d", ["notes/a", "notes/b"]):
        await wire.ask("tools/call", {"name": "demo_echo", "arguments": {"path": path}})
    assert len(backend.asked) == 4
