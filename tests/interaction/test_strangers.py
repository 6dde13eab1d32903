"""What whoever has no account can make a hub spend: little memory, little time, few connections."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import Any

import pytest

from folkmoot.core import strict
from folkmoot.transports.limits import MAX_DECLARATION_BYTES
from folkmoot.transports.mcp.admission import reduce_declared
from tests.harness import Answer, ask, head, reached, read_answer
from tests.mcp_harness import BOTH, META, MODERN, Meeting, meeting, rpc

STATELESS = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
WRONG = {"authorization": "Bearer sk_" + "0" * 32}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SHOWN = {"name": "x", "version": "1"}


def opening(**declared: Any) -> dict[str, Any]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": SHOWN, **declared}
    return rpc("initialize", params)


def experimental(members: int) -> dict[str, Any]:
    return {"experimental": {f"{number:06x}": {} for number in range(members)}}


def packed(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


async def head_only(port: int, path: str, headers: dict[str, str]) -> Answer:
    """The answer to a request whose large body is announced and never sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with closing(writer):
        writer.write(head(path, "POST", **BOTH, **headers, **{"content-length": "3600000"}))
        return await read_answer(reader)


async def test_a_large_body_is_read_only_from_those_who_are_signed_in(hub):
    made = await hub.hub.accounts.register("ada")
    for path in ("/mcp", "/v1/rooms", f"/mcp?token={WRONG['authorization'][7:]}"):
        for headers in ({}, WRONG) if "?" not in path else ({},):
            answer = await head_only(hub.port, path, headers)
            assert answer.status == 413
            assert "Without a valid token" in answer.text
    large = rpc("tools/call", {"name": "msg_send", "arguments": {"body": "x" * 100_000}})
    for query, headers in (
        (f"?token={made.token}", {}),
        ("", {"authorization": f"Bearer {made.token}"}),
    ):
        assert (await hub.post(large, query=query, headers=headers)).status != 413


@pytest.mark.one_node("another node takes the session for a stranger's when it bounds the body")
async def test_a_session_that_registered_is_signed_in_without_a_token(hub):
    session = {"mcp-session-id": (await hub.post(opening())).headers["mcp-session-id"]}
    await hub.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
    large = rpc("tools/call", {"name": "msg_send", "arguments": {"body": "x" * 100_000}})
    assert (await hub.post(large, headers=session)).status == 413
    register = {"name": "msg_register", "arguments": {"handle": "ada"}}
    assert b"recovery_code" in (await hub.post(rpc("tools/call", register), headers=session)).body
    assert (await hub.post(large, headers=session)).status == 200


async def test_crafted_messages_are_refused_without_being_decoded(tmp_path, monkeypatch):
    crafted = {
        "capabilities": (packed(opening(capabilities=experimental(3_000))), 413),
        "keys": (packed({**rpc("ping"), **{f"{n:x}": 1 for n in range(4_000)}}), 413),
        "batch": (packed([rpc("ping")] * 100), 400),
        "number": (b'{"jsonrpc":"2.0","id":1,"method":"ping","n":' + b"9" * 60_000 + b"}", 413),
    }
    meta = {**META, CAPABILITIES: experimental(3_000)}
    # A hub that records decodes each message before anyone is authenticated.
    async with meeting(tmp_path, record={"folder": str(tmp_path / "tapes")}) as there:
        decoded: list[bytes] = []
        decode = strict.decode

        def watched(raw: bytes, *rest: Any, **named: Any) -> Any:
            decoded.append(raw)
            return decode(raw, *rest, **named)

        monkeypatch.setattr(strict, "decode", watched)
        for body, status in crafted.values():
            assert (await there.post(body)).status == status
        body = packed(rpc("tools/list", {"_meta": meta}))
        assert (await there.post(body, headers=STATELESS)).status == 413
        assert decoded == []
        assert (await there.post(opening())).status == 200
        assert decoded
        assert there.hub.mcp.open_sessions == 1


async def test_of_a_long_declaration_only_the_flags_remain(hub):
    flags = {"elicitation": {"form": {}}, "roots": {"listChanged": True}}
    apps = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
    capabilities = {**experimental(300), **flags, "extensions": {**apps, "x": {"y": "z" * 9_000}}}
    shown = {**SHOWN, "icons": [{"src": "data:image/png;base64," + "A" * 30_000}]}
    reduced = reduce_declared(packed(opening(capabilities=capabilities, clientInfo=shown)))
    assert json.loads(reduced) == opening(
        capabilities={**flags, "extensions": apps}, clientInfo=SHOWN
    )
    meta = {**META, CAPABILITIES: capabilities, "mine": "x" * 5_000}
    call = {"name": "x", "arguments": {"a": 1}, "_meta": meta}
    assert json.loads(reduce_declared(packed(rpc("tools/call", call)))) == rpc(
        "tools/call", {**call, "_meta": {**meta, CAPABILITIES: {**flags, "extensions": apps}}}
    )
    usual = packed(opening(capabilities={**flags, "experimental": {"x": {"y": 1}}}))
    assert len(usual) < MAX_DECLARATION_BYTES
    assert reduce_declared(usual) is usual
    answer = await hub.post(opening(capabilities=capabilities, clientInfo=shown))
    assert answer.status == 200
    named = "x" * 60_000
    answer = await hub.post(opening(clientInfo={"name": named, "version": "1"}))
    assert answer.status == 200
    answer = await hub.post(opening(protocolVersion=named))
    assert answer.status == 413


@pytest.mark.one_node("looks at the sessions of one node")
@pytest.mark.settings(mcp={"max_session_bytes": 1048576})
async def test_sessions_of_strangers_make_room_for_each_other_and_for_people(hub: Meeting):
    # Room for 42, five of them strangers'.
    query = f"?token={(await hub.hub.accounts.register('ada')).token}"
    mine = await hub.post(opening(), query=query)
    assert mine.status == 200
    strangers = [await hub.post(opening()) for _ in range(8)]
    assert {answer.status for answer in strangers} == {200}
    assert hub.hub.mcp.open_sessions == 6
    ping = {"mcp-session-id": mine.headers["mcp-session-id"]}
    assert (await hub.post(rpc("ping"), query=query, headers=ping)).status == 200
    statuses = [
        (
            await hub.post(rpc("ping"), headers={"mcp-session-id": each.headers["mcp-session-id"]})
        ).status
        for each in strangers
    ]
    assert statuses == [404] * 3 + [200] * 5


@pytest.mark.settings(http={"max_connections": 100, "max_connections_per_address": 30})
async def test_slow_bodies_of_one_address_keep_nobody_else_away(hub):
    query = f"?token={(await hub.hub.accounts.register('ada')).token}"
    slow: list[asyncio.StreamWriter] = []
    for number in range(101):
        _, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        writer.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 60000\r\n\r\nx")
        slow.append(writer)
        if number % 10 == 0:
            assert (await ask(hub.port, "/health")).status == 200
            assert (await hub.post(opening(), query=query)).status == 200
    stranger = await ask(hub.port, "/", headers={"host": "localhost"}, source="127.0.0.2")
    assert stranger.status == 200
    for writer in slow:
        writer.close()
    await reached(lambda: hub.hub.metrics.in_flight == 0)
