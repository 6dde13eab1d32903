"""A small MCP server of the handshake era on standard input and output, without any library."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = [
    {"name": name, "description": words, "inputSchema": {"type": "object"}}
    for name, words in (
        ("echo", "Says it back."),
        ("count", "Counts how often it was called."),
        ("slow", "Tells of its progress."),
        ("ask", "Asks the client for its roots."),
    )
]
WELCOME = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "small", "version": "1"},
}


def say(**members: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
    sys.stdout.flush()


def hear() -> Any:
    line = sys.stdin.readline()
    return json.loads(line) if line else None


class Server:
    calls = 0

    def __init__(self, version: str = "1") -> None:
        self.version = version

    def call(self, name: str, arguments: dict[str, Any], token: Any) -> str:
        if name == "echo":
            return str(arguments["text"])
        if name == "count":
            self.calls += 1
            return str(self.calls)
        if name == "slow":
            for step in (1, 2):
                told = {"progressToken": token, "progress": step, "total": 2}
                say(method="notifications/progress", params=told)
            return "done"
        say(id="roots-1", method="roots/list")
        answer = hear()
        return ", ".join(root["uri"] for root in answer["result"]["roots"])

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            return {**WELCOME, "serverInfo": {"name": "small", "version": self.version}}
        if method == "tools/list":
            return {"tools": TOOLS}
        if method == "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            text = self.call(params["name"], params.get("arguments") or {}, token)
            return {"content": [{"type": "text", "text": text}]}
        return None

    def run(self) -> None:
        while (message := hear()) is not None:
            if "id" not in message or "method" not in message:
                continue
            result = self.answer(message["method"], message.get("params") or {})
            if result is None:
                say(id=message["id"], error={"code": -32601, "message": "Method not found"})
            else:
                say(id=message["id"], result=result)


if __name__ == "__main__":
    Server(*sys.argv[1:2]).run()
