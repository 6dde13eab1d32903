"""A small MCP server of the handshake era on standard input and output, which starts at once.

    python small_backend.py DEFINITIONS.json

The file holds what it lists, and is read for every list, so that a test can change it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def answer(method: str, definitions: dict[str, Any], params: Any = None) -> dict[str, Any]:
    """What is answered to a request; a tool repeats its arguments."""
    if method == "initialize":
        info = {"name": "small", "version": "1.2", **definitions.get("serverInfo", {})}
        offered = {"tools": {}, "prompts": {}, "resources": {}}
        version = {"protocolVersion": "2025-11-25", "serverInfo": info}
        return {"result": {**version, "capabilities": offered}}
    if method in LISTS:
        return {"result": {LISTS[method]: definitions.get(LISTS[method], [])}}
    if method == "tools/call":
        said = json.dumps(params.get("arguments"))
        return {"result": {"content": [{"type": "text", "text": said}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            continue
        definitions = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        told = answer(asked["method"], definitions, asked.get("params"))
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
