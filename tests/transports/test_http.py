from __future__ import annotations

import asyncio
import logging

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from folkmoot.core import errors as e
from folkmoot.transports.limits import MAX_LOGGED_PATH
from tests.harness import Serving, ask, read_answer, serving

SECRET = "sk_" + "ab" * 32
BUSY = "Too many writes are waiting; try again in a moment."


async def echo(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def broken(_: Request) -> Response:
    raise RuntimeError(f"the inside of the hub, with {SECRET}")


async def refused(_: Request) -> Response:
    raise e.StoreOverloaded(BUSY, waiting=10)


async def half(_: Request) -> Response:
    async def parts() -> object:
        yield b"a"
        raise RuntimeError("after the beginning")

    return StreamingResponse(parts())


SERVED = {
    "routes": [
        Route("/echo", echo, methods=["POST"]),
        Route("/broken", broken),
        Route("/refused", refused),
        Route("/half", half),
        Route("/invite/{code}", echo),
    ]
}


async def test_head_is_answered_like_get_without_a_body(hub):
    get, head = await asyncio.gather(ask(hub.port), ask(hub.port, method="HEAD"))
    assert head.status == get.status == 200
    assert head.body == b""
    assert head.headers["content-length"] == get.headers["content-length"]


async def test_an_unknown_path_is_json_for_programs_and_a_page_for_browsers(hub: Serving):
    # A slash at the end is another path.
    for method, path in (("GET", "/nowhere"), ("POST", "/echo/")):
        answer = await ask(hub.port, path, method=method, headers={"accept": "*/*"})
        told = {"content-type": "application/json", "cache-control": "no-store"}
        assert answer.headers == {**answer.headers, **told}
        assert (answer.status, answer.json()["error"]["code"]) == (404, "not_found")
    page = await ask(hub.port, "/nowhere", headers={"accept": "text/html,*/*;q=0.8"})
    assert page.status == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "style-src 'sha256-" in page.headers["content-security-policy"]
    assert "There is nothing at this address." in page.text


async def test_a_wrong_method_is_told_the_right_ones(hub):
    answer = await ask(hub.port, "/", method="DELETE")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"
    told = {"code": "method_not_allowed", "message": "This address answers only to GET, HEAD."}
    assert answer.json() == {"error": told}


async def test_an_error_of_ours_is_its_own_status_code_and_data(hub):
    answer = await ask(hub.port, "/refused")
    told = {"code": "store_overloaded", "message": BUSY, "waiting": 10}
    assert (answer.status, answer.json()) == (503, {"error": told})


async def test_an_unexpected_error_shows_an_id_that_the_log_has_too(hub, caplog):
    answer = await ask(hub.port, "/broken")
    assert answer.status == 500
    error = answer.json()["error"]
    assert error["code"] == "internal_error"
    assert error["id"] == answer.headers["x-request-id"]
    assert not any(word in answer.body for word in (b"inside", b"Traceback"))
    (record,) = [r for r in caplog.records if r.exc_info]
    assert vars(record)["id"] == error["id"]
    assert [r for r in caplog.records if r.name.startswith("uvicorn") and r.exc_info] == []


async def test_an_answer_that_breaks_off_is_logged_and_the_connection_closed(dial, caplog):
    reader, _ = await dial(b"GET /half HTTP/1.1\r\nhost: localhost\r\n\r\n")
    received = await reader.read()
    assert not received.endswith(b"0\r\n\r\n")
    assert any(r.message == "request failed" for r in caplog.records)


async def test_the_access_log_has_everything_but_the_query_and_the_end_of_long_paths(hub, caplog):
    caplog.set_level(logging.INFO)
    answer = await ask(hub.port, f"/echo?token={SECRET}", method="POST", body=b"hi")
    assert (await ask(hub.port, "/" + "token=x&" * 7_000)).status == 404
    first, second = [vars(r) for r in caplog.records if r.name == "folkmoot.http"]
    told = {"method": "POST", "path": "/echo", "status": 200, "id": answer.headers["x-request-id"]}
    assert first == {**first, **told}
    assert first["ms"] >= 0
    assert len(second["path"]) == MAX_LOGGED_PATH + 1
    assert SECRET not in str([vars(r) for r in caplog.records])


@pytest.mark.parametrize(
    ("lines", "logged"), [("all", ["/echo", "/nowhere"]), ("failed", ["/nowhere"]), ("none", [])]
)
async def test_which_requests_have_a_line_is_a_setting(lines, logged, caplog):
    caplog.set_level(logging.INFO)
    async with serving(lines=lines, **SERVED) as hub:
        await ask(hub.port, "/echo", method="POST", body=b"hi")
        await ask(hub.port, "/nowhere")
    paths = [vars(r)["path"] for r in caplog.records if r.name == "folkmoot.http"]
    assert paths == logged


async def test_an_endpoint_stands_behind_everything_and_before_the_routes():
    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        if message["body"] == b"ours":
            raise e.BodyTooLarge("Ours.")
        if message["body"] == b"theirs":
            raise RuntimeError(SECRET)
        await PlainTextResponse("here")(scope, receive, send)

    async with serving(endpoints={"/here": endpoint}, max_body_bytes=10) as hub:
        answers = [
            await ask(hub.port, "/here", method="POST", body=body)
            for body in (b"", b"ours", b"theirs", b"far too long")
        ]
        answers.append(await ask(hub.port, "/here", headers={"host": "evil.example"}))
        answers.append(await ask(hub.port, "/here/"))
    assert [answer.status for answer in answers] == [200, 413, 500, 413, 421, 404]
    assert all(answer.headers["x-content-type-options"] == "nosniff" for answer in answers)
    assert SECRET not in str(answers)


async def test_metrics_count_templates_and_known_methods_only(hub):
    for n in range(5):
        await ask(hub.port, f"/made-up-{n}?token={SECRET}")
        await ask(hub.port, f"/invite/{SECRET}{n}")
    await ask(hub.port, "/", method="PROPFIND")
    await ask(hub.port, "/echo", method="POST", body=b"x")
    text = hub.metrics.exposition("")[0].decode()
    for line in (
        'requests_total{method="GET",route="other",status="404"} 5.0',
        'requests_total{method="GET",route="/invite/{code}",status="404"} 5.0',
        'requests_total{method="OTHER",route="/",status="405"} 1.0',
        'requests_total{method="POST",route="/echo",status="200"} 1.0',
        "folkmoot_http_requests_in_flight 0.0",
        'duration_seconds_count{route="/echo"} 1.0',
    ):
        assert line in text
    assert not any(word in text for word in ("sk_", "made-up"))


async def test_every_answer_carries_the_security_headers(hub):
    always = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    for path in ("/", "/nowhere", "/broken", "/refused"):
        headers = (await ask(hub.port, path)).headers
        assert headers == {**headers, **always}
        assert "camera=()" in headers["permissions-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers


async def test_requests_on_one_connection_get_ids_of_their_own(dial):
    reader, _ = await dial(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3)
    ids = {(await read_answer(reader)).headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /%ff%00%0d%0a HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ],
)
async def test_odd_requests_are_answered_below_500_and_harm_nobody(dial, hub, raw):
    reader, _ = await dial(raw)
    answer = await read_answer(reader)
    assert answer.status < 500
    assert (await ask(hub.port)).status == 200
