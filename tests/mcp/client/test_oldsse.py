"""The link to a server of the old HTTP+SSE transport."""

from __future__ import annotations

import asyncio
import json

import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import Notification, Request
from folkmoot.mcp.client.oldsse import OldSseLink
from tests.mcp.client.places import Asked, Place, event, result, sdk_sse, told
from tests.mcp.client.saying import answer, failure, linked, notice, refusal, request, said

EVENTS = "text/event-stream"


def named(endpoint: str) -> bytes:
    return f"event: endpoint\ndata: {endpoint}\n\n".encode()


@pytest.mark.requirement("proxy.sse-fields")
async def test_a_conversation_with_the_sdks_own_server():
    async with sdk_sse() as url, linked(url, OldSseLink) as link:
        client = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client}
        await link.send(request("initialize", 0, **hello))
        envelope = await link.receive_envelope()
        assert envelope.message.result["protocolVersion"] == "2024-11-05"
        metadata = envelope.context.transport.metadata
        assert metadata.event_type == "message"
        connection = envelope.context.transport.connection
        assert str(connection.remote_addr) in url
        await link.send(notice("notifications/initialized"))
        meta = {"_meta": {"progressToken": 1}}
        arguments = {"progress": True}
        await link.send(request("tools/call", 1, name="t", arguments=arguments, **meta))
        assert isinstance(await link.receive(), Notification)
        told = (await answer(link)).result["content"][0]["text"]
        assert json.loads(told) == {"name": "t", **arguments}
        assert not link.waiting


async def test_a_stream_that_ends_leaves_no_request_without_an_answer():
    end = asyncio.Event()

    async def do(asked: Asked) -> None:
        if asked.method == "POST":
            await asked.say(202)
            return
        await asked.events(named("/messages?session_id=hunter2"), end=False)
        await end.wait()
        await asked.part(event(told("last words")))
        asked.hang_up()

    async with Place(do).open() as place, linked(place.url, OldSseLink) as link:
        for number in (1, 2):
            await link.send(request("wait", number))
        await link.send(notice("notifications/cancelled", requestId=2))
        end.set()
        assert isinstance(await link.receive(), Notification)
        found, sentence, data = failure(await link.receive())
        assert found == 1
        assert place.url in sentence
        assert data == {"code": "server_unreachable"}
        with pytest.raises(e.TransportClosed):
            await link.receive()
        with pytest.raises(e.TransportClosed):
            await link.send(notice("late"))


async def test_a_message_that_is_not_accepted_is_an_error_for_who_asked():
    async def do(asked: Asked) -> None:
        if asked.method == "POST":
            await asked.say(500)
            return
        await asked.events(named("/messages"), end=False)
        await asyncio.Event().wait()

    async with Place(do).open() as place, linked(place.url, OldSseLink) as link:
        for id_, method in enumerate(("initialize", "ask")):
            told = {"code": "server_unreachable", "status": 500}
            found = await refusal(link, request(method, id_))
            assert found == (id_, "The server failed (500).", told)
        with pytest.raises(e.ServerUnreachable):
            await link.send(notice("tick"))


async def test_a_server_that_accepts_only_what_it_has_answered_can_still_be_answered():
    stream: list[Asked] = []
    answered = asyncio.Event()

    async def do(asked: Asked) -> None:
        if asked.method == "GET":
            stream.append(asked)
            await asked.events(named("messages/here?session_id=1"), end=False)
            await asyncio.Event().wait()
        assert asked.path == "/messages/here?session_id=1"
        if "result" in asked.message:
            answered.set()
        else:
            question = {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}
            await stream[0].part(event(question))
            await answered.wait()
            await stream[0].part(b"data: not a message\n\n")
            await stream[0].part(b'data: {"id":1,"result":1}\n\n')
        await asked.say(202)

    async with Place(do).open() as place, linked(place.url, OldSseLink) as link:
        await link.send(request("ask", 1))
        question = await link.receive()
        assert isinstance(question, Request)
        await link.send(said(result(question.id)))
        found, sentence, _ = failure(await link.receive())
        assert found == 1
        assert "cannot be read" in sentence
        assert link.invalid_messages.count == 2


async def why_not(answer: bytes | None, *, status: int = 200, kind: str = EVENTS) -> str:
    """Why the link cannot be opened."""

    async def do(asked: Asked) -> None:
        await asked.head(status, {"content-type": kind})
        if answer is None:
            await asyncio.Event().wait()
        elif answer:
            await asked.part(answer)
        await asked.end()

    async with Place(do).open() as place:
        with pytest.raises(e.CarryError) as raised:
            await linked(place.url, OldSseLink).__aenter__()
        return raised.value.message


@pytest.mark.parametrize(
    "endpoint",
    ["http://evil.example/messages?key=hunter2", "//evil.example/m", "https://127.0.0.1/m", "h://"],
)
async def test_an_endpoint_elsewhere_is_not_used(endpoint):
    sentence = await why_not(named(endpoint))
    assert sentence.endswith("names an address elsewhere for messages, which is not used.")


async def test_what_is_no_such_server_is_said_to_be_none(monkeypatch):
    assert "(404)" in await why_not(b"", status=404)
    assert "text/html, not with a stream" in await why_not(b"<h1>", kind="text/html")
    assert "ended the stream" in await why_not(b"data: {}\n\n")
    monkeypatch.setattr("folkmoot.mcp.client.oldsse.ENDPOINT_SECONDS", 0.05)
    assert "does not say where messages go" in await why_not(None)
