"""A small MCP server without any library, of one era or of both, which starts at once.

    python call_server.py handshake|stateless|silent [odd]

A silent one says nothing to `server/discover`. An odd one refuses the version it supports once, and
lists a tool that no client may use.
"""

from __future__ import annotations

import json
import sys
from typing import Any

VERSION = "io.modelcontextprotocol/protocolVersion"
INFO = {"name": "harbour\x1b[2J", "version": "2"}
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}}
FLAG = {"type": ["boolean", "null"]}
TAKES = {"port": {"type": "string"}, "hours": {"type": "integer"}, "exact": FLAG, "more": {}}
TIDE = {"type": "object", "properties": TAKES, "required": ["port"]}
OTHERS = ("noisy", "fail", "refuse", "picture")
TOOLS = [
    {"name": "tide", "description": "High water.\n\nMore.", "inputSchema": TIDE},
    *({"name": name, "inputSchema": {"type": "object"}} for name in OTHERS),
]
SCORE = {"score": {"type": "number", "x-mcp-header": "Score"}}
MISMARKED = {"name": "mismarked", "inputSchema": {"type": "object", "properties": SCORE}}
ODD = sys.argv[2:] == ["odd"]
refused: list[str] = []
LISTS: dict[str, Any] = {
    "resources/list": {"resources": [{"uri": "harbour://log", "name": "log"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]},
}


def say(**members: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
    sys.stdout.flush()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def call(name: str, params: dict[str, Any]) -> dict[str, Any]:
    token = params.get("_meta", {}).get("progressToken")
    if name == "noisy":
        say(id="q", method="elicitation/create", params={})
        answer = json.loads(sys.stdin.readline())
        say(method="notifications/message", params={"level": "info", "data": "dredging\x07"})
        told = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        say(method="notifications/progress", params=told)
        return {"result": text(f"asked, and got {answer['error']['code']}")}
    if name == "fail":
        return {"result": text("no water", isError=True)}
    if name == "refuse":
        return {"error": {"code": -32602, "message": "Not today."}}
    if name == "picture":
        image = {"type": "image", "mimeType": "image/png", "data": "A" * 4096}
        link = {"type": "resource_link", "uri": "harbour://log", "name": "log"}
        return {"result": {"content": [image, link]}}
    if name not in (each["name"] for each in TOOLS):
        return {"error": {"code": -32602, "message": f"Unknown tool: {name}"}}
    arguments = params.get("arguments")
    return {"result": text(json.dumps(arguments), structuredContent=arguments)}


def answer(method: str, params: dict[str, Any], era: str) -> dict[str, Any] | None:
    stateless = VERSION in params.get("_meta", {})
    if method == "initialize" and era != "stateless":
        version = {"protocolVersion": "2025-11-25", "serverInfo": INFO}
        return {"result": {**version, "capabilities": CAPABILITIES}}
    if ODD and not refused:
        refused.append(method)
        versions = {"supported": ["2026-07-28"], "requested": "2026-07-28"}
        return {"error": {"code": -32022, "message": "Unsupported", "data": versions}}
    if method == "server/discover" and era == "stateless":
        meta = {"io.modelcontextprotocol/serverInfo": INFO}
        versions = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
        return {"result": {**versions, "_meta": meta, "ttlMs": 0, "cacheScope": "private"}}
    if method == "server/discover" and era == "silent":
        return None
    if stateless is not (era == "stateless"):
        return {"error": {"code": -32601, "message": "Method not found"}}
    if method == "tools/list":
        # In two pages.
        first = "cursor" not in params
        page = {"tools": TOOLS[:1] if first else [*TOOLS[1:], *([MISMARKED] if ODD else [])]}
        return {"result": {**page, "nextCursor": "2"} if first else page}
    if method in LISTS:
        return {"result": LISTS[method]}
    if method == "resources/read":
        return {"result": {"contents": [{"uri": params["uri"], "text": '{"calm": true}'}]}}
    if method == "prompts/get":
        said = {"type": "text", "text": f"Greet {params['arguments']['who']}"}
        return {"result": {"messages": [{"role": "user", "content": said}]}}
    return call(params["name"], params)


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            told = answer(asked["method"], asked.get("params", {}), sys.argv[1])
            if told is not None:
                say(id=asked["id"], **told)


if __name__ == "__main__":
    main()
