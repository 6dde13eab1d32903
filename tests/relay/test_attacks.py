"""What a hostile client or server may try with a proxy that listens, and what comes of it."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from folkmoot.core.strict import Limits
from folkmoot.relay.proxy import ProxyOptions
from tests.harness import ask
from tests.mcp.client.places import Asked, Place, Shaking, agree, event, result
from tests.mcp.client.saying import python
from tests.mcp.server.played import modern as stateless
from tests.mcp.server.played import until
from tests.mcp_harness import rpc
from tests.relay.listening import initialize, listening
from tests.relay.standing import standing
from tests.testing import small_server

SMALL_SERVER = (sys.executable, "-IS", small_server.__file__)
SMALL = ProxyOptions(limits=Limits(4096, 64))


CALL = rpc("tools/call", {"name": "count"})


async def test_a_listener_that_sends_a_body_too_large_ends_nobody_elses_session():
    async with listening(*SMALL_SERVER, options=SMALL) as there:
        session = (await there.post(initialize())).headers["mcp-session-id"]
        await stream_with_body(there.port, "/sse", b"endpoint")
        assert (await there.post(CALL, mcp_session_id=session)).status == 200


async def stream_with_body(port: int, path: str, begins: bytes) -> None:
    """Open a stream, and send a body that is too large once it has begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\naccept: text/event-stream\r\n"
    writer.write(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
    await reader.readuntil(begins)
    writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
    await reader.read()
    writer.close()


async def test_a_body_too_large_behind_a_forwarded_stream_ends_that_stream_alone(caplog):
    async def do(asked: Asked) -> None:
        if asked.method == "GET":
            await asked.events(event(), end=False)
            await asyncio.Event().wait()
        await asked.result({})

    async with Place(do).open() as place, listening(url=place.url, options=SMALL) as there:
        await stream_with_body(there.port, "/mcp", b"HTTP/1.1 200")
        assert (await there.post(CALL, mcp_session_id="s")).status == 200
    assert not [each for each in caplog.records if each.name == "folkmoot.http"]


async def test_a_page_of_another_origin_can_open_no_stream():
    async with listening(*SMALL_SERVER) as there:
        for path in ("/sse", "/mcp"):
            headers = {"origin": "https://elsewhere.example", "accept": "text/event-stream"}
            assert (await ask(there.port, path, headers=headers)).status == 403
        assert there.proxy.sessions.opened == 0


async def test_an_answer_passes_whatever_characters_its_headers_have():
    challenge = 'Bearer realm="Ωmega"'

    async def do(asked: Asked) -> None:
        await asked.say(401, www_authenticate=challenge, content_type="text/plain")

    async with Place(do).open() as place, listening(url=place.url) as there:
        answer = await there.post(CALL, mcp_session_id="s")
        assert answer.status == 401
        assert answer.headers["www-authenticate"].encode("latin-1").decode() == challenge


async def test_an_event_that_is_too_large_is_an_error_for_whoever_waits_for_it():
    async def do(asked: Asked) -> None:
        await asked.events(event(result(1, {"long": "x" * 5000})))

    limits = Limits(4096, 64)
    async with standing(do, limits=limits) as (proxy, _), proxy.stream("POST", CALL) as stream:
        _, told = await stream.message()
        assert (told["id"], told["error"]["data"]["code"]) == (1, "server_answer_invalid")


async def test_an_era_is_told_from_the_whole_answer_however_it_is_cut():
    async def do(asked: Asked) -> None:
        if asked.method != "POST" or asked.message["method"] == "initialize":
            await asked.say(405)
            return
        told = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}
        body = json.dumps(result(asked.message["id"], told)).encode()
        await asked.head(200, {"content-type": "application/json"})
        await asked.part(body[:10])
        await asyncio.sleep(0.05)
        await asked.part(body[10:])
        await asked.end()

    async with Place(do).open() as place, listening(url=place.url) as there:
        message, headers = stateless("tools/list")
        assert (await there.post(message, **headers)).status == 200
        # It is forwarded, and not carried in a conversation that bridges eras.
        assert there.proxy.sessions.opened == 0


