"""What people wrote, and what opens their mailbox, is in no log, trace, metric, error or file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.keys import format_key, read_key
from folkmoot.operations import CATALOGUE
from tests.cli.scripted import served
from tests.harness import Answer, ask
from tests.mail.support import spellings
from tests.mcp_harness import BOTH, INITIALIZE, call_tool, modern, payload, rpc
from tests.process import Process
from tests.telemetry.test_traces import Collector

BODIES = {
    "first": "PLANTED-SUBJECT-8d1f and the rest of the first letter",
    "reply": "PLANTED-REPLY-02c7",
    "long": "PLANTED-LONG-b3a9 " * 3_000,
    "pending": "PLANTED-PENDING-771e",
    "welcome": "PLANTED-WELCOME-4e0d",
    "refused": "PLANTED-REFUSED-c99b",
}
MARKS = [body.split()[0] for body in BODIES.values()]
# Said in a room: whoever runs the hub may read it in the database, and nowhere else.
SPOKEN = "PLANTED-SPOKEN-61f2"


class Secrets:
    """What must be found nowhere."""

    def __init__(self) -> None:
        self.token = ""
        self.code = ""
        self.invite = ""
        self.session = ""
        self.others: list[str] = []

    def all(self) -> list[str]:
        """Everything, as people and programs write it."""
        codes = [self.code, self.code.replace("-", ""), self.code.lower()]
        return [*MARKS, self.token, *codes, self.invite, self.session, *self.others]

    def found_in(self, text: str) -> list[str]:
        """Those that a text holds."""
        return [secret for secret in self.all() if secret in text]


async def use(port: int) -> Secrets:
    """Register, invite, write, read and answer, as two people do."""

    async def call(token: str, tool: str, /, **arguments: Any) -> Any:
        told = payload(await call_tool(port, token, tool, **arguments))
        assert "error" not in told, told
        return told

    async def post(path: str, message: Any) -> Answer:
        return await ask(port, path, method="POST", headers=BOTH, body=json.dumps(message).encode())

    secrets = Secrets()
    alice = await call("", "msg_register", handle="alice")
    mine, secrets.code = alice["token"], alice["recovery_code"]
    secrets.token = mine
    secrets.invite = (await call(mine, "msg_invite", message=BODIES["pending"]))["invite_code"]
    invited = (await call(mine, "msg_invite", message=BODIES["welcome"]))["invite_code"]
    bob = await call("", "msg_register", handle="bob", invite_code=invited)
    sent = await call(mine, "msg_send", to="bob", body=BODIES["first"])
    await call(mine, "msg_send", to="bob", body=BODIES["long"], priority="urgent")
    assert len((await call(bob["token"], "msg_inbox"))["messages"]) == 3
    answered = {"message_id": sent["message_id"], "body": BODIES["reply"]}
    await call(bob["token"], "msg_reply", **answered)
    new = await call("", "msg_recover", handle="bob", recovery_code=bob["recovery_code"])
    await call(mine, "msg_threads")
    await call(mine, "room_create", name="tea")
    guest, unused = [
        (await call(mine, "room_invite", room="tea", guest=name))["token"]
        for name in ("zoe", "yan")
    ]
    await call(mine, "room_say", room="tea", text=SPOKEN)
    params = {"name": "chat.say", "arguments": {"text": SPOKEN}}
    proposed = {"method": "tools/call", "params": params, "reason": SPOKEN}
    await call(mine, "room_propose", room="tea", **proposed)
    assert SPOKEN in json.dumps(await call(mine, "room_read", room="tea"))
    exchanged = (await post("/v1/rooms/tea/guests", {"token": guest})).json()["credential"]
    secrets.others += [
        *(bob["token"], bob["recovery_code"], new["token"], guest, unused, exchanged, invited)
    ]
    secrets.session = (await post(f"/mcp?token={mine}", INITIALIZE)).headers["mcp-session-id"]
    return secrets


def bad_calls(secrets: Secrets) -> Iterator[dict[str, Any]]:
    """Arguments of every tool that are wrong and hold what is secret."""
    body = BODIES["refused"]
    for tool in CATALOGUE.tools:
        for arguments in (
            {"handle": secrets.token, "body": body, "to": secrets.token},
            {secrets.token: body},
            {name: [secrets.token, body] for name in tool.schema["properties"]},
            dict.fromkeys(tool.schema["properties"], secrets.code + body),
        ):
            if arguments:
                yield {"name": tool.name, "arguments": arguments}


def bad_requests(secrets: Secrets) -> Iterator[tuple[str, str, dict[str, str], Any]]:
    """Requests that are refused on every floor of the hub, with what is secret in them."""
    token = f"?token={secrets.token}"
    bearer = {"authorization": f"Bearer {secrets.token}"}
    session = {"mcp-session-id": secrets.session}
    for params in bad_calls(secrets):
        message, headers = modern("tools/call", **params)
        yield ("POST", f"/mcp{token}", headers, message)
        yield ("POST", f"/mcp{token}", session, rpc("tools/call", params))
    for method, path, headers in (
        ("GET", f"/mcp{token}", {}),
        ("GET", f"/mcp{token}", {"mcp-session-id": "0" * 32}),
        ("DELETE", f"/mcp{token}", {"mcp-session-id": "0" * 32}),
        ("DELETE", "/mcp", session),
        ("PUT", f"/mcp{token}", bearer),
        ("POST", f"/mcp{token}", {**bearer, "host": "evil.example"}),
        ("POST", f"/mcp{token}", {**bearer, "origin": "https://evil.example"}),
        ("POST", f"/mcp{token}", {"content-length": "99999999"}),
        ("POST", f"/mcp{token}", {"authorization": f"Bearer {secrets.others[0]}"}),
        ("POST", f"/mcp?token={secrets.others[0]}", {}),
        ("POST", f"/mcp{token}&token={secrets.others[0]}", {}),
        ("GET", f"/nowhere/{secrets.token}{token}", bearer),
        ("GET", f"/invite/{secrets.token}", {}),
        ("GET", f"/invite/{secrets.others[-1]}", {}),
        ("POST", f"/invite/{secrets.invite}", {}),
        ("GET", f"/health/{secrets.code}{token}", {"accept": "text/html"}),
        ("DELETE", f"/metrics{token}", bearer),
        ("POST", "/mcp", {"authorization": f"Bearer {secrets.others[3]}"}),
        ("POST", f"/mcp?token={secrets.others[5]}", {}),
        ("GET", f"/ws?room=tea&token={secrets.others[3]}", {}),
        ("GET", f"/v1/rooms/{secrets.token}{token}", {}),
        ("GET", "/v1/rooms", {"authorization": f"Bearer {secrets.others[3]}"}),
    ):
        yield (method, path, headers, INITIALIZE if method == "POST" else None)
    for broken in (
        b"{" + secrets.token.encode(),
        b'{"jsonrpc": "2.0", "id": 1, "method": "' + secrets.token.encode() + b'\xff"}',
        rpc("nothing", {"token": secrets.token, "body": BODIES["refused"]}),
        {"jsonrpc": "2.0", "id": {}, "method": "tools/call", "params": {"a": BODIES["refused"]}},
        [rpc("tools/call", {"name": "msg_send", "arguments": {"body": BODIES["refused"]}})],
    ):
        for headers in ({}, session, modern("tools/call", name="msg_send")[1]):
            yield ("POST", f"/mcp{token}", headers, broken)


def files(folder: Path) -> bytes:
    """Everything in the data folder but the key, which is secret as a whole."""
    names = ("folkmoot.db", "folkmoot.db-wal", "folkmoot.db-shm")
    return b"".join((folder / name).read_bytes() for name in names if (folder / name).exists())


@pytest.mark.requirement(
    "auth.token-never-logged", "rest.no-body-in-audit", "rest.no-plaintext", "auth.token-hashed"
)
@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.timeout(250)
async def test_no_secret_is_in_any_log_trace_metric_error_or_file_of_a_hub(log_format, tmp_path):
    folder = tmp_path / "data"
    collector = Collector()
    with served(collector.answer) as collector.url:
        hub = await asyncio.to_thread(
            Process,
            folder,
            FOLKMOOT_LOG_LEVEL="debug",
            FOLKMOOT_LOG_REQUESTS="all",
            FOLKMOOT_LOG_FORMAT=log_format,
            FOLKMOOT_RATE_LIMITS="off",
            FOLKMOOT_TELEMETRY_OTLP_ENDPOINT=collector.url,
        )
        with hub:
            secrets = await use(hub.port)
            pages = ("/metrics", "/health", "/health/ready", "/", f"/invite/{'A' * 22}")
            asked = [*bad_requests(secrets), *(("GET", path, {}, None) for path in pages)]
            for method, path, headers, message in asked:
                body = message if isinstance(message, bytes) else json.dumps(message).encode()
                named = {**BOTH, **headers}
                sent = b"" if message is None else body
                answer = await ask(hub.port, path, method=method, headers=named, body=sent)
                assert not secrets.found_in(answer.text), (method, path, headers, message, answer)
            held = [await asyncio.to_thread(files, folder)]
            said = await asyncio.to_thread(hub.stop)
            held.append(await asyncio.to_thread(files, folder))
    assert "msg/send" in said
    assert not secrets.found_in(said)
    assert SPOKEN not in said
    assert b"/mcp" in collector.raw
    assert SPOKEN.encode() not in collector.raw
    assert not secrets.found_in(collector.raw.decode("latin-1"))
    key = read_key(folder / "master.key")
    hidden = [secret.encode() for secret in secrets.all()] + [key.secret()]
    for content in held:
        assert b"alice" in content
        for secret in [*hidden, format_key(key).encode()]:
            assert not [spelling for spelling in spellings(secret) if spelling in content]
