"""HTTP on plain sockets, from an address of our choice; requests are bytes made beforehand."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Self

from tests.harness import Answer, read_answer
from tests.mcp_harness import INITIALIZE, modern, sse_json
from tests.mcp_harness import rpc as message
from tests.transports.websocket.support import handshake

HUB = "127.0.0.1"
ACCEPT: Final = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
# How a request ends that got no answer; a timeout is an `OSError`.
FAILURES: Final = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)

# A request that was given up may still be open in its session.
_ids = itertools.count(1)


def bearer(token: str) -> dict[str, str]:
    """The header of someone with a token."""
    return {"authorization": f"Bearer {token}"} if token else {}


def request(
    method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole HTTP request."""
    named = {"host": "127.0.0.1", **(headers or {})}
    if body or method != "GET":
        named.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


def rpc(
    method: str,
    params: Mapping[str, Any],
    *,
    token: str = "",
    session: str = "",
    path: str = "/mcp",
) -> bytes:
    """A POST to `/mcp`: of the handshake era in a session, else stateless."""
    sent, headers = modern(method, **params)
    if session:
        sent = message(method, dict(params), next(_ids))
        headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    return request("POST", path, json.dumps(sent).encode(), ACCEPT | bearer(token) | headers)


def call(tool: str, arguments: Mapping[str, Any], token: str = "", session: str = "") -> bytes:
    """A POST that calls a tool."""
    params = {"name": tool, "arguments": arguments}
    return rpc("tools/call", params, token=token, session=session)


def initialize(token: str = "") -> bytes:
    """A POST that opens a session of the handshake era."""
    return request("POST", "/mcp", json.dumps(INITIALIZE).encode(), ACCEPT | bearer(token))


def rest(method: str, path: str, token: str, body: Any = None) -> bytes:
    """A request to `/v1/rooms`."""
    data = b"" if body is None else json.dumps(body).encode()
    return request(method, f"/v1/rooms{path}", data, ACCEPT | bearer(token))


def upgrade(room: str, token: str = "") -> bytes:
    """The head that asks for a WebSocket."""
    return handshake(f"/ws?room={room}", bearer(token))


class Line:
    """A connection to a hub that is opened when it is needed, and again when it was closed."""

    def __init__(
        self, port: int, token: str = "", source: str = HUB, seconds: float | None = None
    ) -> None:
        self._port = port
        self._path = f"/mcp?token={token}" if token else "/mcp"
        self._source = source
        self._seconds = seconds
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def ask(self, raw: bytes) -> Answer:
        """Send a request and read the answer; an error closes the connection."""
        try:
            async with asyncio.timeout(self._seconds):
                if self._streams is None:
                    self._streams = await connect(self._port, self._source)
                reader, writer = self._streams
                writer.write(raw)
                answer = await read_answer(reader, chunks=True)
        except BaseException:
            self.close()
            raise
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    async def answer(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """The HTTP answer to one call of a tool."""
        params = {"name": tool, "arguments": arguments}
        return await self.ask(rpc("tools/call", params, path=self._path))

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool answers; a refusal raises."""
        payload: dict[str, Any] = json.loads(passed(await self.answer(tool, arguments)))
        return payload

    async def pages(self, tool: str, listed: str, **arguments: Any) -> Any:
        """Everything a tool lists, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            given = {"limit": 100, **arguments, **({"cursor": cursor} if cursor else {})}
            page = await self.call(tool, **given)
            for each in page[listed]:
                yield each
            cursor = page["next_cursor"]

    def close(self) -> None:
        """Close the connection at once."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def connect(
    port: int, source: str, *, receive_buffer: int = 0
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to a hub from an address."""
    made = socket.socket()
    made.setblocking(False)
    try:
        if receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        # The port is chosen when the connection is made, so that each address has all of them.
        with suppress(AttributeError, OSError):
            made.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
        made.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(made, (HUB, port))
    except BaseException:
        made.close()
        raise
    return await asyncio.open_connection(sock=made, limit=1 << 20)


async def registered(port: int, *handles: str) -> dict[str, str]:
    """The tokens of new accounts."""
    async with Line(port) as stranger:
        return {one: (await stranger.call("msg_register", handle=one))["token"] for one in handles}


async def history(port: int, token: str, room: str) -> list[Any]:
    """All that is kept of a room."""
    kept: list[Any] = []
    async with Line(port) as line:
        while True:
            after = kept[-1]["seq"] if kept else 0
            path = f"/{room}/messages?after={after}&limit=500"
            answer = await line.ask(rest("GET", path, token))
            assert answer.status == 200, answer
            if not (page := answer.json()["messages"]):
                return kept
            kept += page


def passed(answer: Answer) -> str:
    """The text of a tool's result; a refusal raises."""
    told = sse_json(answer) if answer.status == 200 else {}
    if "result" not in told or told["result"].get("isError"):
        raise Refused(f"{answer.status} {answer.body[:300]!r}")
    text: str = told["result"]["content"][0]["text"]
    return text


class Refused(AssertionError):
    """The hub answered a good person with an error."""
