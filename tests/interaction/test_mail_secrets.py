"""What people wrote, and what opens their mailbox, is in no log, trace, metric, error or file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.keys import format_key, read_key
from folkmoot.operations import CATALOGUE
from tests.harness import Answer, ask
from tests.mail.support import spellings
from tests.mcp_harness import INITIALIZE, modern, rpc
from tests.process import Process
from tests.siege.wire import Line

BODIES = {
    "first": "PLANTED-SUBJECT-8d1f and the rest of the first letter",
    "reply": "PLANTED-REPLY-02c7",
    "long": "PLANTED-LONG-b3a9 " * 3_000,
    "pending": "PLANTED-PENDING-771e",
    "welcome": "PLANTED-WELCOME-4e0d",
    "refused": "PLANTED-REFUSED-c99b",
}
MARKS = [body.split()[0] for body in BODIES.values()]
SPOKEN = "PLANTED-SPOKEN-61f2"
"""Said in a room: whoever runs the hub may read it in the database, and nowhere else."""


class Request(NamedTuple):
    """A request that is refused."""

    method: str
    path: str
    headers: dict[str, str] = {}  # noqa: RUF012
    message: Any = None


class Collector:
    """Takes traces and keeps them as they came."""

    received = b""
    url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split()[0])
        self.received += await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()


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
    secrets = Secrets()
    async with Line(port) as stranger:
        alice = await stranger.call("msg_register", handle="alice")
        secrets.token, secrets.code = alice["token"], alice["recovery_code"]
        async with Line(port, secrets.token) as mine:
            pending = await mine.call("msg_invite", message=BODIES["pending"])
            invited = await mine.call("msg_invite", message=BODIES["welcome"])
            secrets.invite = pending["invite_code"]
            bob = await stranger.call(
                "msg_register", handle="bob", invite_code=invited["invite_code"]
            )
            sent = await mine.call("msg_send", to="bob", body=BODIES["first"])
            await mine.call("msg_send", to="bob", body=BODIES["long"], priority="urgent")
            async with Line(port, bob["token"]) as theirs:
                assert len((await theirs.call("msg_inbox"))["messages"]) == 3
                await theirs.call("msg_reply", message_id=sent["message_id"], body=BODIES["reply"])
                new = await stranger.call(
                    "msg_recover", handle="bob", recovery_code=bob["recovery_code"]
                )
            await mine.call("msg_threads")
            await mine.call("room_create", name="tea")
            guest = await mine.call("room_invite", room="tea", guest="zoe")
            unused = await mine.call("room_invite", room="tea", guest="yan")
            await mine.call("room_say", room="tea", text=SPOKEN)
            params = {"name": "chat.say", "arguments": {"text": SPOKEN}}
            await mine.call(
                "room_propose", room="tea", method="tools/call", params=params, reason=SPOKEN
            )
            assert SPOKEN in json.dumps(await mine.call("room_read", room="tea"))
    exchanged = await ask(
        port,
        "/v1/rooms/tea/guests",
        method="POST",
        headers={"content-type": "application/json"},
        body=json.dumps({"token": guest["token"]}).encode(),
    )
    secrets.others += [
        *(bob["token"], bob["recovery_code"], new["token"]),
        *(guest["token"], unused["token"], exchanged.json()["credential"]),
        invited["invite_code"],
    ]
    opened = await ask(
        port,
        f"/mcp?token={secrets.token}",
        method="POST",
        headers=JSON,
        body=json.dumps(INITIALIZE).encode(),
    )
    secrets.session = opened.headers["mcp-session-id"]
    return secrets


JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


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


def bad_requests(secrets: Secrets) -> Iterator[Request]:
    """Requests that are refused on every floor of the hub, with what is secret in them."""
    token = f"?token={secrets.token}"
    bearer = {"authorization": f"Bearer {secrets.token}"}
    session = {"mcp-session-id": secrets.session}
    for params in bad_calls(secrets):
        message, headers = modern("tools/call", **params)
        yield Request("POST", f"/mcp{token}", headers, message)
        yield Request("POST", f"/mcp{token}", session, rpc("tools/call", params))
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
        yield Request(method, path, headers, INITIALIZE if method == "POST" else None)
    for broken in (
        b"{" + secrets.token.encode(),
        b'{"jsonrpc": "2.0", "id": 1, "method": "' + secrets.token.encode() + b'\xff"}',
        rpc("nothing", {"token": secrets.token, "body": BODIES["refused"]}),
        {"jsonrpc": "2.0", "id": {}, "method": "tools/call", "params": {"a": BODIES["refused"]}},
        [rpc("tools/call", {"name": "msg_send", "arguments": {"body": BODIES["refused"]}})],
    ):
        for headers in ({}, session, modern("tools/call", name="msg_send")[1]):
            yield Request("POST", f"/mcp{token}", headers, broken)


async def refused(port: int, request: Request) -> Answer:
    message = request.message
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return await ask(
        port,
        request.path,
        method=request.method,
        headers={**JSON, **request.headers},
        body=b"" if message is None else body,
    )


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
    async with collector.listening():
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
            for request in bad_requests(secrets):
                answer = await refused(hub.port, request)
                assert not secrets.found_in(answer.text), (request, answer)
            for path in ("/metrics", "/health", "/health/ready", "/", f"/invite/{'A' * 22}"):
                answer = await ask(hub.port, path)
                assert not secrets.found_in(answer.text), path
            held = [await asyncio.to_thread(files, folder)]
            said = await asyncio.to_thread(hub.stop)
            held.append(await asyncio.to_thread(files, folder))
    assert "msg/send" in said
    assert not secrets.found_in(said)
    assert SPOKEN not in said
    assert b"/mcp" in collector.received
    assert SPOKEN.encode() not in collector.received
    assert not secrets.found_in(collector.received.decode("latin-1"))
    key = read_key(folder / "master.key")
    hidden = [secret.encode() for secret in secrets.all()] + [key.secret()]
    for content in held:
        assert b"alice" in content
        for secret in [*hidden, format_key(key).encode()]:
            assert not [spelling for spelling in spellings(secret) if spelling in content]
