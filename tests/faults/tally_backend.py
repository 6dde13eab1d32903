"""A server on standard input and output that notes each call of its tool in a file.

python -I -S tally_backend.py FILE [JOURNAL]

In a journal it notes everything that it is asked, with the id of its process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

TOOL = {
    "name": "note",
    "description": "Notes a number.",
    "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}},
}
ME = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "tally", "version": "1"},
}


def note(path: str, line: str) -> None:
    # One write at the end of the file is whole, whoever else writes there.
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return ME
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        line = f"{params['arguments']['number']}\n"
        note(sys.argv[1], line)
        return {"content": [{"type": "text", "text": line}]}
    return {}


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if sys.argv[2:]:
            note(sys.argv[2], f"{os.getpid()} {message.get('method')} {message.get('id')}\n")
            if message.get("method") == "tools/call":
                # Others wait in its input meanwhile.
                time.sleep(0.2)
        if "id" in message and "method" in message:
            told = result(message["method"], message.get("params", {}))
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": told}
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
