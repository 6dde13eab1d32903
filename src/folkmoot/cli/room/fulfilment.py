"""A proposal turned into the request that fulfils it: the same method and the same params."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folkmoot.cli.room.look import words
from folkmoot.core.message import JSONRPC


def doer(proposal: Mapping[str, Any], chosen: str | None) -> str | None:
    """Who is to do it: the one chosen, or the only one the proposal names."""
    named = words(proposal.get("to"))
    return chosen or (named[0] if len(named) == 1 else None)


def fulfilment(proposal: Mapping[str, Any], target: str, request_id: str) -> dict[str, Any]:
    """The members of a request that is equal to the proposal and correlates it."""
    payload = proposal.get("payload")
    asked = payload if type(payload) is dict else {}
    request = {"jsonrpc": JSONRPC, "id": request_id, "method": asked.get("method")}
    if "params" in asked:
        request["params"] = asked["params"]
    return {
        "kind": str(proposal.get("kind", "")).replace("mcp.proposal.", "mcp.request.", 1),
        "to": [target],
        "correlation_id": [proposal.get("id")],
        "payload": request,
    }
