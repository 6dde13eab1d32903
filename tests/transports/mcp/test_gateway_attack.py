"""Hostile clients of `/mcp`: no spelling, no nesting and no old token opens what is closed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from folkmoot.gateway.model import Inventory, UpstreamRequest
from folkmoot.transports.mcp.resources import Resources
from tests.transports.mcp.gateway_support import (
    PLAIN_TOOL,
    Demo,
    echo,
    fronted,
    messages,
    settle,
    text,
    wired,
)

ARGUMENT = {"argument": {"name": "a", "value": "b"}}
HIDING = (
    "demo://file///pub/..%2Fetc/passwd",
    "demo://file///pub/..%5cetc",
    "demo://file///pub/%252e%252e/etc",
    "demo://file///pub/..;/etc",
    "demo://file///pub/%2E%2e/etc",
    "demo://file/-/-/pub/--02e--02e/etc/passwd",
    "demo://file/-/-/pub/../etc/passwd",
    "demo://file/-/-/pub/--0252e--0252e/etc",
    "demo://file/-/-/pub--02f..--02fetc",
    "demo://file/-/-/--p--u--b/a",
    "demo://uri/-/file--03a/-/-/etc/passwd",
)


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


async def test_no_escape_leads_out_of_what_one_may_read(tmp_path: Path) -> None:
    demo = Demo()
    demo.other = read
    async with fronted(tmp_path, "stateless", demo, everyone=False) as there:
        ann = await there.person("ann")
        public = "demo://file///pub/*"
        given = (f"mcp.request.resources/*:{public}", f"mcp.request.completion/*:{public}")
        denied = "!mcp.request.resources/*:demo://file///pub/my keys/*"
        await settle(there, ann=(*given, denied))
        wire = await wired(there, ann)
        for uri in (*HIDING, "demo://file///pub/my%20keys/a"):
            told = await wire.ask("resources/read", {"uri": uri})
            assert "error" in told, uri
            ref = {"ref": {"type": "ref/resource", "uri": uri}, **ARGUMENT}
            await wire.ask("completion/complete", ref)
        filters = {"resourceSubscriptions": [*HIDING, "demo://file///pub/my%20keys/a"]}
        listen = wire.message("subscriptions/listen", {"notifications": filters}, 2, None)
        async with wire.streamed(listen) as events:
            agreed = await anext(events)
        assert agreed["params"]["notifications"].get("resourceSubscriptions") is None
        asked = {json.dumps(each.params) for each in demo.asked}
        # What is completed is a template, which nobody denied.
        assert all("my%20keys" in each and "ref" in each for each in asked)
        plain = {"uri": "demo://file///pub/a%20b"}
        assert "result" in await wire.ask("resources/read", plain)


@pytest.mark.parametrize("ending", ["recovered", "deleted"])
async def test_a_call_that_waits_for_its_client_ends_with_the_token_it_was_made_with(
    ending: str, tmp_path: Path
) -> None:
    begun = asyncio.Event()

    async def hangs(_: UpstreamRequest) -> Any:
        begun.set()
        await asyncio.Event().wait()

    demo = Demo(asks=asks, hangs=hangs)
    async with fronted(tmp_path, "handshake", demo) as there:
        ann, accounts = await there.person("ann"), there.hub.accounts
        wire = await wired(there, ann, capabilities={"elicitation": {}})
        call = wire.message("tools/call", {"name": "demo_asks"}, 7, None)
        other = wire.message("tools/call", {"name": "demo_hangs"}, 8, None)
        hanging = asyncio.ensure_future(wire.post(other))
        await begun.wait()
        async with wire.streamed(call) as events:
            question = await anext(events)
            if ending == "recovered":
                await accounts.recover("ann", ann.recovery_code)
            else:
                account = await accounts.authenticate(ann.token)
                assert account is not None
                await accounts.delete(account)
            reply = {"action": "accept", "content": {}}
            await wire.post({"jsonrpc": "2.0", "id": question["id"], "result": reply})
            assert "Authentication required." in str(await anext(events))
        assert "Authentication required." in str(messages(await hanging))
        assert not any("inputResponses" in each.params for each in demo.asked)
        assert [each.params["name"] for each in demo.cancelled] == ["hangs"]


async def test_a_listen_that_names_thousands_of_resources_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    watch = Resources.watch

    def counted(self: Resources, *asked: Any) -> Any:
        looked.append(asked)
        return watch(self, *asked)

    monkeypatch.setattr(Resources, "watch", counted)
    async with fronted(tmp_path, "stateless", Demo()) as there:
        wire = await wired(there, await there.person("ann"))
        filters = {"resourceSubscriptions": [f"demo://a/{n}" for n in range(15_000)]}
        listen = wire.message("subscriptions/listen", {"notifications": filters}, 2, None)
        async with wire.streamed(listen) as events:
            agreed = await anext(events)
        assert len(agreed["params"]["notifications"]["resourceSubscriptions"]) == 256
        assert len(looked) < 300


@pytest.mark.parametrize("names", ['"demo:echo", "msg/lookup"', '"demo_echo", "msg_lookup"'])
async def test_no_rule_is_passed_by_inside_another_call_or_by_a_spelling(
    names: str, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "no"\nuse = "tools"\noptions = {{ deny = [{names}] }}\n')
    own = {"name": "msg_lookup", "arguments": {"handle": "ann"}}
    demo = Demo()
    interceptors = {"rules": str(rules)}
    async with fronted(tmp_path, "stateless", demo, interceptors=interceptors) as there:
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
        assert demo.asked == []


async def test_whoever_may_not_call_a_tool_hears_nothing_of_its_schema(tmp_path: Path) -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": region}}
    demo = Demo()
    async with fronted(tmp_path, "stateless", demo, everyone=False) as there:
        listed = {**PLAIN_TOOL, "name": "hidden", "inputSchema": schema}
        await there.hub.behind.gateway.arrived("demo", Inventory(tools=(listed,)))
        ann = await there.person("ann")
        for token in (ann.token, ""):
            wire = await wired(there, token)
            told = []
            for name in ("demo_hidden", "demo_absent"):
                call = {"name": name, "arguments": {"region": "eu"}}
                said = json.dumps(await wire.ask("tools/call", call))
                told.append(said.replace("hidden", "absent"))
            assert told[0] == told[1]


@pytest.mark.requirement("mcp.param-headers")
async def test_a_call_that_lacks_a_header_its_tool_wants_reaches_no_backend(tmp_path: Path) -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": region, "text": {"type": "string"}}}
    demo = Demo()
    async with fronted(tmp_path, "stateless", demo) as there:
        demo.tools["ship"] = echo
        listed = {**PLAIN_TOOL, "name": "ship", "inputSchema": schema}
        await there.hub.behind.gateway.arrived("demo", Inventory(tools=(listed,)))
        wire = await wired(there, await there.person("ann"))
        await wire.ask("tools/list")
        call = {"name": "demo_ship", "arguments": {"region": "eu"}}
        for headers in (None, {"mcp-param-region": "us"}):
            told = await wire.ask("tools/call", call, headers=headers)
            assert told["error"]["code"] == -32020
        assert demo.asked == []
        told = await wire.ask("tools/call", call, headers={"mcp-param-region": "eu"})
        assert "eu" in str(told["result"])
        call["arguments"] = {"text": "no region"}
        assert "no region" in str((await wire.ask("tools/call", call))["result"])
        # A session has no such headers.
        shaken = await wired(there, await there.person("bob"), "handshake")
        call["arguments"] = {"region": "eu"}
        assert "eu" in str((await shaken.ask("tools/call", call))["result"])


@pytest.mark.requirement("mcp.param-headers")
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
async def test_a_call_inside_another_needs_none_of_the_headers_that_its_tool_wants(
    recorded: bool, tmp_path: Path
) -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    listed = {**PLAIN_TOOL, "name": "ship", "inputSchema": {"properties": {"region": region}}}
    values = {"record": {"folder": str(tmp_path / "tapes")}} if recorded else {}
    demo = Demo()
    async with fronted(tmp_path / "hub", "stateless", demo, **values) as there:
        demo.tools["ship"] = echo
        await there.hub.behind.gateway.arrived("demo", Inventory(tools=(listed,)))
        wire = await wired(there, await there.person("ann"))
        await wire.ask("tools/list")
        inner = {"name": "demo_ship", "arguments": {"region": "eu"}}
        call = {"name": "folkmoot_call_tool", "arguments": inner}
        told = await wire.ask("tools/call", call)
        assert "eu" in str(told["result"])
        refused = await wire.ask("tools/call", inner)
        assert refused["error"]["code"] == -32020


@pytest.mark.parametrize("odd", ['"\\ud800"', '{"\\udfff": 1}', "NaN", "1e999"])
async def test_what_no_other_reader_takes_is_told_to_its_sender_and_to_no_backend(
    odd: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "folkmoot.audit")
    demo = Demo()
    async with fronted(tmp_path, "stateless", demo) as there:
        wire = await wired(there, await there.person("ann"))
        for place in ("arguments", "_meta"):
            call: dict[str, Any] = {"name": "demo_echo", "arguments": {}}
            message = wire.message("tools/call", call, 1, None)
            message["params"][place]["it"] = "@"
            body = json.dumps(message).replace('"@"', odd).encode()
            answer = await wire.http.post(there.url, content=body, headers=wire.headers(message))
            assert answer.json()["error"]["code"] == -32700
        assert demo.asked == []
    assert not [each for each in caplog.records if each.exc_info]


async def test_no_spelling_of_a_path_leads_out_of_its_folder_or_into_a_denied_one(
    tmp_path: Path,
) -> None:
    def on(path: str, *, deny: bool = False) -> dict[str, Any]:
        kind = f"{'!' if deny else ''}mcp.request.tools/call:demo:echo"
        under = {"path": {"under": path}}
        return {"kind": kind, "payload": {"params": {"arguments": under}}}

    demo = Demo()
    async with fronted(tmp_path, "stateless", demo, everyone=False) as there:
        wire = await wired(there, await there.person("ann"))
        await settle(there, ann=(on("notes/"), on("notes/secret", deny=True)))  # type: ignore[arg-type]
        refused = ["notes/../../etc/passwd", "notes//secret/1", "notes/./secret", "/etc/passwd"]
        refused += [
            "notes/%2e%2e/a",
            "notes\\..\\a",
            "notes/a/../secret",
            "notes/\u0000",
            "../x",
        ]
        for path in (*refused, 1, None, ["notes/a", "other"]):
            call = {"name": "demo_echo", "arguments": {"path": path}}
            assert "capability_denied" in json.dumps(await wire.ask("tools/call", call)), path
        assert demo.asked == []
        for path in ("notes/a", "notes//b", "./notes/c/d", ["notes/a", "notes/b"]):
            await wire.ask("tools/call", {"name": "demo_echo", "arguments": {"path": path}})
        assert len(demo.asked) == 4


async def test_no_doubled_slash_leads_to_a_resource_that_is_denied(tmp_path: Path) -> None:
    demo = Demo()
    demo.other = read
    async with fronted(tmp_path, "stateless", demo, everyone=False) as there:
        wire = await wired(there, await there.person("ann"))
        all_of_it = "mcp.request.resources/*:demo://*"
        await settle(there, ann=(all_of_it, "!mcp.request.resources/*:demo://x/notes/secret*"))
        for uri in (
            "demo://x/notes//secret1",
            "demo://x//notes/secret1",
            "demo:///x/notes/secret1",
        ):
            answer = await wire.ask("resources/read", {"uri": uri})
            assert answer["error"]["data"]["code"] == "capability_denied", uri
        assert demo.asked == []
        await wire.ask("resources/read", {"uri": "demo://x/notes//open1"})
        assert [each.params["uri"] for each in demo.asked] == ["demo://x/notes//open1"]
