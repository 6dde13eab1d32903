from __future__ import annotations

import asyncio

import pytest

from tests.harness import ask, read_answer
from tests.transports.rest.support import ROOMS, Asker, chat, done, refused

TOKENS = ["", "sk_" + "0" * 64, "gk_" + "0" * 64, "gi_" + "0" * 64, "nonsense", "sk_\xe9"]


async def test_without_a_valid_token_nothing_is_told_and_a_browser_gets_json_too(hub):
    for token in TOKENS:
        answer = await Asker(hub.port, token).ask("GET", ROOMS, headers={"accept": "text/html"})
        refused(answer, 401, "token_invalid" if token else "authentication_required")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_the_token_may_be_in_the_url_and_two_different_ones_are_refused(hub, ada, bob):
    done(await hub.stranger.ask("GET", f"{ROOMS}?token={ada.token}"), 200)
    done(await ada.ask("GET", f"{ROOMS}?token={ada.token}"), 200)
    answer = await ada.ask("GET", f"{ROOMS}?token={bob.token}")
    refused(answer, 400, "tokens_differ")


METHODS = {
    ROOMS: "GET, HEAD, POST",
    f"{ROOMS}/planning": "DELETE, GET, HEAD, PATCH",
    f"{ROOMS}/planning/guests": "POST",
    "/v1/openapi.json": "GET, HEAD",
}


async def test_another_method_is_refused_and_the_right_ones_are_named(ada):
    for path, allowed in METHODS.items():
        for method in {"PUT", "TRACE", "OPTIONS", "DELETE"} - {*allowed.split(", ")}:
            answer = await ada.ask(method, path)
            told = refused(answer, 405, "method_not_allowed")
            assert answer.headers["allow"] == allowed
            assert allowed in told["message"]


BAD_QUERIES = """
limit=0 limit=501 limit= limit=1e2 limit=+5 limit=%D9%A1 limit=1&limit=2 Limit=3 after=-1
after=99999999999999999999 before=x wait=56 wait=-1 wait=1&before=3 wait=1.5 since=3
token=&unknown
"""


async def test_a_query_that_is_not_understood_is_refused(ada, planning):
    for query in (*BAD_QUERIES.split(), "&".join("x" * 60)):
        answer = await ada.ask("GET", f"{ROOMS}/planning/messages?{query}")
        refused(answer, 400, "query_invalid")


OTHER_TYPES = (
    *("", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"),
    *("application/json; charset=latin-1", "multipart/form-data"),
)
JSON_TYPES = (
    "Application/JSON",
    "application/json;charset=UTF-8",
    'application/json; charset="utf-8"',
)


async def test_a_body_that_is_not_json_by_its_type_is_refused(ada):
    others = ({"content-type": each} for each in OTHER_TYPES)
    for headers in (*others, {"content-encoding": "gzip"}):
        answer = await ada.ask("POST", ROOMS, {"name": "planning"}, headers=headers)
        refused(answer, 415, "media_type_unsupported")
    assert (await ada.get(ROOMS))["rooms"] == []
    for number, media_type in enumerate(JSON_TYPES):
        headers = {"content-type": media_type}
        done(await ada.ask("POST", ROOMS, {"name": f"room-{number}"}, headers=headers), 201)


BAD_JSON = [
    (b"", "invalid_json"),
    (b"{", "invalid_json"),
    (b'{"name":"a"} x', "invalid_json"),
    (b'{"name":"\xff"}', "invalid_utf8"),
    (b'{"name":"a","name":"b"}', "duplicate_key"),
    (b'{"name":"a","policy":{"quorum":1,"quorum":2}}', "duplicate_key"),
    (b'{"name":"\\ud800"}', "lone_surrogate"),
    (b'{"name":"a","policy":{"quorum":NaN}}', "number_out_of_range"),
    (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nesting_too_deep"),
    (b"[" * 1000, "batch_refused"),
    (b"[]", "batch_refused"),
    (b'"planning"', "not_an_object"),
    (b"null", "not_an_object"),
]


@pytest.mark.parametrize("path", ["", "/planning/messages", "/planning/guests"])
async def test_a_body_that_is_not_strict_json_is_refused(ada, planning, path):
    for body, code in BAD_JSON:
        headers = {"content-length": str(len(body))}
        refused(await ada.ask("POST", f"{ROOMS}{path}", body, headers=headers), 400, code)
    assert (await ada.read("planning"))["messages"] == []


BAD_ROOMS: list[tuple[dict[str, object], str]] = [
    ({"name": "planning", "owner": "bob"}, "argument_invalid"),
    ({"name": "planning", "policy": {"quorums": 1}}, "argument_invalid"),
    ({"name": "planning", "access": ["open"]}, "argument_invalid"),
    ({"name": "planning", "durable": "yes"}, "argument_invalid"),
    ({"name": "planning", "grants": {"no handle": []}}, "argument_invalid"),
    ({"name": 7}, "argument_invalid"),
    ({}, "argument_invalid"),
    ({"name": "planning", "capabilities": ["chat message"]}, "pattern_syntax"),
    ({"name": "planning", "capabilities": [{"kind": "chat.*", "payload": 7}]}, "constraint_syntax"),
]


async def test_a_room_is_made_of_what_a_room_has_and_of_nothing_else(ada):
    for content, code in BAD_ROOMS:
        told = refused(await ada.ask("POST", ROOMS, content), 400, code)
        assert code != "argument_invalid" or told["field"]
    reserved = {"name": "planning", "capabilities": ["system.*"]}
    refused(await ada.ask("POST", ROOMS, reserved), 403, "capability_reserved")
    assert (await ada.get(ROOMS))["rooms"] == []


@pytest.mark.settings(http={"max_body_bytes": 8 * 1024 * 1024})
async def test_a_body_that_is_too_large_is_refused_however_it_comes(hub, ada, planning):
    large = {"name": "x", "grants": {"a" * 300_000: []}}
    refused(await ada.ask("POST", ROOMS, large), 413, "message_too_large")
    refused(await ada.post("planning", chat("x" * 1_048_576)), 413, "message_too_large")
    announced = {"content-length": str(9 * 1024 * 1024)}
    refused(await ada.ask("POST", ROOMS, b"{", headers=announced), 413, "body_too_large")
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    head = (
        f"POST {ROOMS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {ada.token}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    writer.write(head.encode() + chunk * 9)
    refused(await read_answer(reader), 413, "body_too_large")
    writer.close()


@pytest.mark.settings(http={"allowed_origins": ["https://console.example"]})
async def test_a_page_of_an_allowed_origin_may_use_it_and_no_other(hub, ada):
    origin = {"origin": "https://console.example"}
    wish = {
        **origin,
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "authorization,content-type",
    }
    asked = await ask(hub.port, f"{ROOMS}/planning", method="OPTIONS", headers=wish)
    assert "PATCH" in asked.headers["access-control-allow-methods"]
    answer = await ada.ask("GET", ROOMS, headers=origin)
    assert "retry-after" in answer.headers["access-control-expose-headers"].lower()
    for each in (asked, answer):
        assert each.status == 200
        assert each.headers["access-control-allow-origin"] == origin["origin"]
    for method, content in (("GET", None), ("POST", {"name": "planning"})):
        answer = await ada.ask(method, ROOMS, content, headers={"origin": "https://evil.example"})
        refused(answer, 403, "origin_not_allowed")
        assert "access-control-allow-origin" not in answer.headers
