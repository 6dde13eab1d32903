"""Backends that ask something back: their caller is asked, in its own era, and nobody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp.server import questions
from tests.mcp_harness import Meeting, Person, both_eras
from tests.transports.mcp.gateway_support import Demo, Wire, fronted, payload, text, wired

FORM = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}],
        "maxTokens": 9,
    },
}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def wish(state: str | None = "s1", **asked: Any) -> dict[str, Any]:
    told = {"resultType": "input_required", "inputRequests": asked}
    return told if state is None else {**told, "requestState": state}


async def asking(wanted: UpstreamRequest) -> Any:
    """Wants to know a name, then a word, and says both."""
    given = wanted.params.get("inputResponses")
    state = wanted.params.get("requestState")
    if given is None:
        return wish("first", who=FORM)
    if state == "first":
        return wish(f"then {given['who']['content']['name']}", what=SAMPLE)
    return text(f"{state}: {given['what']['content']['text']}")


async def answer_form(_: Any, params: Any) -> types.ElicitResult:
    assert params.message == "Who are you?"
    return types.ElicitResult(action="accept", content={"name": "Ann"})


async def sample(_: Any, __: Any) -> types.CreateMessageResult:
    content = types.TextContent(text="hi")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


@pytest.fixture
def backend() -> Demo:
    return Demo(asking=asking)


@both_eras
async def test_an_official_client_is_asked_and_the_call_goes_on(
    hub: Meeting, backend: Demo
) -> None:
    made = await hub.hub.accounts.register("ann")
    ann = await hub.returning(
        made.token, elicitation_callback=answer_form, sampling_callback=sample
    )
    given = {"text": "kept"}
    for name, arguments in (
        ("demo_asking", given),
        ("demo_asking", given),
        ("folkmoot_call_tool", {"name": "demo:asking", "arguments": given}),
    ):
        result = await ann.client.call_tool(name, arguments)
        assert result.content[0].text == "then Ann: hi"  # type: ignore[union-attr]
    assert {"elicitation", "sampling"} <= backend.asked[0].capabilities.keys()
    assert all(each.params["arguments"] == given for each in backend.asked)
    assert len(backend.asked) == 9


async def first_question(wire: Wire, id_: int = 1) -> tuple[Any, Any, Any]:
    """The open stream of a call, its events and the question in it."""
    message = wire.message("tools/call", {"name": "demo_asking"}, id_, None)
    opened = wire.http.stream("POST", wire.there.url, json=message, headers=wire.headers(message))
    response = await opened.__aenter__()
    lines = (line async for line in response.aiter_lines() if line.startswith("data: {"))
    return opened, lines, json.loads((await anext(lines))[6:])


async def test_only_the_session_that_was_asked_can_answer(
    hub: Meeting, ann: Person, bob: Person
) -> None:
    offers = {"elicitation": {}, "sampling": {}}
    mine = await wired(hub, ann, capabilities=offers)
    others = [await wired(hub, who, capabilities=offers) for who in (ann, bob)]
    opened, lines, question = await first_question(mine)
    assert question["method"] == "elicitation/create"
    assert question["params"] == FORM["params"]
    reply = {"jsonrpc": "2.0", "id": question["id"]}
    wrong = {**reply, "result": {"action": "accept", "content": {"name": "Mallory"}}}
    for wire in others:
        assert (await wire.post(wrong)).status == 202
    right = {**reply, "result": {"action": "accept", "content": {"name": "Ann"}}}
    assert (await mine.post(right)).status == 202
    following = json.loads((await anext(lines))[6:])
    assert following["method"] == "sampling/createMessage"
    # Whatever comes after the first answer is nobody's.
    assert (await mine.post(wrong)).status == 202
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
    await mine.post({"jsonrpc": "2.0", "id": following["id"], "result": said})
    last = json.loads((await anext(lines))[6:])
    assert last["result"]["content"][0]["text"] == "then Ann: yes"
    await opened.__aexit__(None, None, None)


async def test_a_client_that_cannot_or_will_not_answer_gets_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def strange(wanted: UpstreamRequest) -> Any:
        return wish(None, x={"method": "tasks/get"})

    async def modern(wanted: UpstreamRequest) -> Any:
        return {"resultType": "x-task", "task": {}}

    async def endless(wanted: UpstreamRequest) -> Any:
        return wish("again")

    monkeypatch.setattr(questions, "FIRST_PAUSE", 0)
    demo = Demo(asking=asking, strange=strange, endless=endless, modern=modern)
    async with fronted(tmp_path, "handshake", demo) as there:
        ann = await there.person("ann")
        mute = await wired(there, ann)
        wire = await wired(there, ann, capabilities={"elicitation": {}})

        async def refused(wire: Wire, name: str) -> Any:
            told = await wire.ask("tools/call", {"name": name})
            assert told["result"]["isError"] is True
            return payload(told["result"])

        said = await refused(mute, "demo_asking")
        assert said["needs"] == "elicitation"
        assert "elicitation/create" in said["error"]
        assert (await refused(wire, "demo_strange"))["code"] == "era_not_bridged"
        assert "type of result" in (await refused(wire, "demo_modern"))["error"]
        assert "too often" in (await refused(wire, "demo_endless"))["error"]
        assert len([each for each in demo.asked if each.params["name"] == "endless"]) == 11
        opened, lines, question = await first_question(wire)
        refusal = {"code": -32000, "message": "Not now."}
        await wire.post({"jsonrpc": "2.0", "id": question["id"], "error": refusal})
        last = json.loads((await anext(lines))[6:])
        assert payload(last["result"])["error"].startswith("The client answered")
        await opened.__aexit__(None, None, None)
        # Only this one is waited for in vain: the others are answered, however busy it is.
        monkeypatch.setattr(questions, "QUESTION_SECONDS", 0.1)
        opened, lines, question = await first_question(wire)
        withdrawn = json.loads((await anext(lines))[6:])
        assert withdrawn["params"]["requestId"] == question["id"]
        last = json.loads((await anext(lines))[6:])
        assert "did not answer" in payload(last["result"])["error"]
        await opened.__aexit__(None, None, None)
        # Too late is as good as never.
        late = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}}
        assert (await wire.post(late)).status == 202


@both_eras
@pytest.mark.requirement("gateway.questions-offered")
async def test_nobody_is_asked_for_roots_nor_for_what_their_client_does_not_offer(
    era: str, hub: Meeting, backend: Demo, ann: Person
) -> None:
    offers = {"elicitation": {}, "roots": {"listChanged": True}}
    wire = await wired(hub, ann, capabilities=offers)
    meta = {CAPABILITIES: offers} if era == "stateless" else None
    for asked, told in (
        ({"where": {"method": "roots/list"}}, "folders of your machine (roots/list)"),
        ({"what": SAMPLE}, "this client does not offer"),
    ):

        async def wishing(_: UpstreamRequest, asked: Any = asked) -> Any:
            return wish(None, who=FORM, **asked)

        backend.tools["asking"] = wishing
        result = (await wire.ask("tools/call", {"name": "demo_asking"}, meta=meta))["result"]
        assert result["isError"] is True
        assert told in payload(result)["error"]


@pytest.mark.requirement("mcp.request-state-tampered")
async def test_a_stateless_caller_gets_the_wish_itself_and_nobody_else_can_take_it_up(
    tmp_path: Path,
) -> None:
    demo = Demo(asking=asking, other=asking)
    async with fronted(tmp_path, "stateless", demo) as there:
        ann, bob = await there.people("ann", "bob")
        wire, bobs = await wired(there, ann), await wired(there, bob)
        meta = {CAPABILITIES: {"elicitation": {}, "sampling": {}}}
        await wire.ask("tools/list", meta=meta)
        await bobs.ask("tools/list", meta=meta)
        call = {"name": "demo_asking"}
        told = (await wire.ask("tools/call", call, meta=meta))["result"]
        assert told["resultType"] == "input_required"
        assert told["inputRequests"] == {"who": FORM}
        state = told["requestState"]
        responses = {"who": {"action": "accept", "content": {"name": "Ann"}}}
        again = {"inputResponses": responses, "requestState": state}
        before = len(demo.asked)
        for who, params in (
            (bobs, {**call, **again}),
            (wire, {"name": "demo_other", **again}),
            (wire, {**call, **again, "requestState": f"{state}x"}),
            (wire, {**call, **again, "requestState": "first"}),
        ):
            refused = await who.ask("tools/call", params, meta=meta)
            assert refused["error"]["code"] == -32602
            assert refused["error"]["data"]["code"] == "input_state_invalid"
        assert len(demo.asked) == before
        taken = (await wire.ask("tools/call", {**call, **again}, meta=meta))["result"]
        assert taken["inputRequests"] == {"what": SAMPLE}


async def test_a_call_that_is_cancelled_while_its_client_is_asked_ends(hub: Meeting) -> None:
    wire = await wired(hub, await hub.person("ann"), capabilities={"elicitation": {}})
    opened, lines, _ = await first_question(wire, 5)
    notice = {"method": "notifications/cancelled", "params": {"requestId": 5}}
    assert (await wire.post({"jsonrpc": "2.0", **notice})).status == 202
    assert [line async for line in lines] == []
    await opened.__aexit__(None, None, None)
    assert len(hub.hub.mcp._parts.calls) == 0
    for session in hub.hub.mcp._sessions._sessions.values():
        assert not session.questions
        assert not session.requests
