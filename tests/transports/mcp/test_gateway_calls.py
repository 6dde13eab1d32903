"""Calls to backends through `/mcp`, in both eras."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import msgspec
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_server_result

from folkmoot.core.message import ErrorObject, Response
from folkmoot.gateway.model import UpstreamRequest
from tests.mcp_harness import both_eras
from tests.transports.mcp.gateway_support import (
    Demo,
    log,
    messages,
    payload,
    progress,
    settle,
    stateless,
    text,
    wired,
)

LEVEL = "io.modelcontextprotocol/logLevel"
VERSIONS = {"handshake": "2025-11-25", "stateless": "2026-07-28"}

LISTED: dict[str, Any] = {
    "resources": ({"uri": "notes://a/b", "name": "b"},),
    "templates": ({"uriTemplate": "notes://{name}", "name": "any"},),
    "prompts": ({"name": "greet", "arguments": [{"name": "who"}]},),
}


async def other(wanted: UpstreamRequest) -> Any:
    """What the backend makes of prompts, resources and completions."""
    if wanted.method == "prompts/get":
        said = f"Hello {wanted.params.get('arguments', {}).get('who')}"
        content = {"type": "text", "text": said}
        return {"messages": [{"role": "user", "content": content}]}
    if wanted.method == "resources/read":
        contents = [{"uri": wanted.params["uri"], "mimeType": "text/plain", "text": "read"}]
        return {"contents": contents, "ttlMs": 9, "cacheScope": "public"}
    return {"completion": {"values": [f"{wanted.params['argument']['value']}!"]}}


async def failing(_: UpstreamRequest) -> Any:
    return Response(id="theirs", error=ErrorObject(-32050, "It broke.", {"why": "it can"}))


async def odd(_: UpstreamRequest) -> Any:
    """A result with everything that a hub could be tempted to change."""
    return {
        "content": [
            {"type": "text", "text": "\u2028 \U0001f989", "annotations": {"priority": 0.5}},
            {"type": "resource_link", "uri": "notes://a", "name": "a", "x-own": [1, None]},
        ],
        "structuredContent": {"far": 2**60, "deep": [{"null": None}]},
        "isError": True,
        "_meta": {"their/own": 1},
        "further": "member",
    }


async def speaking(wanted: UpstreamRequest) -> Any:
    assert wanted.tell is not None
    for level in ("debug", "info", "error"):
        wanted.tell(log(level, level))
        wanted.tell(progress(1))
    return text("spoken")


@pytest.fixture
def backend() -> Demo:
    demo = Demo(failing=failing, odd=odd, speaking=speaking, secret=speaking, echo_all=speaking)
    demo.other, demo.listed = other, LISTED
    return demo


@pytest.mark.requirement("gateway.no-caller-credentials")
@both_eras
async def test_everything_of_a_backend_works_through_the_official_client(backend, ann):
    for name in ("demo_echo", "demo:echo"):
        result = await ann.client.call_tool(name, {"text": "hi"})
        assert json.loads(result.content[0].text) == {"text": "hi"}  # type: ignore[union-attr]
        assert result.structured_content == {"echoed": True}
    greeting = await ann.client.get_prompt("demo_greet", {"who": "you"})
    assert greeting.messages[0].content.text == "Hello you"  # type: ignore[union-attr]
    for uri in ("demo://notes/-/a/b", "demo://notes/-/elsewhere"):
        read = await ann.client.read_resource(uri)
        assert str(read.contents[0].uri) == uri
    for ref in (
        types.PromptReference(name="demo:greet"),
        types.ResourceTemplateReference(uri="demo://notes/-/{name}"),
    ):
        done = await ann.client.complete(ref, {"name": "who", "value": "an"})
        assert done.completion.values == ["an!"]
    # By the backend's own names, and with nothing of what let the caller in.
    own = [each.params.get("name", each.params.get("uri")) for each in backend.asked]
    assert own[:5] == ["echo", "echo", "greet", "notes://a/b", "notes://elsewhere"]
    assert backend.asked[5].params["ref"]["name"] == "greet"
    assert backend.asked[6].params["ref"]["uri"] == "notes://{name}"
    for wanted in backend.asked:
        written = repr(wanted) + json.dumps(msgspec.to_builtins(wanted.params))
        assert ann.token not in written
        assert "uthorization" not in written


@both_eras
async def test_every_request_about_a_backend_has_the_form_that_official_clients_read(
    backend, wire, era
):
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("tools/call", {"name": "demo_echo", "arguments": {"text": "x"}}, "result"),
        ("tools/call", {"name": "demo:echo"}, "result"),
        ("tools/call", {"name": "demo_echo", "arguments": {"text": 7}}, "result"),
        ("tools/call", {"name": "demo_failing"}, "error"),
        ("tools/call", {"name": "demo_nothing"}, "error"),
        ("tools/call", {"name": "DEMO_echo"}, "error"),
        ("tools/call", {"name": "demo__echo"}, "error"),
        ("prompts/get", {"name": "demo_greet", "arguments": {"who": "x"}}, "result"),
        ("prompts/get", {"name": "demo_nothing"}, "error"),
        ("resources/read", {"uri": "demo://notes/-/a/b"}, "result"),
        ("resources/read", {"uri": "demo://notes/-/a/../b"}, "error"),
        ("resources/read", {"uri": "demo://notes/-/%61/b"}, "error"),
        ("resources/read", {"uri": "Demo://notes//a/b"}, "error"),
        ("resources/read", {"uri": "mmp://mailboxes/inbox"}, "result"),
    ]
    for method, params, expected in asked:
        told = await wire.ask(method, params)
        assert expected in told, (params, told)
        if expected == "result":
            validate_server_result(method, VERSIONS[era], told["result"])
    names = {each.params.get("name") for each in backend.asked}
    assert names <= {"echo", "failing", "greet", None}
    assert all("%61" not in str(each.params) for each in backend.asked)


@both_eras
async def test_a_result_passes_unchanged_but_for_its_uris(wire, era):
    theirs = await odd(UpstreamRequest(method="tools/call", params={}))
    theirs["content"][1]["uri"] = "demo://notes/-/a"
    result = (await wire.ask("tools/call", {"name": "demo_odd"}))["result"]
    if era == "stateless":
        assert result.pop("resultType") == "complete"
        info = result["_meta"].pop("io.modelcontextprotocol/serverInfo")
        assert info["name"] == "folkmoot"
    assert result == theirs
    read = (await wire.ask("resources/read", {"uri": "demo://notes/-/a"}))["result"]
    # What one person may read is not for a cache that others share.
    kept = read.get("ttlMs"), read.get("cacheScope")
    assert kept == ((9, "private") if era == "stateless" else (None, None))


@both_eras
async def test_what_a_backend_says_goes_to_the_caller_that_wants_it(hub, backend, ann, bob, era):
    wire, other_wire = await wired(hub, ann), await wired(hub, bob)
    stateless = era == "stateless"

    async def heard(meta: dict[str, Any]) -> list[Any]:
        message = wire.message("tools/call", {"name": "demo_speaking"}, 1, meta)
        *said, last = messages(await wire.post(message))
        assert last["result"]["content"][0]["text"] == "spoken"
        return [each["params"].get("progressToken", each["params"].get("data")) for each in said]

    level = {LEVEL: "info"} if stateless else {}
    assert await heard({}) == ([] if stateless else ["info", "error"])
    all_of_it = ["mine", "info", "mine", "error", "mine"]
    assert await heard({**level, "progressToken": "mine"}) == all_of_it
    if stateless:
        assert await heard({LEVEL: "error"}) == ["error"]
        plain = await wire.post(wire.message("tools/call", {"name": "demo_speaking"}, 1, {}))
        assert plain.headers["content-type"] == "application/json"
    else:
        await other_wire.ask("logging/setLevel", {"level": "error"})
        assert await heard({}) == ["info", "error"]
        await wire.ask("logging/setLevel", {"level": "error"})
        assert await heard({}) == ["error"]
    wanted = backend.asked[-1]
    assert wanted.log_level == ("error" if not stateless else None)


@both_eras
async def test_a_callers_own_meta_reaches_the_backend_and_the_protocols_does_not(backend, wire):
    meta = {"traceparent": "00-1-2-03", "my/own": [1], "progressToken": 5}
    await wire.ask("tools/call", {"name": "demo_echo"}, meta=meta)
    asked = backend.asked[-1]
    assert asked.params["_meta"] == {"traceparent": "00-1-2-03", "my/own": [1]}
    assert asked.progress


@stateless
async def test_a_header_that_says_another_name_than_the_body_is_refused(backend, wire):
    for header in ("demo_other", "demo:echo", "msg_whoami"):
        message = wire.message("tools/call", {"name": "demo_echo"}, 1, None)
        answer = await wire.post(message, headers={"mcp-name": header})
        assert answer.status == 400
        assert answer.json()["error"]["code"] == -32020
    read = wire.message("resources/read", {"uri": "demo://notes/-/a"}, 1, None)
    assert (await wire.post(read, headers={"mcp-name": "demo://notes/-/b"})).status == 400
    assert backend.asked == []


@pytest.mark.requirement("gateway.rights-by-effective-kind")
@both_eras
@pytest.mark.settings(everyone=False)
async def test_rights_decide_by_the_canonical_name_whatever_the_spelling(hub, backend, ann, bob):
    await settle(
        hub,
        ann=("mcp.request.tools/call:demo:*", "!mcp.request.tools/call:demo:secret"),
        bob=("mcp.request.resources/read:demo://notes/-/a/*",),
    )
    wire, bobs = await wired(hub, ann), await wired(hub, bob)
    stranger = await wired(hub, "")
    for name in ("demo_secret", "demo:secret"):
        for params in (
            {"name": name},
            {"name": "folkmoot_call_tool", "arguments": {"name": name}},
            {"name": "folkmoot/call_tool", "arguments": {"name": name}},
        ):
            told = (await wire.ask("tools/call", params))["result"]
            kind = {"attempted_kind": "mcp.request.tools/call:demo:secret"}
            denied = {**payload(told), "code": "capability_denied", **kind}
            assert (told["isError"], payload(told)) == (True, denied)
    # Whoever may not call anything there is not told what there is.
    for name in ("demo_echo", "demo_secret", "demo_nothing", "demo:nothing"):
        told = (await bobs.ask("tools/call", {"name": name}))["result"]
        assert payload(told)["code"] == "capability_denied"
    refused = (await stranger.ask("tools/call", {"name": "demo_echo"}))["result"]
    assert payload(refused) == {"error": "Authentication required."}
    with pytest.raises(MCPError, match="no permission for"):
        await ann.client.read_resource("demo://notes/-/a/b")
    assert (await bob.client.read_resource("demo://notes/-/a/b")).contents
    for uri in ("demo://notes/-/b", "demo://notes/-/a/../b", "demo://notes/-/a/%2e%2e/b"):
        with pytest.raises(MCPError):
            await bob.client.read_resource(uri)
    assert [each.params["uri"] for each in backend.asked] == ["notes://a/b"]


@both_eras
@pytest.mark.settings(everyone=False)
async def test_a_name_that_nobody_has_is_answered_with_one_that_the_caller_may_call(hub, wire):
    granted = ("mcp.request.tools/call:demo:*", "!mcp.request.tools/call:demo:echo_all")
    await settle(hub, ann=granted)
    for name, query, nearest in (
        ("demo_ecko", "", "demo_echo"),
        ("demo:ecko", "?names=canonical", "demo:echo"),
        ("demo_echo_al", "", "demo_echo"),
    ):
        error = (await wire.ask("tools/call", {"name": name}, query=query))["error"]
        assert error["code"] == -32602
        assert error["message"] == f"Unknown tool: {name}. Did you mean {nearest}?"
    error = (await wire.ask("tools/call", {"name": "nothing like it"}))["error"]
    assert error["message"] == "Unknown tool: nothing like it."
