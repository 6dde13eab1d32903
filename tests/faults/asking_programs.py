"""What is killed in the rounds of asks beside the hub: the tool, and a program that asks.

python -I -S asking_programs.py tool JOURNAL
python -I -S asking_programs.py ask PORT

The tool writes each call to its journal, and to the disk, before it answers. The program sends the
requests that are on its input, each a line of base64, one after another, and prints the answers.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import time
import uuid
import zlib
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "data": {}},
    "required": ["key"],
}
TOOLS = [
    {"name": name, "description": "Writes down what it is given.", "inputSchema": SCHEMA}
    for name in ("patient", "hasty")
]
ME = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "journal", "version": "1"},
}
# Seconds that a call takes at most before it is written down, and after it.
SLOWEST = 0.06


class Journal:
    """A file that has one line for each call."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, **what: Any) -> None:
        # One write at the end of the file is whole, whoever else writes there.
        os.write(self._file, f"{json.dumps(what)}\n".encode())
        os.fsync(self._file)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def called(journal: Journal, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    # How long it takes is in the arguments, so that a round can be done again.
    chance = zlib.crc32(arguments["key"].encode())
    time.sleep(chance % 101 / 100 * SLOWEST)
    line = uuid.uuid4().hex
    journal.note(line=line, tool=tool, arguments=arguments)
    time.sleep(chance // 101 % 101 / 100 * SLOWEST)
    return {"content": [{"type": "text", "text": json.dumps({"line": line})}]}


def tool(path: str) -> None:
    """Answer until the input ends."""
    journal = Journal(path)
    journal.note(process=os.getpid())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        told: dict[str, Any] = {}
        if message["method"] == "initialize":
            told = ME
        elif message["method"] == "tools/list":
            told = {"tools": TOOLS}
        elif message["method"] == "tools/call":
            told = called(journal, message["params"]["name"], message["params"]["arguments"])
        say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": told}))


def ask(port: int) -> None:
    """Send what is to be sent."""
    for line in sys.stdin:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(base64.b64decode(line))
            with connection.makefile("rb") as reader:
                say(base64.b64encode(reader.read()).decode())


if __name__ == "__main__":
    what, given = sys.argv[1:]
    if what == "tool":
        tool(given)
    else:
        ask(int(given))
