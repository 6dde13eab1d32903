"""HTTP on plain sockets, from an address of our choice; requests are bytes made beforehand."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

HUB = "127.0.0.1"
VERSION: Final = "2026-07-28"
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "siege", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT: Final = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
FAILURES: Final = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)
"""How a request ends that got no answer; a timeout is an `OSError`."""


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON, of an event stream its first message."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            lines = self.body.decode().splitlines()
            return json.loads(next(one for one in lines if one.startswith("data: {"))[6:])
        return json.loads(self.body)


def request(
    method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole HTTP request."""
    named = {"host": "127.0.0.1", **(headers or {})}
    if body or method != "GET":
        named.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


def rpc(method: str, params: Any, *, token: str = "", session: str = "") -> bytes:
    """A POST to `/mcp`: of the handshake era with a session or `initialize`, else stateless."""
    headers = dict(ACCEPT)
    if token:
        headers["authorization"] = f"Bearer {token}"
    if session:
        headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    elif method != "initialize":
        headers |= {"mcp-protocol-version": VERSION, "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = params["name"]
        params = {"_meta": META, **params}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return request("POST", "/mcp", json.dumps(message).encode(), headers)


def call(tool: str, arguments: Mapping[str, Any], token: str = "", session: str = "") -> bytes:
    """A POST that calls a tool."""
    params = {"name": tool, "arguments": arguments}
    return rpc("tools/call", params, token=token, session=session)


def initialize(token: str = "", capabilities: Mapping[str, Any] | None = None) -> bytes:
    """A POST that opens a session of the handshake era."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities or {},
        "clientInfo": {"name": "siege", "version": "1"},
    }
    return rpc("initialize", params, token=token)


def rest(method: str, path: str, token: str, body: Any = None) -> bytes:
    """A request to `/v1/rooms`."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    data = b"" if body is None else json.dumps(body).encode()
    return request(method, f"/v1/rooms{path}", data, headers)


def upgrade(room: str, token: str = "") -> bytes:
    """The head that asks for a WebSocket."""
    headers = {
        "upgrade": "websocket",
        "connection": "upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    if token:
        headers["authorization"] = f"Bearer {token}"
    return request("GET", f"/ws?room={room}", b"", headers)


def frame(payload: bytes) -> bytes:
    """A text frame of a client, with a mask that changes nothing."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65_536:
        length = bytes([0xFE]) + size.to_bytes(2, "big")
    else:
        length = bytes([0xFF]) + size.to_bytes(8, "big")
    return b"\x81" + length + bytes(4) + payload


class Line:
    """A connection to a hub that is opened when it is needed, and again when it was closed."""

    def __init__(self, port: int, source: str, seconds: float = 10.0) -> None:
        self._port = port
        self._source = source
        self._seconds = seconds
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, raw: bytes) -> Answer:
        """Send a request and read the answer; an error closes the connection."""
        try:
            async with asyncio.timeout(self._seconds):
                if self._streams is None:
                    self._streams = await connect(self._port, self._source)
                reader, writer = self._streams
                writer.write(raw)
                answer = await read_answer(reader)
        except BaseException:
            self.close()
            raise
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

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


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one answer, with a length or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    headers = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
    body = b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(int(first.split()[1]), headers, body)


def result(answer: Answer) -> dict[str, Any]:
    """What a tool answered; a refusal raises."""
    if answer.status != 200:
        raise Refused(f"{answer.status} {answer.body[:300]!r}")
    told = answer.json()
    if "result" not in told or told["result"].get("isError"):
        raise Refused(str(told)[:300])
    payload: dict[str, Any] = json.loads(told["result"]["content"][0]["text"])
    return payload


class Refused(Exception):
    """The hub answered a good person with an error."""
