"""Clients of the stateless era share one conversation with the server, and never each other's."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from folkmoot.core import errors as e
from folkmoot.core.message import (
    ErrorObject,
    Notification,
    Request,
    Response,
)
from folkmoot.core.session import Era
from folkmoot.mcp.carrier import Carrier
from tests.mcp.server.played import Http, Steps, fronted, modern, text_of
from tests.mcp.server.played import modern_tool as tool
from tests.mcp_harness import MODERN


async def test_the_official_client_gets_progress_without_a_session(client):
    steps = Steps()
    async with Client(streamable_http_client(client.url), mode="auto") as sdk:
        assert sdk.protocol_version == MODERN
        assert len((await sdk.list_tools()).tools) > 1
        asked = {"steps": 3, "text": "done"}
        said = await sdk.call_tool("progress", asked, progress_callback=steps)
        assert (text_of(said), steps) == ("done", [0, 1, 2])
    assert client.front.sessions == 0
    context = client.played.got[-1].context
    assert context.session.era is Era.STATELESS
    assert context.transport.metadata.headers.get("mcp-method") == "tools/call"


async def test_the_official_client_listens_to_what_changes(client):
    async with (
        Client(streamable_http_client(client.url), mode=MODERN) as sdk,
        sdk.listen(tools_list_changed=True) as listening,
    ):
        assert type(await anext(listening)).__name__ == "ToolsListChanged"


@pytest.mark.requirement("proxy.correlates-responses")
async def test_clients_with_equal_ids_and_tokens_get_their_own_answers_and_no_others():
    async with fronted() as http, httpx2.AsyncClient(timeout=30) as another:
        clients = [http, Http(http.url, another)]
        for round_ in range(10):

            async def ask(client: Http, name: str) -> None:
                message, headers = tool("progress", 1, "t", steps=2, text=name)
                async with client.stream("POST", message, headers) as events:
                    *told, (_, answer) = await events.rest()
                assert [each["params"]["progressToken"] for _, each in told] == ["t", "t"]
                assert answer["id"] == 1
                assert answer["result"]["content"][0]["text"] == name

            await asyncio.gather(
                *(ask(client, f"{round_} {place}") for place, client in enumerate(clients))
            )
        assert len(http.played.carriers) == 1
        assert len({each.message.id for each in http.played.got}) == 20


@pytest.mark.requirement("proxy.unknown-members")
async def test_only_the_id_and_the_token_change_and_every_other_byte_stays():
    raw = (
        b'{ "odd" : [1.50, "\\u00e4" ],"params":{"name":"echo", "_meta":{"progressToken": "t",'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28" ,"x" : 1e2}},"method":'
        b'"tools/call", "id" :"one","jsonrpc":"2.0"}'
    )
    answer = b'{"more": 1.0, "result":{"a" :"\\u00e4"},"id": 1, "jsonrpc":"2.0"}'

    async def serve(carrier: Carrier) -> None:
        got = await carrier.receive()
        assert got.raw == (
            b'{"odd":[1.50, "\\u00e4" ],"params":{"name":"echo","_meta":{"progressToken":1,'
            b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":1e2}},"method":'
            b'"tools/call","id":1,"jsonrpc":"2.0"}'
        )
        assert isinstance(got, Request)
        assert got.id == got.params["_meta"]["progressToken"] == 1  # type: ignore[index,call-overload]
        await carrier.send(Response(id=1, result={"a": "ä"}, extra={"more": 1.0}, raw=answer))
        with pytest.raises(e.TransportClosed):
            await carrier.receive()

    async with fronted(serve) as http:
        _, headers = tool("echo")
        got = await http.ask("POST", raw, headers)
        assert got.content == (b'{"more":1.0,"result":{"a" :"\\u00e4"},"id":"one","jsonrpc":"2.0"}')


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


async def test_headers_that_do_not_say_what_the_request_says_are_refused():
    message, headers = tool("echo", 7)
    listen, listening = modern("subscriptions/listen", 7)
    without_meta = {**message, "params": {"name": "echo"}}
    cases: list[tuple[Any, dict[str, str], int, int]] = [
        (message, {**headers, "mcp-method": "tools/list"}, 400, -32020),
        (message, {**headers, "mcp-method": ""}, 400, -32020),
        (message, {**headers, "mcp-name": "other"}, 400, -32020),
        (message, {**headers, "mcp-name": encoded("other")}, 400, -32020),
        (message, {**headers, "mcp-name": "=?base64?!?="}, 400, -32020),
        (message, {**headers, "mcp-protocol-version": "2027-01-01"}, 400, -32020),
        (without_meta, headers, 400, -32602),
        (message, {**headers, "accept": "text/html"}, 406, -32600),
        (message, {**headers, "content-type": "text/plain"}, 415, -32600),
        ({"jsonrpc": "2.0", "id": 7, "result": {}}, headers, 400, -32600),
        (b"nonsense", headers, 400, -32700),
        (listen, {**listening, "accept": "application/json"}, 406, -32600),
    ]
    async with fronted() as http:
        for case in cases:
            said, named, status, code = case
            answer = await http.ask("POST", said, named)
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), case
        assert http.played.got == []
        right = await http.ask("POST", message, {**headers, "mcp-name": encoded("echo")})
        assert right.json()["id"] == 7


@pytest.mark.parametrize(
    ("code", "status"), [(-32601, 404), (-32602, 400), (-32022, 400), (-32603, 200), (-1, 200)]
)
async def test_an_error_of_the_server_has_the_status_that_belongs_to_it(code, status):
    async def serve(carrier: Carrier) -> None:
        asked = await carrier.receive()
        assert isinstance(asked, Request)
        await carrier.send(Response(id=asked.id, error=ErrorObject(code, "no")))
        with pytest.raises(e.TransportClosed):
            await carrier.receive()

    async with fronted(serve) as http:
        answer = await http.ask("POST", *modern("no/such", "x"))
        assert (answer.status_code, answer.json()["id"]) == (status, "x")
        assert "mcp-session-id" not in answer.headers


async def test_a_client_that_goes_away_cancels_its_request_and_no_other(client):
    staying = asyncio.ensure_future(client.ask("POST", *tool("wait", 1, text="stayed")))
    await client.played.until(lambda: len(client.played.got) == 1)
    leaving = asyncio.ensure_future(client.ask("POST", *tool("wait", 1)))
    await client.played.until(lambda: len(client.played.got) == 2)
    leaving.cancel()
    await client.played.until(lambda: len(client.played.got) == 3)
    cancelled = client.played.got[2].message
    assert cancelled.method == "notifications/cancelled"
    assert cancelled.params == {"requestId": client.played.got[1].message.id}
    client.played.go_on.set()
    answer = await staying
    assert answer.json()["result"]["content"][0]["text"] == "stayed"
    assert len(client.played.got) == 3


async def test_a_notification_is_accepted_and_a_cancellation_by_id_alone_is_not_believed(client):
    named = {"mcp-protocol-version": MODERN}
    for method in ("notifications/cancelled", "notifications/x"):
        said = {"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}}
        assert (await client.ask("POST", said, named)).status_code == 202
    await client.played.until(lambda: len(client.played.got) == 1)
    assert client.played.got[0].message.method == "notifications/x"


async def test_the_server_cannot_ask_these_clients_anything_and_is_told_so(client):
    await client.ask("POST", *tool("echo"))
    server = client.played.carriers[0]
    answer = await client.played.ask(server, Request(id="q", method="roots/list"))
    assert isinstance(answer.error, ErrorObject)


async def test_what_belongs_to_no_request_reaches_nobody_when_there_are_several(client):
    waiting = [
        asyncio.ensure_future(client.ask("POST", *tool("wait", n, text=str(n)))) for n in "ab"
    ]
    await client.played.until(lambda: len(client.played.got) == 2)
    said = Notification(method="notifications/message", params={"data": "whose?"})
    await client.played.carriers[0].send(said)
    client.played.go_on.set()
    for name, answer in zip("ab", await asyncio.gather(*waiting), strict=True):
        assert "whose?" not in answer.text
        assert answer.json()["id"] == name


async def test_a_conversation_that_has_ended_is_begun_again_and_what_was_open_is_answered():
    served = 0

    async def serve(carrier: Carrier) -> None:
        nonlocal served
        served += 1
        asked = await carrier.receive()
        if served == 2:
            await carrier.send(Response(id=asked.id, result={}))  # type: ignore[union-attr]
            with pytest.raises(e.TransportClosed):
                await carrier.receive()

    async with fronted(serve) as http:
        first = await http.ask("POST", *tool("echo", "a"))
        assert (first.status_code, first.json()["id"]) == (502, "a")
        second = await http.ask("POST", *tool("echo", "b"))
        assert (second.status_code, second.json()["id"]) == (200, "b")
        assert served == 2


async def test_a_client_that_does_not_read_is_cut_off_and_the_others_are_served(client):
    message, headers = modern("subscriptions/listen", 1)
    async with client.stream("POST", message, headers) as slow:
        await slow.message()
        server, asked = client.played.carriers[0], client.played.got[0].message
        meta = {"io.modelcontextprotocol/subscriptionId": asked.id}
        big = {"_meta": meta, "x": "x" * 1_000_000}
        said = Notification(method="notifications/resources/updated", params=big)

        def cut() -> bool:
            last = client.played.got[-1].message
            return isinstance(last, Notification) and last.params == {"requestId": asked.id}

        while not cut():
            await server.send(said)
            await asyncio.sleep(0)
        answer = await client.ask("POST", *tool("echo", text="quick"))
        assert answer.json()["result"]["content"][0]["text"] == "quick"


WITH_PARAMS: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"region": "eu"}, {"mcp-param-region": "eu"}, ""),
    ({"region": "eu"}, {"Mcp-Param-Region": encoded("eu")}, ""),
    ({"region": "Łódź"}, {"mcp-param-region": encoded("Łódź")}, ""),
    ({"load": {"count": 42}}, {"mcp-param-count": "42"}, ""),
    ({"load": {"count": 42}}, {"mcp-param-count": "42.0"}, ""),
    ({"region": None}, {}, ""),
    ({"other": "eu"}, {}, ""),
    ({"region": ["eu"]}, {}, ""),
    ({"region": "eu"}, {}, "mcp-param-region is missing; region is given"),
    ({"load": {"count": 0}}, {}, "mcp-param-count is missing; load.count is given"),
    ({"region": "eu"}, {"mcp-param-region": "us"}, "mcp-param-region does not match"),
    ({"region": "eu"}, {"mcp-param-region": "=?base64?%?="}, "mcp-param-region does not match"),
    ({"region": None}, {"mcp-param-region": "eu"}, "mcp-param-region does not match"),
    ({}, {"mcp-param-region": "eu"}, "mcp-param-region does not match"),
    ({"load": {"count": 42}}, {"mcp-param-count": "42.5"}, "mcp-param-count does not match"),
    ({"load": {"count": True}}, {"mcp-param-count": "1"}, "mcp-param-count does not match"),
]


@pytest.mark.requirement("mcp.param-headers")
async def test_headers_that_repeat_arguments_are_held_against_them(client):
    unlisted, headers = tool("ship", region="eu")
    assert (await client.ask("POST", unlisted, headers)).status_code == 200
    await client.ask("POST", *modern("tools/list"))
    for arguments, repeated, wrong in WITH_PARAMS:
        message, headers = tool("ship", **arguments)
        before = len(client.played.got)
        answer = await client.ask("POST", message, headers | repeated)
        told = answer.json().get("error", {})
        assert answer.status_code == (400 if wrong else 200), (arguments, repeated)
        assert told.get("code") == (-32020 if wrong else None)
        assert wrong in told.get("message", "")
        assert (len(client.played.got) == before) is bool(wrong)


@pytest.mark.requirement("mcp.param-headers")
async def test_the_official_client_repeats_arguments_in_headers(client):
    async with Client(streamable_http_client(client.url), mode=MODERN) as sdk:
        await sdk.list_tools()
        said = await sdk.call_tool("ship", {"region": "Łódź", "load": {"count": 7}})
        assert not said.is_error
