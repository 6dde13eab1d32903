"""People in rooms, and what they send as programs do that are not the command line."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Cli
from tests.harness import ask, run


def token_of(who: Cli) -> str:
    """The token of someone's account."""
    return str(json.loads((who.folder / f"{who.name}.json").read_text())["accounts"][0]["token"])


def post_text(who: Cli, room: str, body: str) -> dict[str, Any]:
    """Send an envelope in these very characters."""
    port, path = int(who.hub.rpartition(":")[2]), f"/v1/rooms/{room}/messages"
    headers = {"authorization": f"Bearer {token_of(who)}", "content-type": "application/json"}
    answer = run(ask(port, path, method="POST", headers=headers, body=body.encode())).json()
    assert "error" not in answer, answer
    return dict(answer)


def post(who: Cli, room: str, kind: str, payload: Any, **members: Any) -> dict[str, Any]:
    """Send an envelope."""
    envelope = {"protocol": "mcpx/v1", "kind": kind, "payload": payload, **members}
    return post_text(who, room, json.dumps(envelope))


def propose(who: Cli, room: str, path: str, **members: Any) -> dict[str, Any]:
    """Propose that a file be deleted."""
    params = {"name": "delete_file", "arguments": {"path": path}}
    payload = {"jsonrpc": "2.0", "method": "tools/call", "params": params}
    return post(who, room, "mcp.proposal.tools/call:delete_file", payload, **members)
