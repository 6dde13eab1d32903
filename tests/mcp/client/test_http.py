"""The link to a Streamable HTTP server, against real ones of both eras."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import ErrorObject, Notification, Request, Response
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import Headers, SseMetadata, TransportContext
from folkmoot.mcp.client.http import HttpLink, HttpTarget
from tests.certificates import certificate
from tests.mcp.client.places import Asked, Place, agree, event, never, result, sdk_http, told
from tests.mcp.client.saying import answer, ask, failure, linked, notice, refusal, request, said
from tests.mcp.server.played import until
from tests.mcp_harness import META

HELLO = request(
    "initialize",
    0,
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)
MARGIN = TimingContext(0, 0)


async def shake_hands(link: HttpLink) -> None:
    await ask(link, HELLO)
    await link.send(notice("notifications/initialized"))


async def answers(link: HttpLink, count: int) -> dict[Any, Any]:
    """The results of the next answers, by their ids."""
    found = [await answer(link) for _ in range(count)]
    return {each.id: each.result for each in found}


def call(id_: int | str, era: str, **arguments: Any) -> Request:
    meta = {"_meta": META | {"progressToken": "p"}}
    if era == "handshake":
        meta = {"_meta": {"progressToken": "p"}}
    return request("tools/call", id_, name="wörter", arguments=arguments, **meta)


@pytest.mark.requirement("proxy.mcp-headers", "proxy.http-headers", "proxy.connection-info")
async def test_a_session_of_the_handshake_era_from_its_beginning_to_its_end():
    async with sdk_http(json_response=True) as url, linked(url) as link:
        await link.send(HELLO)
        context = (await link.receive_envelope()).context
        assert context.direction is MessageDirection.SERVER_TO_CLIENT
        metadata, connection = context.transport.metadata, context.transport.connection
        assert (metadata.method, metadata.uri, metadata.status) == ("POST", url, 200)
        assert metadata.headers.get("mcp-session-id") == link.server_session
        assert metadata.headers.get("content-type") == "application/json"
        assert str(connection.remote_addr) in url
        assert connection.local_addr is not None
        await link.send(notice("notifications/initialized"))
        # The server refuses what comes without its session and its version.
        for number in range(3):
            await link.send(call(number, "handshake", number=number))
        found = await answers(link, 3)
        told = {id_: json.loads(each["content"][0]["text"]) for id_, each in found.items()}
        assert told == {number: {"name": "wörter", "number": number} for number in range(3)}
        assert link.version == "2025-11-25"


@pytest.mark.requirement("proxy.sse-fields")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_what_belongs_to_a_request_comes_before_its_answer_in_both_eras(era):
    async with sdk_http() as url, linked(url) as link:
        if era == "handshake":
            await shake_hands(link)
        await link.send(call("x", era, progress=True))
        first, second = await link.receive_envelope(), await link.receive_envelope()
        assert isinstance(first.message, Notification)
        assert first.message.method == "notifications/progress"
        assert isinstance(second.message, Response)
        assert second.message.id == "x"
        one, other = (each.context.transport.metadata for each in (first, second))
        assert (one.stream_id, one.event_type) == (other.stream_id, "message")


@pytest.mark.requirement("proxy.mcp-headers")
async def test_a_stateless_message_is_repeated_in_the_headers_the_server_checks():
    async with sdk_http() as url, linked(url) as link:
        assert (await ask(link, request("tools/list", 1, _meta=META))).result
        called = await ask(link, call(2, "stateless", region="süd", deep={"count": 7}))
        assert called.result["content"]
        await link.send(notice("notifications/roots/list_changed", _meta=META))
        assert link.server_session is None


async def test_an_error_with_a_status_of_its_own_comes_as_the_server_said_it():
    async with sdk_http() as url, linked(url) as link:
        await link.send(request("no/such/method", 5, _meta=META))
        envelope = await link.receive_envelope()
        assert isinstance(envelope.message, Response)
        assert envelope.message.id == 5
        assert envelope.message.raw is not None
        metadata = envelope.context.transport.metadata
        assert metadata.status == 404


async def test_cancelling_in_the_stateless_era_closes_the_connection_of_the_request():
    gone = asyncio.Event()

    async def do(asked: Asked) -> None:
        await talk_on(asked, gone)

    async with Place(do).open() as place, linked(place.url) as link:
        await link.send(call(1, "stateless"))
        await until(lambda: bool(place.asked))
        for _ in range(2):
            await link.send(notice("notifications/cancelled", requestId=1))
        await gone.wait()
        assert len(place.asked) == 1
        assert not link.waiting


async def talk_on(asked: Asked, gone: asyncio.Event) -> None:
    """Answer with a stream that goes on until its client is gone."""
    await asked.events(end=False)
    try:
        while True:
            await asked.part(b": still here\n\n")
            await asyncio.sleep(0.01)
    finally:
        gone.set()


async def test_a_cancelled_request_of_the_handshake_era_gets_no_answer_made_up():
    async with sdk_http() as url, linked(url) as link:
        await shake_hands(link)
        await link.send(call(1, "handshake", wait=True))
        await link.send(call("before", "handshake"))
        assert "before" in await answers(link, 1)
        await link.send(notice("notifications/cancelled", requestId=1))
        await link.send(call(2, "handshake"))
        found = await answers(link, 1)
        while 2 not in found:
            # A server may answer what was cancelled, in words of its own.
            assert set(found) == {1}
            found = await answers(link, 1)


@pytest.mark.requirement("proxy.sse-last-event-id", "proxy.sse-fields")
async def test_every_stream_that_breaks_is_resumed_from_its_own_last_event():
    async def do(asked: Asked) -> None:
        if asked.method == "POST":
            name = asked.message["id"]
            first = event(None, f"{name}-0", retry=60)
            await asked.events(first, event(told("part", of=name), f"{name}-1"), end=False)
            asked.hang_up()
            return
        name, _, number = asked.headers["last-event-id"].partition("-")
        if number == "1":
            await asked.events(event(told("part", of=name), f"{name}-2"))
        else:
            await asked.events(event(result(name), f"{name}-3"))

    async with Place(do).open() as place, linked(place.url) as link:
        for name in "ab":
            await link.send(request("slow", name))
        seen = [await link.receive_envelope() for _ in range(6)]
        by_stream: dict[str, list[SseMetadata]] = {}
        for each in seen:
            metadata = each.context.transport.metadata
            by_stream.setdefault(metadata.stream_id, []).append(metadata)
        assert len(by_stream) == 2
        for events in by_stream.values():
            numbered = [f"{str(events[0].event_id)[0]}-{n}" for n in (1, 2, 3)]
            assert [each.event_id for each in events] == numbered
            assert [each.last_event_id for each in events] == numbered
        resumed = sorted(asked.headers["last-event-id"] for asked in place.of("GET"))
        assert resumed == ["a-1", "a-2", "b-1", "b-2"]
        assert not link.waiting


async def test_a_stream_that_cannot_be_resumed_is_an_error_for_who_asked():
    async def do(asked: Asked) -> None:
        if asked.method == "GET":
            await asked.say(405)
            return
        method = asked.message["method"]
        part = event(told("part"), "1" if method == "named" else None)
        await asked.events(part, end=method == "ends")
        if method != "ends":
            asked.hang_up()

    async with Place(do).open() as place, linked(place.url) as link:
        for method in ("ends", "breaks", "named"):
            await link.send(request(method, method))
            await link.receive()
            found, sentence, data = failure(await link.receive())
            assert found == method
            assert data["code"] == "server_unreachable"
            assert place.url in sentence
        assert data["status"] == 405


async def test_the_servers_own_stream_opens_after_the_handshake_and_resumes_where_it_broke() -> (
    None
):
    async def do(asked: Asked) -> None:
        if asked.method == "GET":
            count = len(place.of("GET"))
            news = event(told("news", number=count), str(count), retry=50)
            await asked.events(news, end=bool(count % 2))
            asked.hang_up()
        elif "id" in asked.message:
            await asked.result({"protocolVersion": "2025-06-18"}, mcp_session_id="s")
        else:
            await asked.say(202)

    async with Place(do).open() as place, linked(place.url) as link:
        await shake_hands(link)
        news = [await link.receive() for _ in range(3)]
        assert [each.params for each in news] == [{"number": n} for n in (1, 2, 3)]  # type: ignore[union-attr]
        first, second, *_ = place.of("GET")
        assert "last-event-id" not in first.headers
        assert second.headers["last-event-id"] == "1"
        for each in (first, *place.of("POST")[1:]):
            assert each.headers["mcp-session-id"] == "s"
            assert each.headers["mcp-protocol-version"] == "2025-06-18"
        assert "mcp-protocol-version" not in place.of("POST")[0].headers
        await link.close()
        assert place.of("DELETE")[0].headers["mcp-session-id"] == "s"


async def test_the_order_of_what_wants_no_answer_is_kept():
    async def do(asked: Asked) -> None:
        # The sooner it was sent, the longer it takes.
        await asyncio.sleep(0.03 - asked.message["params"]["number"] * 0.01)
        order.append(asked.message["params"]["number"])
        await asked.say(202)

    order: list[int] = []
    async with Place(do).open() as place, linked(place.url) as link:
        for number in range(3):
            await link.send(notice("tick", number=number))
        assert order == [0, 1, 2]


async def test_what_a_client_said_of_itself_goes_on_and_is_never_another_clients():
    async with Place(agree).open() as place, linked(place.url, most_open=1) as link:

        async def send(name: str) -> None:
            headers = Headers((("authorization", name), ("cookie", "no"), ("mcp-session-id", "no")))
            transport = TransportContext.http(headers, "POST", "/mcp")
            context = MessageContext(MARGIN, MessageDirection.CLIENT_TO_SERVER, transport=transport)
            await link.send_envelope(MessageEnvelope(request("who", name), context))

        await asyncio.gather(*(send(name) for name in "abcd"))
        await answers(link, 4)
        for asked in place.asked:
            assert asked.headers["authorization"] == asked.message["id"]
            assert "cookie" not in asked.headers
            assert "mcp-session-id" not in asked.headers
            assert asked.headers["user-agent"].startswith("folkmoot/")


@pytest.mark.requirement("proxy.connection-info")
async def test_tls_is_checked_and_told(tmp_path):
    paths = certificate(tmp_path)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(*paths)
    ours = ssl.create_default_context(cafile=paths[0])

    async with Place(agree).open(theirs) as place:
        url = place.url.replace("http:", "https:")
        async with linked(url, target={"tls": ours}) as link:
            await link.send(request("hello"))
            connection = (await link.receive_envelope()).context.transport.connection
            tls = connection.tls_info
            assert tls.version.startswith("TLSv1")
            assert tls.peer_subject == "commonName=127.0.0.1"
        async with linked(url) as link:
            _, sentence, _ = await refusal(link, request("hello"))
            assert "its certificate is not trusted (self" in sentence
        async with linked(place.url) as link:
            assert (await refusal(link, request("hello")))[2]["code"] == "server_unreachable"


async def test_more_requests_than_may_be_open_wait_for_their_turn():
    free = asyncio.Event()
    most = 0

    async def do(asked: Asked) -> None:
        nonlocal most
        most = max(most, len(place.asked))
        await free.wait()
        await asked.result({})

    async with Place(do).open() as place, linked(place.url, most_open=2) as link:
        await link.send(request("one", 1))
        await link.send(request("two", 2))
        third = asyncio.ensure_future(link.send(request("three", 3)))
        await until(lambda: len(place.asked) == 2)
        assert not third.done()
        assert most == 2
        free.set()
        assert set(await answers(link, 3)) == {1, 2, 3}
        await third


async def test_closing_ends_everything_that_is_open():
    async with Place(never).open() as place, linked(place.url) as link:
        await link.send(request("wait"))
        receiving = asyncio.ensure_future(link.receive())
        await asyncio.sleep(0)
        await link.close()
        with pytest.raises(e.TransportClosed):
            await receiving
        with pytest.raises(e.TransportClosed):
            await link.send(request("late"))


async def in_pieces(asked: Asked) -> None:
    body = json.dumps(result(asked.message["id"], "pieces")).encode()
    await asked.head(200, {"content-type": "application/json"})
    for start in range(0, len(body), 10):
        await asked.part(body[start : start + 10])
        await asyncio.sleep(0.001)
    await asked.end()


async def as_events(asked: Asked) -> None:
    await asked.events(event(result(asked.message["id"], "events")))


async def hang_up(asked: Asked) -> None:
    asked.hang_up()


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (lambda asked: asked.result("whole"), "whole"),
        (lambda asked: asked.say_json({"jsonrpc": "2.0", "id": 7, "result": {}}), -32000),
        (in_pieces, "pieces"),
        (as_events, "events"),
        (lambda asked: asked.say(404), -32000),
        (hang_up, -32000),
    ],
)
async def test_a_request_over_an_open_connection_takes_no_task_until_it_needs_one(said, found):
    asked_for = asyncio.Event()

    async def do(asked: Asked) -> None:
        if asked.message["method"] == "first":
            await asked.result({})
        else:
            await asked_for.wait()
            await said(asked)

    async with Place(do).open() as place, linked(place.url) as link:
        await ask(link, request("first", 1))
        before = asyncio.all_tasks()
        await link.send(request("second", 2))
        assert asyncio.all_tasks() == before
        asked_for.set()
        told = await answer(link)
        assert told.id == 2
        assert (told.error.code if isinstance(told.error, ErrorObject) else told.result) == found


@pytest.mark.parametrize("how", ["cancelled", "closed"])
async def test_a_request_over_an_open_connection_ends_with_its_connection(how):
    async def do(asked: Asked) -> None:
        if asked.message["id"] == 1:
            await asked.result({})
        else:
            await asyncio.Event().wait()

    async with Place(do).open() as place, linked(place.url) as link:
        await ask(link, call(1, "stateless"))
        await link.send(call(2, "stateless"))
        connections = link.target.connections
        assert len(connections._all) == 1
        if how == "cancelled":
            await link.send(notice("notifications/cancelled", requestId=2))
        else:
            await link.close()
        await until(lambda: not connections._all)
        assert not link.waiting


@pytest.mark.parametrize("url", ["ftp://host/x", "host", "http://", "http://h:99999/", "", "//x"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(e.ServerUnreachable, match="must be a URL"):
        HttpTarget(url)


@pytest.mark.parametrize("megabytes", [5, pytest.param(50, marks=pytest.mark.long)])
async def test_many_megabytes_pass_in_both_directions(megabytes):
    async def do(asked: Asked) -> None:
        body = b'{"jsonrpc":"2.0","id":1,"result":%b}' % asked.body
        if asked.headers.get("x-form") == "stream":
            await asked.events(b"data: %b\n\n" % body)
        else:
            await asked.say(200, body, content_type="application/json")

    text = "x" * (megabytes * 1024 * 1024)
    async with Place(do).open() as place:
        for form in ("stream", "whole"):
            headers = Headers((("x-form", form),))
            async with linked(place.url, headers=headers) as link:
                answered = await ask(link, request("large", 1, text=text))
                assert answered.result["params"]["text"] == text


async def test_an_answer_can_come_on_another_stream_than_its_own():
    asked_for, given_up = asyncio.Event(), asyncio.Event()

    async def do(asked: Asked) -> None:
        if asked.method == "GET":
            await asked_for.wait()
            await asked.events(event(result("slow", {"here": True})), end=False)
            await asyncio.Event().wait()
        elif asked.message.get("id") == "slow":
            asked_for.set()
            await talk_on(asked, given_up)
        elif "id" in asked.message:
            await asked.result({"protocolVersion": "2025-11-25"})
        else:
            await asked.say(202)

    async with Place(do).open() as place, linked(place.url) as link:
        await shake_hands(link)
        assert (await ask(link, request("slow", "slow"))).result == {"here": True}
        await given_up.wait()


async def test_a_server_may_ask_its_client_in_the_middle_of_its_answer():
    answered = asyncio.Event()

    async def do(asked: Asked) -> None:
        if "result" in asked.message:
            answered.set()
            await asked.say(202)
            return
        question = {"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage"}
        await asked.events(event(question), end=False)
        await answered.wait()
        await asked.part(event(result(asked.message["id"])))
        await asked.end()

    async with Place(do).open() as place, linked(place.url) as link:
        await link.send(request("ask", 1))
        question = await link.receive()
        assert isinstance(question, Request)
        await link.send(said(result(question.id)))
        assert set(await answers(link, 1)) == {1}


async def test_a_handshake_without_an_answer_holds_up_nobody_for_ever(monkeypatch):
    monkeypatch.setattr("folkmoot.mcp.client.http.HANDSHAKE_SECONDS", 0.05)
    async with Place(never).open() as place, linked(place.url) as link:
        await link.send(HELLO)


async def test_a_request_that_finds_no_turn_is_refused(monkeypatch):
    monkeypatch.setattr("folkmoot.mcp.client.http.TURN_SECONDS", 0.05)
    async with Place(never).open() as place, linked(place.url, most_open=1) as link:
        await link.send(request("wait", 1))
        with pytest.raises(e.TooManyInFlight):
            await link.send(request("wait", 2))
