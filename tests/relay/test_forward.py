"""HTTP exchanges through the proxy: what of them the server sees, and what comes back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import Request
from folkmoot.core.session import SessionState
from folkmoot.core.verdict import Block, Modify
from tests.harness import reached
from tests.mcp.client.places import Asked, Place, Shaking, agree, event, result, told
from tests.mcp_harness import INITIALIZE, modern, rpc
from tests.relay.carriers import Says
from tests.relay.standing import BOTH, before, named, standing

CALL = rpc("tools/call", {"name": "echo"}, 7)
PROGRESS = told("notifications/progress", progressToken=1, progress=1)
SAMPLING = rpc("sampling/createMessage", {"messages": [], "maxTokens": 1}, "s1")


async def test_what_a_client_adds_to_the_address_passes_too():
    async with standing(agree) as (proxy, place):
        await proxy.http.post(f"{proxy.url}?names=canonical&x=%2F+1", json=CALL, headers=BOTH)
        assert place.asked[0].path.endswith("?names=canonical&x=%2F+1")


@pytest.mark.requirement("proxy.mcp-headers", "proxy.http-headers")
async def test_headers_pass_by_a_list_and_none_that_belongs_to_a_connection_or_a_browser():
    passing = {
        "authorization": "Bearer t",
        "mcp_session_id": "abc",
        "mcp_protocol_version": "2025-06-18",
        "mcp_param_region": "eu",
        "traceparent": "00-1-2-03",
        "x_tenant": "blue",
    }
    kept = {"cookie": "a=b", "x_secret": "no", "te": "trailers", "x_forwarded_for": "10.0.0.1"}

    async def do(asked: Asked) -> None:
        hidden = {"set_cookie": "a=b", "x_internal": "no", "keep_alive": "timeout=5"}
        await asked.result({}, mcp_session_id="abc", retry_after="3", **hidden)

    async with standing(do, headers=("x-tenant", "cookie")) as (proxy, place):
        got = await proxy.post(CALL, **passing, **kept)
        [asked] = place.asked
        assert named(passing).items() <= asked.headers.items()
        assert not named(kept).keys() & asked.headers.keys()
        assert asked.headers["host"] == f"127.0.0.1:{place.port}"
        assert {"mcp-session-id": "abc", "retry-after": "3"}.items() <= got.headers.items()
        assert not {"set-cookie", "x-internal", "keep-alive"} & set(got.headers)
        context = proxy.tape.carried[0].envelope.context.transport
        assert context.metadata.headers.get("mcp-param-region") == "eu"
        assert (context.metadata.method, context.metadata.uri) == ("POST", "/mcp")


async def test_a_status_and_a_challenge_pass_as_they_are():
    async def do(asked: Asked) -> None:
        challenge = 'Bearer resource_metadata="https://example.org/x"'
        await asked.say_json({"error": "invalid_token"}, 401, www_authenticate=challenge)

    async with standing(do) as (proxy, _):
        got = await proxy.post(CALL)
        assert (got.status_code, got.content) == (401, b'{"error": "invalid_token"}')
        assert got.headers["www-authenticate"].startswith("Bearer resource_metadata")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (202, b"", ""),
        (404, b"<h1>Nothing here</h1>", "text/html"),
        (200, b"\x00\xff not text", "application/octet-stream"),
        (500, b"[1, 2", "application/json"),
    ],
)
async def test_what_is_no_message_passes_as_it_is(status, body, kind):
    async def do(asked: Asked) -> None:
        await asked.say(status, body, **({"content_type": kind} if kind else {}))

    async with standing(do) as (proxy, _):
        got = await proxy.post(told("notifications/initialized"))
        assert (got.status_code, got.content) == (status, body)
        assert got.headers.get("content-type", "") == kind


@pytest.mark.requirement("proxy.unknown-members", "proxy.context-end-to-end")
async def test_the_bytes_of_both_messages_stay_what_they_are():
    asked_as = b' {"jsonrpc":"2.0", "x":{"b":1.50,"a":2}, "id":7,"method":"m","params":{} }'
    answered_as = b'{ "id":7,"jsonrpc":"2.0","result":{"n":1e2},"y":[] }\n'

    async def do(asked: Asked) -> None:
        await asked.say(200, answered_as, content_type="application/json; charset=utf-8")

    async with standing(do) as (proxy, place):
        got = await proxy.post(asked_as)
        assert place.asked[0].body.strip() == asked_as.strip()
        assert got.content.strip() == answered_as.strip()
        assert got.headers["content-type"] == "application/json; charset=utf-8"


@pytest.mark.requirement("proxy.sse-fields", "proxy.sse-last-event-id")
async def test_events_stay_as_they_are_and_a_broken_stream_is_asked_for_by_its_own_id():
    async def do(asked: Asked) -> None:
        if asked.method == "POST":
            begun = event(id_="first", retry=50), event(PROGRESS, id_="a-1", retry=700)
            await asked.events(*begun, b"event: other\ndata: not ours\n\n", end=False)
            asked.hang_up()
        else:
            await asked.events(event(result(7), id_="a-2"))

    async with standing(do) as (proxy, place):
        async with proxy.stream("POST", CALL) as answer:
            empty, progress, other, broken = await answer.all()
        assert (empty.data, empty.event_id, empty.retry) == (b"", "first", 0.05)
        assert (progress.event_id, json.loads(progress.data)) == ("a-1", PROGRESS)
        assert (progress.event_type, progress.retry) == ("message", 0.7)
        assert (other.event_type, other.data) == ("other", b"not ours")
        # A client that can resume has an id to do it with; one that cannot has an answer.
        assert json.loads(broken.data)["id"] == 7
        assert broken.event_id is None
        async with proxy.stream("GET", last_event_id="a-1") as answer:
            [rest] = await answer.all()
        assert (rest.event_id, json.loads(rest.data)) == ("a-2", result(7))
        assert place.of("GET")[0].headers["last-event-id"] == "a-1"
        said = [each.envelope.context.transport.metadata for each in proxy.tape.carried]
        assert (said[1].event_id, said[1].retry_after) == ("a-1", 0.7)
        assert said[2].last_event_id == "a-1"
        assert said[2].stream_id != said[1].stream_id


async def test_what_a_server_writes_between_messages_is_left_out_but_its_place_stays():
    async def do(asked: Asked) -> None:
        await asked.events(b"data: not a message\n\nid: x\ndata: nor this\n\n", event(result(7)))

    async with standing(do) as (proxy, _), proxy.stream("POST", CALL) as answer:
        place, last = await answer.all()
        assert (place.event_id, place.data) == ("x", b"")
        assert json.loads(last.data) == result(7)


async def test_a_server_that_is_not_there_is_an_error_with_the_id_of_the_request():
    async with Place(agree).open() as place:
        url = place.url
    async with before(url, eras=False) as proxy:
        got = await proxy.post(CALL)
        assert (got.status_code, got.json()["id"]) == (502, 7)
        assert "cannot be reached" in got.json()["error"]["message"]
        assert (await proxy.post(told("notifications/initialized"))).json()["id"] is None


async def test_what_a_client_sends_that_is_no_message_is_answered_here():
    async with standing(agree) as (proxy, place):
        assert (await proxy.post(b"{")).json()["error"]["code"] == -32700
        refused = await proxy.post({"jsonrpc": "1.0", "id": 7, "method": "m"})
        assert (refused.status_code, refused.json()["id"]) == (400, 7)
        assert (await proxy.http.put(proxy.url)).status_code == 405
        assert place.asked == []


async def test_a_server_that_breaks_off_its_answer_is_an_error_with_the_id_of_the_request():
    async def do(asked: Asked) -> None:
        await asked.head(200, {"content-type": "application/json", "content-length": "100"})
        await asked.part(b'{"jsonrpc"')
        asked.hang_up()

    async with standing(do) as (proxy, _):
        got = await proxy.post(CALL)
        assert (got.status_code, got.json()["id"]) == (502, 7)


@pytest.mark.requirement("proxy.mcp-headers", "proxy.session-travels", "proxy.session-states")
async def test_a_session_is_counted_from_its_first_answer_until_it_is_ended():
    class Server(Shaking):
        async def do(self, asked: Asked) -> None:
            await (asked.say(200) if asked.method == "DELETE" else super().do(asked))

    server = Server(agree)
    async with server.place.open() as place, before(place.url, eras=False) as proxy:
        sessions = proxy.proxy.sessions
        here, gone = [(await proxy.post(INITIALIZE)).headers["mcp-session-id"] for _ in range(2)]
        assert len(sessions) == 2
        await proxy.post(told("notifications/initialized"), mcp_session_id=here)
        await proxy.post(CALL, mcp_session_id=here)
        context = proxy.tape.carried[-1].envelope.context.session
        assert (str(context.session_id), context.state) == (here, SessionState.ACTIVE)
        assert context.protocol_version.value == "2025-11-25"
        assert str(context.correlation_id).endswith("client:7")
        del server.opened[gone]
        assert (await proxy.post(CALL, mcp_session_id=gone)).status_code == 404
        assert len(sessions) == 1
        await proxy.http.delete(proxy.url, headers={"mcp-session-id": here})
        assert (len(sessions), dict(sessions.ended)) == (0, {"closed": 2})


@pytest.mark.requirement("proxy.every-message-is-an-envelope", "proxy.direction-set-at-entry")
async def test_every_message_of_an_exchange_is_on_the_tape_before_it_is_passed_on():
    async def do(asked: Asked) -> None:
        assert proxy.tape.committed == len(proxy.tape.carried)
        if "result" in asked.message:
            await asked.say(202)
        else:
            await asked.events(event(PROGRESS), event(SAMPLING), event(result(7)))

    async with standing(do) as (proxy, _):
        async with proxy.stream("POST", CALL) as answer:
            assert len(await answer.all()) == 3
        await proxy.post(result("s1"))
        up, down = "client_to_server", "server_to_client"
        asked = (down, "notifications/progress"), (down, "sampling/createMessage")
        assert proxy.told() == [(up, "tools/call"), *asked, (down, 7), (up, "s1")]


async def test_a_question_of_the_servers_that_is_blocked_is_answered_to_the_server():
    heard: asyncio.Future[Any]

    async def do(asked: Asked) -> None:
        if "error" in asked.message:
            heard.set_result(asked)
            await asked.say(202)
            return
        await asked.events(event(SAMPLING, id_="1"), end=False)
        await asked.part(event(result(7, (await heard).message), id_="2"))
        await asked.end()

    heard = asyncio.get_running_loop().create_future()
    rule = Says(Block(e.BlockedByInterceptor("Not this.")), "sampling/createMessage")
    async with standing(do, [rule]) as (proxy, _):
        sent = {"mcp_session_id": "abc", "authorization": "Bearer t"}
        async with proxy.stream("POST", CALL, **sent) as answer:
            place, last = await answer.all()
        assert (place.data, place.event_id) == (b"", "1")
        told_server = json.loads(last.data)["result"]
        assert (told_server["id"], told_server["error"]["message"]) == ("s1", "Not this.")
        asked = heard.result()
        assert {**named(sent), "content-type": "application/json"}.items() <= asked.headers.items()


async def test_a_blocked_request_is_answered_here_and_a_changed_one_has_fitting_headers():
    message, headers = modern("tools/call", name="old", arguments={})
    changed = Request(id=1, method="tools/call", params=message["params"] | {"name": "nëw"})
    blocked = Block(e.BlockedByInterceptor("Not this."))
    rules = [Says(blocked, "tools/list"), Says(Modify(changed), "tools/call")]
    async with standing(agree, rules) as (proxy, place):
        got = await proxy.post(rpc("tools/list", id_=3))
        assert (got.status_code, got.json()["id"]) == (200, 3)
        assert place.asked == []
        await proxy.post(message, **headers)
        [asked] = place.asked
        assert asked.message["params"]["name"] == "nëw"
        fitting = {"mcp-name": "=?base64?bsOrdw==?=", "mcp-method": "tools/call"}
        assert {**fitting, "mcp-protocol-version": "2026-07-28"}.items() <= asked.headers.items()


async def test_a_client_that_hangs_up_is_noticed_by_the_server():
    gone = asyncio.Event()

    async def do(asked: Asked) -> None:
        await asked.events(end=False)
        try:
            while True:
                await asked.part(event(PROGRESS))
                await asyncio.sleep(0.01)
        except ConnectionError:
            gone.set()

    async with standing(do) as (proxy, _):
        async with proxy.stream("POST", CALL) as answer:
            await answer.next()
        await gone.wait()


async def test_a_tape_that_cannot_be_written_lets_nothing_pass():
    async with standing(agree) as (proxy, place):
        proxy.tape.full = True
        got = await proxy.post(CALL)
        assert (got.status_code, got.json()["id"]) == (503, 7)
        assert got.json()["error"]["data"]["code"] == "tape_unwritable"
        assert place.asked == []


async def test_a_proxy_that_stops_ends_every_exchange_and_says_so():
    async def do(asked: Asked) -> None:
        if asked.method == "GET":
            await asked.events(event(PROGRESS), end=False)
        await asyncio.Event().wait()

    async with httpx2.AsyncClient(verify=False, timeout=30) as http:
        async with standing(do) as (proxy, place):
            proxy.http = http
            asking = asyncio.ensure_future(proxy.post(CALL))
            listening = asyncio.ensure_future(http.get(proxy.url))
            await reached(lambda: len(place.asked) == len(proxy.tape.carried) == 2)
        answer = await asking
        assert (answer.status_code, answer.json()["id"]) == (503, 7)
        assert answer.json()["error"]["message"] == "The proxy is stopping."
        assert PROGRESS["method"] in (await listening).text
