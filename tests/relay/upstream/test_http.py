"""Servers over HTTP behind the hub: the SDK's own, and some that misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

import pytest
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel

from folkmoot.core import errors as e
from folkmoot.gateway.model import BackendState
from folkmoot.relay.upstream import links
from folkmoot.relay.upstream.connecting import Connecting
from folkmoot.relay.upstream.conversation import BackendConversation
from folkmoot.relay.upstream.requests import Unanswered
from folkmoot.settings.backends import SecretReference
from tests.harness import reached, serving
from tests.mcp.client.places import (
    Asked,
    Place,
    Shaking,
    event,
    never,
    result,
    sdk_sse,
    speaking,
    told,
)
from tests.ports import free_port
from tests.relay.upstream.scripted import CLOCK, FORM, Told, call, leave, resumed, running, spec

TOOLS = {"tools": [{"name": "echo", "inputSchema": {}}]}
OFFERS = {"tools": {}, "logging": {}}


class Answers(BaseModel):
    name: str


async def who() -> Elicit[Answers]:
    return Elicit("Who are you?", Answers)


shaking_or_not = pytest.mark.parametrize("shake", [False, True], ids=["stateless", "handshake"])


@asynccontextmanager
async def sdk_http() -> AsyncIterator[str]:
    server = MCPServer("sdk", log_level="ERROR")

    @server.tool()
    async def greet(asked: Annotated[Answers, Resolve(who)]) -> str:
        return f"Hello, {asked.name}!"

    @server.tool()
    async def work(ctx: Context[Any, Any], name: str) -> str:
        await ctx.report_progress(1, 2)
        await ctx.info(f"working for {name}")
        return name

    @server.tool()
    async def wait() -> None:
        await asyncio.Event().wait()

    manager = StreamableHTTPSessionManager(server._lowlevel_server)
    endpoints = {"/mcp": manager.handle_request}
    async with manager.run(), serving(endpoints=endpoints, max_body_bytes=2**20) as there:
        yield f"http://127.0.0.1:{there.port}/mcp"


@asynccontextmanager
async def talking(
    url: str, *, shake: bool = False, **more: Any
) -> AsyncIterator[BackendConversation]:
    connecting = Connecting(spec(url=url, transport="http"), CLOCK, {})
    opened = BackendConversation.opened(connecting.link, seconds=20, shake=shake, **more)
    async with opened as conversation:
        yield conversation


class Sessions(Shaking):
    """A server of the handshake era that counts calls and can forget its sessions."""

    def __init__(self, *refusal: Any) -> None:
        super().__init__(self._count, OFFERS, refusal or (404, "Session not found"))
        self.calls = 0

    async def _count(self, asked: Asked) -> None:
        method = asked.message["method"]
        self.calls += method == "tools/call"
        await asked.result(TOOLS if method == "tools/list" else {"content": []})


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@shaking_or_not
async def test_a_server_of_the_sdk_tells_progress_and_logs_to_the_call_whose_stream_they_are_on(
    shake,
):
    async with sdk_http() as url, talking(url, shake=shake) as conversation:
        assert conversation.stateless is not shake

        async def work(name: str) -> None:
            heard = Told()
            wanted = call("work", name=name, tell=heard, progress=True, log_level="info")
            await conversation.request(wanted, 20)
            progress, logged = heard.things
            assert progress.params["progress"] == 1
            assert logged.params["data"] == f"working for {name}"

        await asyncio.gather(*map(work, ("ada", "bob", "eve")))


@pytest.mark.requirement("gateway.server-requests")
@shaking_or_not
async def test_a_question_of_a_server_of_the_sdk_is_answered_by_repeating_the_call(shake):
    async with sdk_http() as url, talking(url, shake=shake) as conversation:
        wanted = call("greet", capabilities=FORM)
        asked = await conversation.request(wanted, 20)
        ((key, question),) = asked.result["inputRequests"].items()
        assert question["params"]["message"] == "Who are you?"
        given = {key: {"action": "accept", "content": {"name": "Ada"}}}
        done = await conversation.request(resumed(wanted, asked, given), 20)
        assert done.result["content"][0]["text"] == "Hello, Ada!"


@shaking_or_not
async def test_a_cancelled_call_leaves_nothing_open_at_the_link(shake):
    async with sdk_http() as url, talking(url, shake=shake) as conversation:
        waiting = asyncio.ensure_future(conversation.request(call("wait"), 20))
        await conversation.request(call("work", name="ada"), 20)
        await leave(waiting)
        link: Any = conversation.link
        await reached(lambda: not link._exchanges)


async def test_a_server_of_the_old_transport_is_found_out_to_be_one():
    async with sdk_sse() as url, running(spec(url=url)) as there:
        answer = await there.backend.request(call("any", a=1))
        assert json.loads(answer.result["content"][0]["text"]) == {"name": "any", "a": 1}
        view = there.backend.view()
        assert (view.transport, view.target) == ("sse", url)


@pytest.mark.parametrize(
    ("status", "words"),
    [(404, "Session not found"), (400, "Bad Request: No valid session ID provided")],
)
async def test_a_call_that_a_server_refused_for_its_forgotten_session_is_made_again(status, words):
    server = Sessions(status, words)
    async with server.place.open() as place, running(spec(url=place.url)) as there:
        server.opened.clear()
        assert (await there.backend.request(call("echo"))).result["content"] == []
        assert server.calls == 1
        assert there.losses.things == []


async def test_a_server_that_comes_back_on_its_port_is_used_again(monkeypatch):
    monkeypatch.setattr(links, "LONGEST_WAIT", 0.05)
    server, again = Sessions(), Sessions()
    port = free_port()
    async with server.place.open(port=port) as place:
        backend = running(spec(url=place.url))
        there = await backend.__aenter__()
    # Whether the call had left when the connection broke, nobody can know.
    with pytest.raises((e.BackendFailed, e.BackendUnavailable), match="cannot be reached"):
        await there.backend.request(call("echo"))
    await there.until(lambda b: b.state is BackendState.BROKEN)
    async with again.place.open(port=port):
        await there.until(lambda b: b.state is BackendState.UP)
        assert (await there.backend.request(call("echo"))).result["content"] == []
        assert again.calls == 1
        await backend.__aexit__(None, None, None)


@pytest.mark.requirement("gateway.no-caller-credentials")
async def test_a_server_gets_the_headers_of_its_settings_and_none_of_a_callers():
    server = Sessions()
    named: Any = {"X-Plain": "yes", "Authorization": SecretReference(env="TOKEN")}
    async with (
        server.place.open() as place,
        running(spec(url=place.url, headers=named), {"TOKEN": "Bearer upstream"}) as there,
    ):
        wanted = call("echo", person="ada")
        wanted.params["_meta"] = {"authorization": "Bearer caller", "x": 1}
        await there.backend.request(wanted)
    (asked,) = [each for each in place.of("POST") if b"tools/call" in each.body]
    assert asked.headers["authorization"] == "Bearer upstream"
    assert asked.headers["x-plain"] == "yes"
    assert not {"cookie", "origin", "x-forwarded-for", "forwarded"} & set(asked.headers)
    heads = [str(each.headers) for each in place.asked]
    assert not any("caller" in head or "ada" in head for head in heads)


async def test_what_a_server_answers_in_the_place_of_an_answer_is_told_and_breaks_nothing():
    async def refuse(asked: Asked) -> None:
        status = asked.message["params"].get("arguments", {}).get("status")
        if status is None:
            await asked.result({"resultType": "complete", **TOOLS})
        else:
            await asked.say(status, b"no json", content_type="application/json")

    place_of = Place(speaking(refuse, OFFERS))
    async with place_of.open() as place, running(spec(url=place.url)) as there:
        for status, error, words in (
            (429, e.BackendBusy, "rate limit was exceeded"),
            (200, e.BackendFailed, "cannot be read"),
            (500, e.BackendFailed, r"failed \(500\)"),
        ):
            with pytest.raises(error, match=words):
                await there.ask("echo", status=status)
        assert (await there.ask("echo"))["tools"]
        assert there.backend.view().restarts == 0


async def test_a_server_that_accepts_and_never_answers_is_told_of_and_holds_nobody_up():
    server = Sessions()
    async with (
        Place(never).open() as hanging,
        server.place.open() as place,
        running(spec("slow", url=hanging.url, connect_seconds=0.5), reached=False) as slow,
        running(spec("quick", url=place.url)) as quick,
    ):
        waiting = asyncio.ensure_future(slow.backend.request(call("echo")))
        assert (await quick.backend.request(call("echo"))).result["content"] == []
        with pytest.raises(e.BackendUnavailable, match="slow is not available"):
            await waiting
        await slow.until(lambda b: b.state is BackendState.DOWN)
        assert "did not answer within 0.5 seconds" in slow.backend.why


@pytest.mark.requirement("gateway.shared-link")
@shaking_or_not
async def test_a_log_message_that_is_read_when_its_stream_has_ended_goes_to_its_call_alone(shake):
    async def answer(asked: Asked) -> None:
        message = asked.message
        if message["method"] != "tools/call":
            await asked.result({})
        elif message["params"]["name"] == "wait":
            await asyncio.Event().wait()
        else:
            logged = [told("notifications/message", level="info", data=n) for n in range(9)]
            done = result(message["id"], {"resultType": "complete", "content": []})
            after = told("notifications/message", level="info", data="late")
            # All of it at once: the answer has ended the stream before any of it is looked at.
            await asked.events(b"".join(map(event, [*logged, done, after])))

    there = Shaking(answer, OFFERS).place if shake else Place(speaking(answer, OFFERS))
    async with there.open() as place, talking(place.url, shake=shake) as conversation:
        heard, others = Told(), Told()
        waits = call("wait", person="bob", tell=others, log_level="debug")
        waiting = asyncio.ensure_future(conversation.request(waits, 20))
        await conversation.request(call("log", person="ann", tell=heard, log_level="debug"), 20)
        assert heard.said("data")[:9] == list(range(9))
        # Bob's call is the only one that is open by now.
        await conversation.request(call("log"), 20)
        assert others.things == []
        waiting.cancel()


async def test_what_a_stream_floods_is_dropped_and_its_answer_comes_all_the_same():
    async def flood(asked: Asked) -> None:
        stray = event(told("notifications/progress", progressToken="of nobody", progress=1))
        answer = result(asked.message["id"], {"resultType": "complete", "content": []})
        await asked.events(*[stray * 1000] * 10, event(answer))

    async with Place(speaking(flood)).open() as place, talking(place.url) as conversation:
        answer = await conversation.request(call("echo"), 20)
        assert answer.result["content"] == []
        assert conversation.dropped > 0


QUESTION = told("elicitation/create", message="Your secret?", requestedSchema={}) | {"id": "q"}


class Late(Shaking):
    """A server of the handshake era that asks for calls which are over.

    `answered` goes on to ask on its own stream after its answer; `broken` ends unanswered.
    """

    def __init__(self) -> None:
        super().__init__(self._call, OFFERS)
        # The stream of the session.
        self.stream: list[Asked] = []

    async def do(self, asked: Asked) -> None:
        if asked.method == "GET":
            self.stream.append(asked)
            await asked.events(end=False)
            await asyncio.Event().wait()
        await super().do(asked)

    async def _call(self, asked: Asked) -> None:
        if asked.message["method"] != "tools/call":
            await asked.error(-32601, "Method not found")
            return
        tool = asked.message["params"]["name"]
        if tool == "answered":
            answer = result(asked.message["id"], {"content": []})
            await asked.events(event(answer) + event(QUESTION))
            return
        await asked.events(end=False)
        if tool == "broken":
            asked.hang_up()
        else:
            await asyncio.Event().wait()

    async def reply(self) -> Any:
        """What is answered to its question."""
        await reached(lambda: any("method" not in each for each in self.told))
        return next(each for each in self.told if "method" not in each)


@pytest.mark.requirement("gateway.cancelled-requests")
@pytest.mark.parametrize("tool", ["answered", "broken"])
async def test_a_question_for_a_call_that_is_over_reaches_nobody_whichever_stream_it_comes_on(tool):
    server = Late()
    async with server.place.open() as place, talking(place.url, shake=True) as conversation:
        bobs = call("wait", person="bob", capabilities=FORM)
        waiting = asyncio.ensure_future(conversation.request(bobs, 20))
        await reached(lambda: bool(conversation.in_flight))
        with suppress(Unanswered):
            await conversation.request(call(tool, person="ann", capabilities=FORM), 20)
        if tool == "broken":
            await server.stream[0].part(event(QUESTION))
        assert "does not belong to exactly one" in (await server.reply())["error"]["message"]
        assert not waiting.done()
        waiting.cancel()
