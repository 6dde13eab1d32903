"""Requests nobody should send: they harm nobody else, and tell nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import ask
from tests.mcp_harness import (
    INITIALIZE,
    META,
    MODERN,
    Meeting,
    both_eras,
    meeting,
    modern,
    one_era,
    rpc,
    sse_json,
)

ERA_HEADERS: dict[str, dict[str, str]] = {
    "handshake": {},
    "stateless": {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"},
}


@one_era
async def test_a_body_of_ten_megabytes_is_refused_before_it_is_read(era: str, hub: Meeting) -> None:
    alice = await hub.person("alice")
    large = json.dumps(rpc("tools/call", {"name": "msg_send", "x": "x" * 10_000_000}))
    answer = await hub.post(large.encode(), query=f"?token={alice.token}", headers=ERA_HEADERS[era])
    assert answer.status == 413
    assert (await alice.call("msg/whoami"))["handle"] == "alice"


@one_era
async def test_a_body_of_ten_megabytes_that_does_not_say_so_is_refused_all_the_same(
    era: str, tmp_path: Path
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"x": "'
        for _ in range(160):
            yield b"x" * 65_536
        yield b'"}}'

    async with meeting(tmp_path, era) as there:
        alice = await there.person("alice")
        named = {"content-type": "application/json", **ERA_HEADERS[era]}
        async with httpx2.AsyncClient(verify=False) as http:
            answer = await http.post(
                f"{there.url}?token={alice.token}", headers=named, content=pieces()
            )
        assert answer.status_code == 413
        assert (await alice.call("msg/whoami"))["handle"] == "alice"


BAD_BODIES = {
    "nothing": b"",
    "half": b'{"jsonrpc": "2.0", "id": 1,',
    "text": b"hello",
    "not UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
    "a batch": b"[]",
    "a number": b"7",
    "null": b"null",
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "deep": b"[" * 1_500,
    "deep objects": b'{"a":' * 1_500,
    "another version": b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
    "an id that is none": b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    "digits without end": b'{"jsonrpc": "2.0", "id": ' + b"9" * 300 + b', "method": "ping"}',
}


@pytest.mark.parametrize("name", BAD_BODIES)
@both_eras
async def test_what_is_not_a_message_is_a_bad_request(era: str, name: str, hub: Meeting) -> None:
    answer = await hub.post(BAD_BODIES[name], headers=ERA_HEADERS[era])
    assert answer.status == 400, answer
    assert answer.json()["error"]["code"] < 0
    assert "Traceback" not in answer.text
    health = await ask(hub.port, "/health")
    assert health.status == 200


@pytest.mark.requirement("mcp.host-origin")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.settings(http={"allowed_hosts": ["hub.example"]})
async def test_a_foreign_host_or_origin_is_refused(method: str, hub: Meeting) -> None:
    alice = await hub.person("alice")
    query = f"?token={alice.token}"
    body = json.dumps(INITIALIZE).encode() if method == "POST" else b""
    answers = [
        await hub.ask(method, query=query, headers={"host": host}, body=body)
        for host in ("evil.example", "127.0.0.1.evil.example", "hub.example.evil")
    ]
    assert {answer.status for answer in answers} == {421}
    for origin in ("https://evil.example", "null", "http://localhost.evil.example"):
        headers = {"origin": origin}
        answer = await hub.ask(method, query=query, headers=headers, body=body)
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    for fine in ({"host": "hub.example"}, {"origin": hub.hub.base_url}):
        answer = await hub.ask(method, query=query, headers=fine, body=body)
        assert answer.status in {200, 400}


@pytest.mark.requirement("mcp.host-origin")
async def test_pages_of_an_allowed_origin_may_use_the_endpoint(tmp_path: Path) -> None:
    origin = "https://app.example"
    async with meeting(tmp_path, http={"allowed_origins": [origin]}) as there:
        asked = {
            "origin": origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "mcp-session-id",
        }
        preflight = await there.ask("OPTIONS", headers=asked)
        assert preflight.status == 200
        assert preflight.headers["access-control-allow-origin"] == origin
        answer = await there.post(INITIALIZE, headers={"origin": origin})
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin
        assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
        foreign = await there.post(INITIALIZE, headers={"origin": "https://other.example"})
        assert foreign.status == 403


@both_eras
async def test_text_that_is_no_text_is_named_and_kept_out(era: str, hub: Meeting) -> None:
    alice = await hub.person("alice")
    for arguments in (
        {"to": "bob", "body": "half \ud800 of a pair"},
        {"to": "bob", "body": "x", "\udfff": "x"},
        {"to": "bob", "encrypted_payload": {"ciphertext": "\ud800"}},
    ):
        params = {"name": "msg_send", "arguments": arguments}
        message: Any = rpc("tools/call", params)
        headers = {}
        if era == "stateless":
            message, headers = modern("tools/call", **params)
        else:
            opened = await hub.post(INITIALIZE, query=f"?token={alice.token}")
            headers = {"mcp-session-id": opened.headers["mcp-session-id"]}
        answer = await hub.post(message, query=f"?token={alice.token}", headers=headers)
        assert answer.status in {200, 400}
        if answer.status == 200:
            told = answer.json() if era == "stateless" else sse_json(answer)
            assert told["result"]["isError"] is True


@pytest.mark.requirement("crypto.body-is-utf8")
@one_era
async def test_every_plane_of_unicode_arrives_unchanged(era: str, hub: Meeting) -> None:
    alice, bob = await hub.people("alice", "bob")
    body = "\x00\x01\x7f\u2028\ufeff\uffff" + "".join(
        chr((plane << 16) + 0x41) for plane in range(17)
    )
    await alice.call("msg/send", to="bob", body=body)
    (message,) = (await bob.call("msg/inbox"))["messages"]
    assert message["body"] == body
    sentence = await alice.refused("msg/send", to="bob", body="x" * 1_000_000)
    assert sentence.startswith("body has 1,000,000 characters; at most 100,000 are allowed.")
    assert await alice.refused("msg/send", to="bob", body="") == "body must not be empty."


@one_era
async def test_two_who_register_one_handle_at_the_same_moment_get_it_once(
    era: str, hub: Meeting
) -> None:
    strangers = [await hub.stranger() for _ in range(4)]
    results = await asyncio.gather(
        *(each.result("msg/register", {"handle": "alice"}) for each in strangers)
    )
    assert sorted(is_error for _, is_error in results) == [False, True, True, True]
    assert {p["error"] for p, is_error in results if is_error} == {"Handle already taken."}


@pytest.mark.requirement("auth.token-never-logged")
@both_eras
async def test_no_token_code_or_session_is_in_any_log_error_or_metric(
    era: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        secrets: list[str] = []
        async with meeting(tmp_path, era) as there:
            stranger = await there.stranger()
            made = await stranger.call("msg/register", handle="alice")
            alice = await there.returning(made["token"])
            invited = await alice.call("msg/invite", message="A secret greeting")
            secrets += [made["token"], made["recovery_code"], invited["invite_code"]]
            bob = await there.person("bob", invite_code=invited["invite_code"])
            await alice.call("msg/send", to="bob", body="A secret letter")
            assert len((await bob.call("msg/inbox"))["messages"]) == 2
            secrets += ["A secret greeting", "A secret letter"]
            opened = await there.post(INITIALIZE, query=f"?token={made['token']}")
            session_id = opened.headers["mcp-session-id"]
            headers = {"mcp-session-id": session_id}
            secrets.append(session_id)
            answers = [
                await there.post(b"{", query=f"?token={made['token']}", headers=headers),
                await there.post(INITIALIZE, query=f"?token={made['token']}x", headers=headers),
                await there.post({**INITIALIZE, "id": {}}, query=f"?token={made['token']}"),
                await there.post(
                    rpc("nothing/at-all", {"_meta": META}),
                    query=f"?token={made['token']}",
                    headers={"mcp-protocol-version": made["token"]},
                ),
                await there.ask("DELETE", query=f"?token={made['token']}", headers=headers),
                await there.ask("DELETE", query=f"?token={made['token']}", headers=headers),
                await ask(there.port, "/metrics"),
            ]
            told = [answer.text for answer in answers[:3] + answers[4:]]
            assert not [text for text in told for secret in secrets if secret in text]
            unknown = await alice.refused("msg/send", **{made["token"]: 1, "to": "x"})
            assert made["token"] not in unknown
    ours = [r for r in caplog.records if not r.name.startswith(("client", "mcp.client", "httpx"))]
    ours = [r for r in ours if r.name.partition(".")[0] not in {"httpx2", "httpcore2", "asyncio"}]
    assert ours
    for record in ours:
        text = f"{record.getMessage()} {record.__dict__}"
        assert not [secret for secret in secrets if secret in text], record


@pytest.mark.one_node("breaks one")
@both_eras
async def test_a_failure_of_the_hub_is_told_without_details(
    era: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with meeting(tmp_path, era) as there:
        alice = await there.person("alice")
        await alice.call("msg/whoami")
        await there.hub.store.close()
        sentence = await alice.refused("msg/send", to="bob", body="x")
        assert sentence == "The store is closing or closed."
        there.hub.mail.__dict__.clear()
        sentence = await alice.refused("msg/digest")
        assert sentence.startswith(
            "The hub failed to answer. Its log has the details under the id "
        )
    assert "a tool failed" in caplog.text
