"""A hostile MCP server behind the hub: its tools answer as no server should.

`python -m tests.siege.rogue` listens on a free port of loopback, prints it, and serves until its
standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

import uvloop

from benchmarks.proxy_peer import DISCOVERED, SCHEMA

BYTES_PER_SECOND: Final = 2_000_000
PORTION: Final = 20_000
PORTIONS_PER_SECOND: Final = BYTES_PER_SECOND / PORTION
MOST_SECONDS: Final = 30

CHUNKED: Final = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: %b\r\n\r\n"
JSON, EVENTS = CHUNKED % b"application/json", CHUNKED % b"text/event-stream"

PLAIN: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def one_by_one(data: bytes) -> bytes:
    """A chunk for each byte."""
    return b"".join(b"1\r\n%c\r\n" % byte for byte in data)


def filled(piece: bytes) -> bytes:
    """As often as fits a portion."""
    return piece * max(1, PORTION // len(piece))


# What each tool begins its answer with, and then writes without end.
HOSTILE: Final = {
    "chunks": (JSON + one_by_one(b'{"jsonrpc":"2.0","x":"'), filled(b"1\r\nx\r\n")),
    "comments": (EVENTS, chunk(filled(b":\n"))),
    "event_chunks": (EVENTS + one_by_one(b"data: "), filled(b"1\r\nx\r\n")),
    "empty_events": (EVENTS, chunk(filled(b"event: x\n\n"))),
    "data_lines": (EVENTS, chunk(filled(b"data:\n"))),
    "headers": (b"HTTP/1.1 200 OK\r\n", filled(b"a:b\r\n")),
    "interim": (b"", filled(b"HTTP/1.1 103 Early Hints\r\n\r\n")),
    "notices": (
        EVENTS,
        chunk(filled(b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')),
    ),
}


async def read_request(reader: asyncio.StreamReader) -> Any:
    """A request's message; nothing where it has none."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next((one for one in head.split(b"\r\n") if one.startswith(b"content-length:")), b":0")
    body = await reader.readexactly(int(length.partition(b":")[2]))
    return json.loads(body) if body else None


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer what comes on one connection."""
    try:
        while True:
            message = await read_request(reader)
            method = message["method"] if message else ""
            if method == "tools/call" and message["params"]["name"] in HOSTILE:
                head, piece = HOSTILE[message["params"]["name"]]
                writer.write(head)
                for _ in range(int(MOST_SECONDS * PORTIONS_PER_SECOND)):
                    if writer.is_closing():
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(1 / PORTIONS_PER_SECOND)
                return
            tools = [{"name": name, "inputSchema": SCHEMA} for name in HOSTILE]
            listed = {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            unknown = {"error": {"code": -32601, "message": "Method not found"}}
            said = {"server/discover": {"result": DISCOVERED}, "tools/list": {"result": listed}}
            identity = message["id"] if message and "id" in message else None
            answered = {"jsonrpc": "2.0", "id": identity, **said.get(method, unknown)}
            told = json.dumps(answered).encode()
            writer.write(PLAIN % len(told) + told)
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.transport.abort()


async def main() -> None:
    """Serve until standard input closes; its first line is a setup, and empty."""
    sys.stdin.readline()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, over.set)
    await over.wait()


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