def handshaking() -> Shaking:
    """A server of the handshake era that takes whoever opens a session for everyone in it."""

    async def whoami(asked: Asked) -> None:
        opener = server.opened[asked.headers["mcp-session-id"]]
        who = opener.headers.get("authorization", "nobody")
        await asked.result({"content": [{"type": "text", "text": who}]})

    server = Shaking(whoami, refusal=(400, "No session"))
    return server


async def test_clients_without_sessions_never_act_in_a_session_that_another_opened():
    server = handshaking()
    async with server.place.open() as place, listening(url=place.url) as there:
        for who in ("Bearer ann", "Bearer bob", "Bearer ann"):
            message, headers = stateless("tools/call", name="whoami")
            said = await there.post(message, authorization=who, **headers)
            assert said.json()["result"]["content"][0]["text"] == who
        openers = [each.headers.get("authorization") for each in server.opened.values()]
        assert sorted(filter(None, openers)) == ["Bearer ann", "Bearer bob"]


async def test_a_header_that_is_to_pass_tells_clients_apart_and_reaches_the_server():
    server, options = handshaking(), ProxyOptions(headers=("X-Key",))
    async with server.place.open() as place, listening(url=place.url, options=options) as there:
        for key in ("ann", "bob"):
            message, headers = stateless("tools/call", name="whoami")
            assert (await there.post(message, x_key=key, **headers)).status == 200
        greeted = [each for each in server.opened.values() if b'"initialize"' in each.body]
        assert [each.headers.get("x-key") for each in greeted] == ["ann", "bob"]


async def test_whoever_initializes_without_a_session_changes_the_era_for_nobody():
    async with listening(*SMALL_SERVER) as there:
        message, headers = stateless("initialize", **initialize()["params"])
        refused = await there.post(message, **headers)
        assert refused.status == 400
        assert refused.json()["error"]["data"]["code"] == "version_unsupported"
        message, headers = stateless("tools/call", name="count")
        served = await there.post(message, **headers)
        assert served.json()["result"]["resultType"] == "complete"


READS_NOTHING = python(
    """
import json, sys, time
print(json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-11-25",
      "capabilities": {}, "serverInfo": {"name": "deaf", "version": "1"}}}), flush=True)
time.sleep(600)
"""
)


async def test_a_session_ends_though_its_server_reads_nothing(monkeypatch):
    monkeypatch.setattr("folkmoot.relay.pump.DRAIN_SECONDS", 0.05)
    async with listening(*READS_NOTHING) as there:
        session = (await there.post(initialize())).headers["mcp-session-id"]
        told = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "x" * 200_000}}
        await there.post(told, mcp_session_id=session)
        await there.post(told, mcp_session_id=session)
        headers = {"mcp-session-id": session}
        assert (await ask(there.port, "/mcp", method="DELETE", headers=headers)).status == 204
        await until(lambda: not len(there.proxy.sessions))


async def test_a_server_that_never_answers_our_question_keeps_nobody_waiting_for_it(monkeypatch):
    monkeypatch.setattr("folkmoot.relay.era_switch.PROBE_SECONDS", 0.05)

    async def do(asked: Asked) -> None:
        if asked.message["method"] == "server/discover":
            await asyncio.Event().wait()
        await asked.result({"tools": [], "resultType": "complete"})

    async with Place(do).open() as place, listening(url=place.url) as there:
        message, headers = stateless("tools/list")
        assert (await there.post(message, **headers)).status == 200


@pytest.mark.parametrize("name", ["mcp-session-id", "authorization"])
async def test_what_two_readers_could_read_differently_goes_to_no_server(name):
    async with Place(agree).open() as place, listening(url=place.url) as there:
        twice = {name: "one", name.title(): "two", "content-type": "application/json"}
        body = json.dumps(CALL).encode()
        refused = await ask(there.port, "/mcp", method="POST", headers=twice, body=body)
        assert refused.status == 400
        assert not place.asked
