"""A server on standard input and output that notes each call of its tool in a file.

python -I -S tally_backend.py FILE
"""

from __future__ import annotations

import json
import os
import sys
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


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return ME
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        line = f"{params['arguments']['number']}\n"
        # One write at the end of the file is whole, whoever else writes there.
        file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line.encode())
        os.close(file)
        return {"content": [{"type": "text", "text": line}]}
    return {}


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            told = result(message["method"], message.get("params", {}))
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": told}
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
