"""What can go wrong with a Streamable HTTP server: never a hang, always one clear sentence."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, ProtocolMessage, Response
from folkmoot.core.strict import Limits
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.http import HttpTarget
from folkmoot.mcp.client.target import Asking
from tests.mcp.client.places import Asked, Place, event, never, result, told
from tests.mcp.client.saying import answer as receive_answer
from tests.mcp.client.saying import ask, at_rest, failure, linked, notice, refusal, request

Do = Callable[[Asked], Awaitable[None]]


async def answer_of(do: Do, message: ProtocolMessage | None = None, **options: Any) -> Response:
    """What the link gives for an answer to a request."""
    async with Place(do).open() as place, linked(place.url, **options) as link:
        return await ask(link, message or request("ask", 7))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "requires authorization"),
        (404, "has nothing at this address"),
        (405, "does not accept messages at this address"),
        (418, "rejected the request"),
        (500, "failed"),
        (302, "rejected the request"),
    ],
)
async def test_a_status_that_is_no_answer_is_an_error_for_who_asked(status, words):
    async def do(asked: Asked) -> None:
        await asked.say(status, b"<h1>no</h1>", content_type="text/html", www_authenticate="Basic")

    async with Place(do).open() as place, linked(place.url) as link:
        await link.send(request("ask", 7))
        envelope = await link.receive_envelope()
        code = "server_unreachable" if status == 500 else "server_answer_invalid"
        told = {"code": code, "status": status}
        assert failure(envelope.message) == (7, f"The server {words} ({status}).", told)
        metadata = envelope.context.transport.metadata
        assert metadata.status == status
        assert metadata.headers.get("www-authenticate") == "Basic"


@pytest.mark.parametrize("given", [None, "server-error", 7])
async def test_the_servers_own_error_is_passed_on_with_the_id_of_the_request(given):
    error = {"code": -32600, "message": "Missing session ID", "data": [1]}

    async def do(asked: Asked) -> None:
        await asked.say_json({"jsonrpc": "2.0", "id": given, "error": error}, 400)

    answer = await answer_of(do)
    assert (answer.id, answer.error) == (7, ErrorObject(-32600, "Missing session ID", [1]))
    assert (answer.raw is not None) is (given == 7)


JSON = "application/json"
UNASKED = "does not match the request"
NO_ANSWERS = {
    "html": (200, b"<h1>hello</h1>", "text/html", "text/html, not with a message"),
    "accepted": (202, b"", JSON, "accepted the request and answers nothing"),
    "no JSON": (200, b"{", JSON, "cannot be read: "),
    "twice": (200, b'{"id":7,"id":7}', JSON, "cannot be read: "),
    "another": (200, b'{"jsonrpc":"2.0","id":8,"result":1}', JSON, UNASKED),
    "a notice": (200, b'{"jsonrpc":"2.0","method":"x"}', JSON, UNASKED),
    "an error that is none": (400, b'{"error":"no"}', JSON, "malformed (400)"),
    "a result": (400, b'{"jsonrpc":"2.0","id":7,"result":1}', JSON, "malformed (400)"),
    "too large": (200, b" " * 2000, JSON, "more than the 1,000 bytes"),
}


@pytest.mark.parametrize("kind", NO_ANSWERS)
async def test_what_is_no_answer_is_an_error_for_who_asked(kind):
    status, body, content_type, words = NO_ANSWERS[kind]

    async def do(asked: Asked) -> None:
        await asked.say(status, body, content_type=content_type)

    found, sentence, data = failure(await answer_of(do, limits=Limits(1000)))
    assert words in sentence
    assert (found, data["code"]) == (7, "server_answer_invalid")


async def test_an_event_without_end_is_not_read_without_end():
    async def do(asked: Asked) -> None:
        await asked.events(b"id: 1\n\ndata: ", end=False)
        while True:
            await asked.part(b"x" * 10_000)

    found, sentence, _ = failure(await answer_of(do, limits=Limits(100_000)))
    assert found == 7
    assert "An event has more than the 100,000 bytes" in sentence


async def test_an_event_that_is_no_message_is_passed_over_unless_it_was_the_answer(caplog):
    async def do(asked: Asked) -> None:
        await asked.events(
            b"event: ping\ndata: hunter2\n\ndata: hunter2\n\n",
            event(result("nobody's")),
            event(told("news")),
            b'data: {"jsonrpc":"2.0","id":7,"result":1,"result":2}\n\n',
            end=False,
        )
        await asyncio.Event().wait()

    with caplog.at_level(logging.WARNING, "folkmoot"):
        async with Place(do).open() as place, linked(place.url) as link:
            await link.send(request("ask", 7))
            assert not isinstance(await link.receive(), Response)
            found, sentence, _ = failure(await link.receive())
            assert found == 7
            assert "cannot be read" in sentence
            assert link.invalid_messages.count == 3
    assert "hunter2" not in caplog.text
    assert len([each for each in caplog.records if each.name == "folkmoot.proxy"]) == 3


async def test_a_session_that_ended_is_told_as_such():
    async def do(asked: Asked) -> None:
        if asked.method == "POST" and asked.message["method"] == "initialize":
            await asked.result({}, mcp_session_id="s")
        else:
            await asked.say(404)

    async with Place(do).open() as place, linked(place.url) as link:
        await ask(link, request("initialize", 0))
        _, sentence, data = await refusal(link, request("ask", 1))
        assert sentence == "The server no longer knows this session."
        assert data == {"code": "session_not_found", "status": 404}
        with pytest.raises(e.ServerAnswerInvalid, match="no longer knows this session"):
            await link.send(notice("tick"))


async def test_a_redirect_is_followed_at_home_and_nowhere_else():
    async def do(asked: Asked) -> None:
        if asked.path == "/mcp":
            await asked.say(307, location="/there?secret=hunter2")
        elif asked.path.startswith("/there"):
            await asked.result({"path": asked.path})
        else:
            await asked.say(307, location=asked.path)

    async def away(asked: Asked) -> None:
        await asked.say(307, location=f"http://127.0.0.1:{elsewhere.port}/mcp?secret=hunter2")

    elsewhere = Place(do)
    headers = Headers((("authorization", "hunter2"),))
    async with Place(do).open() as place, Place(away).open() as leads_away:
        elsewhere = place
        async with linked(place.url) as link:
            answer = await ask(link, request("ask", 7, text="twice"))
            assert answer.result == {"path": "/there?secret=hunter2"}
            assert place.asked[0].body == place.asked[1].body
        async with linked(place.url.replace("/mcp", "/round")) as link:
            assert "redirects in circles" in (await refusal(link, request("ask", 7)))[1]
        place.asked.clear()
        async with linked(leads_away.url, target={"headers": headers}) as link:
            _, sentence, _ = await refusal(link, request("ask", 7))
            assert f"redirects to {place.url}, which is not followed" in sentence
            assert "hunter2" not in sentence
        assert not place.asked


async def test_a_server_that_is_not_there_is_named_without_what_is_secret():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port, refused = taken.getsockname()[1], "connection refused"
        url = f"http://me:hunter2@127.0.0.1:{port}/mcp?token=hunter2#x"
        async with linked(url) as link:
            await link.send(request("ask", 7))
            envelope = await link.receive_envelope()
            assert failure(envelope.message) == (
                7,
                f"The server at http://127.0.0.1:{port}/mcp cannot be reached: {refused}.",
                {"code": "server_unreachable"},
            )
            assert "hunter2" not in repr(envelope)
            with pytest.raises(e.ServerUnreachable, match="refused"):
                await link.send(notice("tick"))


async def test_name_and_password_of_an_address_are_sent_as_authorization():
    async def do(asked: Asked) -> None:
        await asked.result({"path": asked.path, "authorization": asked.headers["authorization"]})

    async with Place(do).open() as place:
        url = place.url.replace("//", "//me:p%40ss@") + "?key=1"
        async with linked(url) as link:
            answer = await ask(link, request("ask", 7))
            login = "Basic bWU6cEBzcw=="
            assert answer.result == {"path": "/mcp?key=1", "authorization": login}


@pytest.mark.parametrize("method", ["ask", "begin"])
async def test_a_server_that_says_nothing_is_given_up_when_that_is_wished(method):
    async def do(asked: Asked) -> None:
        if asked.message["method"] == "begin":
            await asked.events(b": hello\n\n", end=False)
        await asyncio.Event().wait()

    answer = await answer_of(do, request(method, 7), target={"answer_seconds": 0.05})
    found, sentence, data = failure(answer)
    assert (found, data["code"]) == (7, "server_timeout")
    assert sentence.endswith("did not answer in time.")


async def test_a_notice_that_is_not_accepted_in_time_is_given_up(monkeypatch):
    monkeypatch.setattr("folkmoot.mcp.client.weblink.TELL_SECONDS", 0.05)
    async with Place(never).open() as place, linked(place.url) as link:
        with pytest.raises(e.ServerTimeout, match="did not accept"):
            await link.send(notice("tick"))


async def test_a_server_that_says_more_than_is_taken_waits():
    said = 0

    async def do(asked: Asked) -> None:
        nonlocal said
        await asked.events(end=False)
        for number in range(5000):
            await asked.part(event(told("news", number=number, text="x" * 10_000)))
            said = number
        await asked.part(event(result(7)))
        await asked.end()

    async with Place(do).open() as place, linked(place.url) as link:
        await link.send(request("ask", 7))
        # Fifty megabytes were there to be said; the buffers hold a part of them.
        assert await at_rest(lambda: said) < 3000
        for number in range(5000):
            message = await link.receive()
            assert message.params["number"] == number  # type: ignore[union-attr, index, call-overload]
        await receive_answer(link)


async def test_nothing_of_the_http_client_gets_out_of_its_context():
    async def do(asked: Asked) -> None:
        await asked.events(b": x\n\n", end=False)
        asked.hang_up()

    async def read(asking: Asking) -> None:
        async with asking as answer:
            async for _ in answer.chunks():
                pass

    async with Place(do).open() as place, HttpTarget(place.url) as target:
        with pytest.raises(e.CarryError, match="cannot be reached"):
            await read(target.ask("GET", Headers()))
    with pytest.raises(e.ServerUnreachable, match="closed"):
        await read(target.ask("GET", Headers()))
