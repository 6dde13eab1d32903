"""Backends that ask something back: their caller is asked, in its own era, and nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest

from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp.server import questions
from tests.mcp_harness import both_eras
from tests.transports.mcp.gateway_support import (
    Demo,
    Wire,
    payload,
    stateless,
    text,
    wired,
)

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
    return Demo(asking=asking, other=asking)


@both_eras
async def test_an_official_client_is_asked_and_the_call_goes_on(hub, backend):
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


@asynccontextmanager
async def asked(wire: Wire, id_: int = 1) -> AsyncIterator[tuple[AsyncIterator[Any], Any]]:
    """The events of a call that goes on, and the question in it."""
    message = wire.message("tools/call", {"name": "demo_asking"}, id_, None)
    async with wire.streamed(message) as events:
        yield events, await anext(events)


async def test_only_the_session_that_was_asked_can_answer(hub, ann, bob):
    offers = {"elicitation": {}, "sampling": {}}
    mine = await wired(hub, ann, capabilities=offers)
    others = [await wired(hub, who, capabilities=offers) for who in (ann, bob)]
    async with asked(mine) as (events, question):
        assert question["method"] == "elicitation/create"
        assert question["params"] == FORM["params"]
        wrong = {"action": "accept", "content": {"name": "Mallory"}}
        for wire in others:
            assert await wire.reply(question, wrong) == 202
        right = {"action": "accept", "content": {"name": "Ann"}}
        assert await mine.reply(question, right) == 202
        following = await anext(events)
        assert following["method"] == "sampling/createMessage"
        # Whatever comes after the first answer is nobody's.
        assert await mine.reply(question, wrong) == 202
        said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
        await mine.reply(following, said)
        last = await anext(events)
        assert last["result"]["content"][0]["text"] == "then Ann: yes"


async def test_a_client_that_cannot_or_will_not_answer_gets_a_clear_error(
    hub, backend, ann, monkeypatch
):
    monkeypatch.setattr(questions, "FIRST_PAUSE", 0)
    mute = await wired(hub, ann)
    wire = await wired(hub, ann, capabilities={"elicitation": {}})

    async def refused(wire: Wire, result: Any = None) -> Any:
        async def answering(_: UpstreamRequest) -> Any:
            return result

        backend.tools["asking"] = asking if result is None else answering
        told = await wire.ask("tools/call", {"name": "demo_asking"})
        assert told["result"]["isError"] is True
        return payload(told["result"])

    said = await refused(mute)
    assert said["needs"] == "elicitation"
    assert "elicitation/create" in said["error"]
    strange = await refused(wire, wish(None, x={"method": "tasks/get"}))
    assert strange["code"] == "era_not_bridged"
    modern = await refused(wire, {"resultType": "x-task", "task": {}})
    assert "type of result" in modern["error"]
    before = len(backend.asked)
    assert "too often" in (await refused(wire, wish("again")))["error"]
    assert len(backend.asked) - before == 11
    backend.tools["asking"] = asking
    async with asked(wire) as (events, question):
        refusal = {"code": -32000, "message": "Not now."}
        await wire.post({"jsonrpc": "2.0", "id": question["id"], "error": refusal})
        last = await anext(events)
        assert payload(last["result"])["error"].startswith("The client answered")
    # Only this one is waited for in vain: the others are answered, however busy it is.
    monkeypatch.setattr(questions, "QUESTION_SECONDS", 0.1)
    async with asked(wire) as (events, question):
        assert (await anext(events))["params"]["requestId"] == question["id"]
        assert "did not answer" in payload((await anext(events))["result"])["error"]
    # Too late is as good as never.
    assert await wire.reply(question, {"action": "cancel"}) == 202


@both_eras
@pytest.mark.requirement("gateway.questions-offered")
async def test_nobody_is_asked_for_roots_nor_for_what_their_client_does_not_offer(
    era, hub, backend, ann
):
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


@stateless
@pytest.mark.requirement("mcp.request-state-tampered")
async def test_a_stateless_caller_gets_the_wish_itself_and_nobody_else_can_take_it_up(
    backend, wire, bobs
):
    meta = {CAPABILITIES: {"elicitation": {}, "sampling": {}}}
    call = {"name": "demo_asking"}
    told = (await wire.ask("tools/call", call, meta=meta))["result"]
    assert told["resultType"] == "input_required"
    assert told["inputRequests"] == {"who": FORM}
    state = told["requestState"]
    responses = {"who": {"action": "accept", "content": {"name": "Ann"}}}
    again = {"inputResponses": responses, "requestState": state}
    for who, params in (
        (bobs, {**call, **again}),
        (wire, {"name": "demo_other", **again}),
        (wire, {**call, **again, "requestState": f"{state}x"}),
        (wire, {**call, **again, "requestState": "first"}),
    ):
        refused = await who.ask("tools/call", params, meta=meta)
        assert refused["error"]["code"] == -32602
        assert refused["error"]["data"]["code"] == "input_state_invalid"
    assert len(backend.asked) == 1
    taken = (await wire.ask("tools/call", {**call, **again}, meta=meta))["result"]
    assert taken["inputRequests"] == {"what": SAMPLE}


async def test_a_call_that_is_cancelled_while_its_client_is_asked_ends(hub, ann):
    wire = await wired(hub, ann, capabilities={"elicitation": {}})
    async with asked(wire, 5) as (events, _):
        notice = {"method": "notifications/cancelled", "params": {"requestId": 5}}
        assert (await wire.post({"jsonrpc": "2.0", **notice})).status == 202
        assert [event async for event in events] == []
    assert len(hub.hub.mcp._parts.calls) == 0
    for session in hub.hub.mcp._sessions._sessions.values():
        assert not session.questions
        assert not session.requests
