"""Who stands behind a proxy that is measured, and the pipe beside it; the standard library alone.

`python proxy_peer.py answer CORE [ERA]` is a server on standard input and output that does next to
nothing; `python proxy_peer.py pipe CORE COMMAND...` copies bytes to such a server and back, and
looks at none of them. CORE is a processor, or `-` for any; ERA is `stateless`, if it is not said,
or `handshake`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

CHUNK = 65_536
TEXT = "All is well here, and the bread is in the oven; come by when you can. " * 3
CALLED = b'{"jsonrpc":"2.0","id":'
ANSWER = b'{"jsonrpc":"2.0","id":%%b,"result":%b}'
UNKNOWN = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"Method not found"}}'
MODERN = "2026-07-28"
SCHEMA = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What to say."}},
    "required": ["message"],
}
STATELESS, HANDSHAKE = "stateless", "handshake"
DISCOVERED: dict[str, Any] = {
    "supportedVersions": [MODERN, "2025-11-25"],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "peer", "version": "1"},
    "resultType": "complete",
}
CALLED_RESULT: dict[str, Any] = {
    "content": [{"type": "text", "text": TEXT}],
    "resultType": "complete",
}


def answers(era: str = STATELESS, tools: int = 1) -> dict[str, bytes]:
    """What a server of this era with so many tools says to each method."""
    names = ["echo", *(f"echo_{number}" for number in range(1, tools))]
    listed = [
        {"name": name, "description": "Says it again.", "inputSchema": SCHEMA} for name in names
    ]
    results: dict[str, Any] = {"tools/list": {"tools": listed}, "tools/call": CALLED_RESULT}
    if era == STATELESS:
        results["tools/list"] |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        results["server/discover"] = DISCOVERED
    told = {
        method: ANSWER % json.dumps(result, separators=(",", ":")).encode()
        for method, result in results.items()
    }
    return {"server/discover": UNKNOWN, **told}


ANSWERED = answers()
CALL = ANSWERED["tools/call"]


def answer(line: bytes, answered: dict[str, bytes] = ANSWERED) -> bytes | None:
    """The answer to a message, if it wants one; a call that is written as ours are is not read."""
    if line.startswith(CALLED) and b'"method":"tools/call"' in line:
        return CALL % line[len(CALLED) : line.index(b",", len(CALLED))]
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        return None
    method, identity = message["method"], json.dumps(message["id"]).encode()
    if method == "initialize":
        agreed = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer", "version": "1"},
        }
        return (ANSWER % json.dumps(agreed).encode()) % identity
    return answered.get(method, ANSWER % b"{}") % identity


def serve(era: str = STATELESS) -> None:
    """Answer until nobody asks any more."""
    answered = answers(era)
    rest = b""
    while chunk := os.read(0, CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        said = [told for line in lines if (told := answer(line, answered)) is not None]
        if said:
            write_all(1, b"\n".join(said) + b"\n")


def write_all(fd: int, data: bytes) -> None:
    """Write everything."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def copy(source: int, target: int) -> None:
    """Copy bytes until there are none more."""
    while chunk := os.read(source, CHUNK):
        write_all(target, chunk)


def pipe(command: list[str]) -> None:
    """Start a server and copy bytes both ways."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        back = threading.Thread(target=copy, args=(child.stdout.fileno(), 1))
        back.start()
        copy(0, child.stdin.fileno())
        child.stdin.close()
        back.join()


def main(what: str, core: str, *command: str) -> None:
    """Do one of the two."""
    if core != "-":
        os.sched_setaffinity(0, {int(core)})
    if what == "pipe":
        pipe(list(command))
    else:
        serve(*command)


if __name__ == "__main__":
    main(*sys.argv[1:])
