"""Streamable HTTP for clients of the handshake era, in front of a server that has no HTTP."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection, MessageEnvelope
from folkmoot.core.message import Notification, Request, Response
from folkmoot.core.session import ANONYMOUS, SessionState
from folkmoot.core.strict import Limits
from folkmoot.core.transport import SseMetadata, TransportContext
from folkmoot.mcp.carrier import Carrier
from folkmoot.mcp.server.streams import MOST_EVENTS
from tests.mcp.server.played import (
    Events,
    Fronted,
    Steps,
    fronted,
    held_up,
    initialize,
    text_of,
    tool,
    until,
)
from tests.peers.clients import Ears

VERSION = {"mcp-protocol-version": "2025-11-25"}


async def test_the_official_client_calls_is_asked_and_hears_notifications(http):
    ears, steps = Ears(), Steps()
    transport = streamable_http_client(http.url)
    async with Client(transport, mode="legacy", **ears.callbacks()) as client:
        assert client.protocol_version == "2025-11-25"
        assert "echo" in [each.name for each in (await client.list_tools()).tools]
        asked = {"steps": 5, "text": "done"}
        said = await client.call_tool("progress", asked, progress_callback=steps)
        assert (text_of(said), steps) == ("done", [0, 1, 2, 3, 4])
        assert text_of(await client.call_tool("ask", {})) == "The model says ✓"
        await client.call_tool("log", {"text": "noted"})
        await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(20)))
    assert "noted" in str(ears.notices)
    # The client ends its session when it leaves.
    await until(lambda: http.front.sessions == 1)


@pytest.mark.requirement("proxy.mcp-headers", "proxy.context-end-to-end", "proxy.http-headers")
async def test_a_message_carries_its_session_and_what_http_says_of_it(http):
    sent = {**VERSION, "authorization": "Bearer x", "cookie": "no=1", "x-odd": "1"}
    await http.ask("POST", tool("echo"), sent)
    opening, _, called = http.played.got
    assert opening.context.session is ANONYMOUS
    context = called.context
    assert context.direction is MessageDirection.CLIENT_TO_SERVER
    assert context.session.session_id.value == http.session
    assert context.session.state is SessionState.UNINITIALIZED
    said = context.transport.metadata
    assert (said.method, said.uri) == ("POST", "/mcp")
    passed = {name: said.headers.get(name) for name in (*sent, "mcp-session-id")}
    ours = {**sent, "mcp-session-id": http.session}
    assert passed == ours | {"cookie": None, "x-odd": None}
    connection = context.transport.connection
    assert connection.remote_addr.host == "127.0.0.1"
    # It is on the way to the server, and cannot leave to the client.
    with pytest.raises(e.Misrouted):
        await http.server.send_envelope(called)


async def test_an_answer_that_comes_first_is_json_and_its_bytes_are_the_servers():
    raw = b'{ "id":1,"jsonrpc":"2.0", "result":{"odd" : 1.50}, "more":[ ]}'

    async def serve(carrier: Carrier) -> None:
        opening = await carrier.receive()
        assert isinstance(opening, Request)
        await carrier.send(Response(id=opening.id, result={}))
        await carrier.receive()
        await carrier.receive()
        await carrier.send(Response(id=1, result={}, raw=raw))
        with pytest.raises(e.TransportClosed):
            await carrier.receive()

    async with fronted(serve) as http:
        await http.open()
        answer = await http.ask("POST", tool("echo"))
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["mcp-session-id"] == http.session
        assert answer.content == raw


async def test_a_client_that_takes_only_events_or_only_json_gets_that(http):
    events_only = {"accept": "text/event-stream"}
    async with http.stream("POST", tool("echo", text="a"), events_only) as events:
        assert events.answer.headers["content-type"] == "text/event-stream"
        [(event_id, message)] = await events.rest()
        assert text_of(message) == "a"
        assert event_id
    call = tool("progress", 2, token="t", steps=3, text="b")
    answer = await http.ask("POST", call, {"accept": "application/json"})
    assert answer.headers["content-type"] == "application/json"
    assert text_of(answer) == "b"


REFUSED: list[tuple[str, Any, dict[str, str], int, int]] = [
    ("POST", tool("echo"), {"accept": "text/html"}, 406, -32600),
    ("POST", tool("echo"), {"accept": ""}, 406, -32600),
    ("GET", None, {"accept": "application/json"}, 406, -32600),
    ("POST", tool("echo"), {"content-type": "text/plain"}, 415, -32600),
    ("POST", b"{", {}, 400, -32700),
    ("POST", b"[]", {}, 400, -32600),
    ("POST", b'{"jsonrpc":"2.0","id":1,"method":""}', {}, 400, -32600),
    ("POST", tool("echo"), {"mcp-protocol-version": "2020-01-01"}, 400, -32022),
    ("POST", tool("echo"), {"mcp-protocol-version": "nonsense"}, 400, -32022),
    ("GET", None, {"mcp-protocol-version": "nonsense"}, 400, -32022),
    ("POST", tool("echo"), {"mcp-session-id": ""}, 404, -32600),
    ("POST", tool("echo"), {"mcp-session-id": "00"}, 404, -32600),
    ("GET", None, {"mcp-session-id": "00"}, 404, -32600),
    ("DELETE", None, {"mcp-session-id": "00"}, 404, -32600),
    ("POST", initialize(), {"mcp-session-id": "00"}, 404, -32600),
    ("GET", None, {"last-event-id": "7-1"}, 400, -32600),
    ("GET", None, {"last-event-id": "nonsense"}, 400, -32600),
    ("PUT", tool("echo"), {}, 405, -32600),
    ("GET", None, {"mcp-protocol-version": "2026-07-28"}, 405, -32600),
]


async def test_what_cannot_be_served_is_refused_as_the_specification_says(http):
    before = len(http.played.got)
    for case in REFUSED:
        method, message, headers, status, code = case
        answer = await http.ask(method, message, headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), case
    assert len(http.played.got) == before


async def test_without_a_session_only_initialize_is_served(client):
    for method, message in (("POST", tool("echo", 5)), ("GET", None), ("DELETE", None)):
        answer = await client.ask(method, message)
        assert answer.status_code == 400
        assert answer.json()["error"]["data"]["code"] == "session_required"
        assert answer.json()["id"] == (5 if message else None)


@pytest.mark.settings(limits=Limits(message_bytes=2000))
async def test_a_message_that_is_too_large_is_refused(http):
    answer = await http.ask("POST", tool("echo", text="x" * 3000))
    assert answer.status_code == 413


@pytest.mark.requirement("proxy.correlates-responses")
async def test_an_id_that_is_open_cannot_be_used_again_but_the_same_as_text_is_another(http):
    first = await begun(http, tool("wait", 9, text="a"))
    again = await http.ask("POST", tool("echo", 9))
    assert again.status_code == 400
    other = await http.ask("POST", tool("echo", "9", text="b"))
    assert other.json()["id"] == "9"
    http.played.go_on.set()
    assert (await first).json()["result"]["content"][0]["text"] == "a"


@pytest.mark.requirement("mcp.delete-after-answers")
async def test_what_is_open_ends_without_an_error_before_delete_ends_the_session(http):
    waiting = await begun(http, tool("wait"))
    async with http.stream("GET", headers=VERSION) as events:
        assert (await events.next()).data == b""
        assert (await http.ask("DELETE")).status_code == 204
        assert await events.rest() == []
    # A client that leaves has stopped listening: an error now would end it with one.
    answer = await waiting
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "text/event-stream"
    assert (await http.ask("POST", tool("echo"))).status_code == 404


async def test_a_server_that_cannot_be_had_is_told_to_the_client():
    async def serve(carrier: Carrier) -> None:
        raise e.ServerUnreachable("There is no such program.")

    async with fronted(serve) as http:
        answer = await http.ask("POST", initialize())
        assert answer.status_code == 502
        assert answer.json()["error"]["message"] == "There is no such program."
        assert answer.json()["id"] == 0
        assert http.front.sessions == 0


@pytest.mark.settings(most=1)
async def test_no_more_sessions_are_opened_than_there_may_be(http):
    session, http.session = http.session, ""
    assert (await http.ask("POST", initialize())).status_code == 503
    # One that is ended from inside is gone for its client, and leaves its place.
    for each in (session, "00"):
        http.front.end(each)
    assert (await http.ask("POST", tool("echo"), {"mcp-session-id": session})).status_code == 404
    await http.open()


@pytest.mark.requirement("proxy.sse-last-event-id")
async def test_each_stream_is_resumed_from_its_own_last_event_and_goes_on_live(http: Fronted):
    # Two requests whose streams break after their first progress.
    seen = {}
    for name, token in ((1, "one"), (2, "two")):
        async with http.stream("POST", tool("wait", name, token, text=token), VERSION) as s:
            assert (await s.next()).data == b""
            seen[token], message = await s.message()
            assert message["params"]["progressToken"] == token
    await settled(http.server)
    for number in (1, 2):
        for token in ("one", "two"):
            await http.server.send(progress(token, number))
    async with http.stream("GET", headers={"last-event-id": seen["two"]}) as events:
        for number in (1, 2):
            _, message = await events.message()
            assert message["params"] == {"progressToken": "two", "progress": number}
        await http.server.send(progress("two", 3))
        assert (await events.message())[1]["params"]["progress"] == 3
        http.played.go_on.set()
        [(_, message)] = await events.rest()
        assert (message["id"], message["result"]["content"][0]["text"]) == (2, "two")
    # The other one is done by now, and still to be had as a whole.
    async with http.stream("GET", headers={"last-event-id": seen["one"]}) as events:
        *told, (last, message) = await events.rest()
        assert [each["params"]["progress"] for _, each in told] == [1, 2]
        assert (message["id"], message["result"]["content"][0]["text"]) == (1, "one")
    async with http.stream("GET", headers={"last-event-id": last}) as events:
        assert await events.rest() == []


async def begun(http: Fronted, call: Any) -> asyncio.Future[Any]:
    """The first call of a session, once the server has it."""
    asking = asyncio.ensure_future(http.ask("POST", call))
    await http.played.until(lambda: len(http.played.got) == 3)
    return asking


def progress(token: str, number: int) -> Notification:
    params = {"progressToken": token, "progress": number}
    return Notification(method="notifications/progress", params=params)


async def settled(carrier: Carrier, *, listening: bool = False) -> None:
    """Wait until the front knows that every client has left, or that one listens."""
    await until(lambda: bool(carrier.listeners) is listening)


@pytest.mark.requirement("proxy.sse-last-event-id")
async def test_the_listening_stream_is_resumed_and_what_came_meanwhile_follows(http):
    async with http.stream("GET", headers=VERSION) as events:
        first = await events.next()
        assert first.event_id
        await http.server.send(note(0))
        last, message = await events.message()
        assert message["params"]["data"] == 0
    await settled(http.server)
    await http.server.send(note(1))
    async with http.stream("GET", headers={"last-event-id": first.event_id}) as events:
        assert [await heard(events) for _ in "ab"] == [0, 1]
    await settled(http.server)
    async with http.stream("GET", headers={"last-event-id": last}) as events:
        assert await heard(events) == 1
        # Another listener takes its place.
        async with http.stream("GET") as other:
            await http.server.send(note(2))
            assert (await other.message())[1]["params"]["data"] == 2
        assert await events.rest() == []


@pytest.mark.requirement("proxy.sse-last-event-id")
async def test_no_stream_takes_the_event_id_of_another_session_or_process_for_its_own():
    ids = []
    for _ in range(2):
        async with fronted() as http:
            await http.open()
            async with http.stream("GET", headers=VERSION) as events:
                ids.append((await events.next()).event_id or "")
                await http.server.send(note(0))
                assert await heard(events) == 0
            await settled(http.server)
            name, _, _ = ids[-1].rpartition("-")
            for unknown in (*ids[:-1], "0-1", "0-57", f"{name}-2", f"{name}-{'9' * 99}"):
                refused = await http.ask("GET", None, {"last-event-id": unknown})
                assert refused.status_code == 400, unknown
                assert refused.json()["error"]["data"]["code"] == "event_unknown"
            async with http.stream("GET", headers={"last-event-id": ids[-1]}) as events:
                assert await heard(events) == 0


@pytest.mark.requirement("proxy.sse-last-event-id")
async def test_what_is_not_kept_any_more_is_refused_and_not_skipped(http):
    changed = Notification(method="notifications/tools/list_changed")
    async with http.stream("GET", headers=VERSION) as events:
        first = (await events.next()).event_id or ""
        for _ in range(MOST_EVENTS + 1):
            await http.server.send(changed)
            last, _ = await events.message()
    await settled(http.server)
    refused = await http.ask("GET", None, {"last-event-id": first})
    assert refused.status_code == 400
    assert "What was not received of it is lost" in refused.json()["error"]["message"]
    await http.server.send(note(1))
    async with http.stream("GET", headers={"last-event-id": last or ""}) as events:
        assert await heard(events) == 1


def note(number: int) -> Notification:
    return Notification(method="notifications/message", params={"level": "info", "data": number})


async def heard(events: Events) -> Any:
    """The data of the next notification."""
    return (await events.message())[1]["params"]["data"]


@pytest.mark.requirement("proxy.sse-fields")
async def test_an_event_that_came_with_an_id_a_type_and_a_retry_leaves_with_them(http):
    async with http.stream("GET") as events:
        await settled(http.server, listening=True)
        context = http.server.context_of(MessageDirection.SERVER_TO_CLIENT)
        for number in (1, 2):
            said = SseMetadata("up", f"up:{number}", "message", 2.5)
            envelope: MessageEnvelope[Any] = MessageEnvelope(note(number), context)
            await http.server.send_envelope(envelope.with_transport(TransportContext(said)))
        event = await events.next()
        assert (event.event_id, event.event_type, event.retry) == ("up:1", "message", 2.5)
    await settled(http.server)
    async with http.stream("GET", headers={"last-event-id": "up:1"}) as events:
        assert (await events.next()).event_id == "up:2"


async def test_what_the_server_says_goes_to_the_listener_or_an_open_request_or_waits(http):
    await http.server.send(note(1))
    async with http.stream("POST", tool("wait", text="end")) as asked:
        assert (await asked.message())[1]["params"]["data"] == 1
        await http.server.send(note(2))
        assert (await asked.message())[1]["params"]["data"] == 2
        async with http.stream("GET") as events:
            await http.server.send(note(3))
            assert await heard(events) == 3
        http.played.go_on.set()
        [(_, message)] = await asked.rest()
        assert message["result"]["content"][0]["text"] == "end"


async def test_notifications_that_nobody_hears_stay_bounded_and_a_request_is_answered(http):
    for number in range(1000):
        await http.server.send(note(number))
    async with http.stream("GET") as events:
        assert [await heard(events) for _ in range(256)] == list(range(744, 1000))
    await settled(http.server)
    for number in range(1000):
        await http.server.send(note(number))
    # Each request takes the place of a notification; then there is room for none.
    for number in range(256):
        await http.server.send(Request(id=number, method="roots/list"))
    answer = await http.played.ask(http.server, Request(id="late", method="roots/list"))
    assert answer.error.code == -32000  # type: ignore[union-attr]
    await http.server.send(note(1000))
    async with http.stream("GET") as events:
        got = [(await events.message())[1] for _ in range(256)]
        assert [each["id"] for each in got] == list(range(256))


async def test_a_request_that_is_cancelled_and_not_answered_ends_all_the_same(http):
    waiting = await begun(http, tool("wait", 4))
    cancel = {"requestId": 4, "reason": "no more"}
    gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}
    assert (await http.ask("POST", gone)).status_code == 202
    assert (await waiting).json()["error"]["data"]["code"] == "request_cancelled"
    assert http.played.got[-1].message.method == "notifications/cancelled"


async def test_a_client_that_vanishes_cancels_nothing_and_its_session_goes_on(http):
    asked = await begun(http, tool("wait", 5))
    asked.cancel()
    await settled(http.played.carriers[0])
    http.played.go_on.set()
    answer = await http.ask("POST", tool("echo", 6, text="still here"))
    assert answer.json()["result"]["content"][0]["text"] == "still here"
    methods = [getattr(each.message, "method", "") for each in http.played.got]
    assert "notifications/cancelled" not in methods


async def test_a_listener_that_does_not_read_has_the_server_wait(http):
    big = Notification(method="notifications/message", params={"data": "x" * 100_000})
    async with http.stream("GET") as events:
        await settled(http.server, listening=True)
        await held_up(lambda: http.server.send(big), events)


async def test_a_session_costs_less_than_a_hundred_kilobytes(client):
    count = 60
    await client.ask("POST", initialize())
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(count):
            await client.ask("POST", initialize())
        gc.collect()
        cost = tracemalloc.get_traced_memory()[0] / count
    finally:
        tracemalloc.stop()
    assert client.front.sessions == count + 1
    assert cost < 100_000


async def test_stopping_ends_streams_and_sessions_at_once(http):
    async with http.stream("GET") as events:
        await settled(http.server, listening=True)
        http.front.stop()
        assert await events.rest() == []
    assert (await http.ask("POST", tool("echo"))).status_code == 404
    http.session = ""
    assert (await http.ask("POST", initialize())).status_code == 503
