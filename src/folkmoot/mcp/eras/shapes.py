"""Requests, results and capabilities of one era in the shape that the other wants.

What the other era merely does not know stays: only what would break a strict reader goes.
"""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.message import MessageId, Request, replace, same_id
from folkmoot.mcp.wire import (
    CACHEABLE,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    COMPLETE,
    HANDSHAKE_VERSION,
    INITIALIZE,
    REQUEST_KEYS,
    SERVER_KEY,
    STATELESS_VERSION,
    TASKS_EXTENSION,
    TOOLS_CALL,
    TOOLS_LIST,
    members_of,
    meta_of,
)

UNKNOWN_PEER: Final = {"name": "unknown", "version": "unknown"}
"""Who a side is that did not say, where the other era must be told."""
ROUND_PARAMS: Final = frozenset(("inputResponses", "requestState"))
TASKS: Final = "tasks"


def for_stateless(method: str, result: Any, server: Any) -> Any:
    """A handshake server's result, with what the stateless era requires of it."""
    if type(result) is not dict:
        return result
    shaped = {"resultType": COMPLETE, **result}
    if method in CACHEABLE:
        shaped.setdefault("ttlMs", 0)
        shaped.setdefault("cacheScope", "private")
    meta = result.get("_meta")
    if meta is None or type(meta) is dict:
        shaped["_meta"] = {SERVER_KEY: server, **(meta or {})}
    return shaped


def for_handshake(method: str, result: Any) -> Any:
    """A stateless server's result, itself where nothing in it breaks a strict handshake client.

    Structured content and its schema may be of any type since 2026-07-28; before, both were
    objects, and one tool with another schema would make the whole list unreadable.
    """
    if type(result) is not dict:
        return result
    if method == TOOLS_CALL and type(result.get("structuredContent", {})) is not dict:
        return {name: value for name, value in result.items() if name != "structuredContent"}
    tools = result.get("tools")
    if method == TOOLS_LIST and type(tools) is list and any(map(_schema_breaks, tools)):
        return {**result, "tools": [_without_schema(tool) for tool in tools]}
    return result


def discover_result(initialized: dict[str, Any]) -> dict[str, Any]:
    """What a handshake server said of itself, as an answer to `server/discover`."""
    told = {
        "resultType": COMPLETE,
        "supportedVersions": [STATELESS_VERSION],
        "capabilities": without_tasks(initialized.get("capabilities")),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {SERVER_KEY: initialized.get("serverInfo", UNKNOWN_PEER)},
    }
    if type(initialized.get("instructions")) is str:
        told["instructions"] = initialized["instructions"]
    return told


def initialize_result(discovered: dict[str, Any], version: str) -> dict[str, Any]:
    """What a stateless server said of itself, as an answer to `initialize`."""
    server = members_of(discovered.get("_meta")).get(SERVER_KEY)
    told = {
        "protocolVersion": version,
        "capabilities": without_tasks(discovered.get("capabilities")),
        "serverInfo": server if type(server) is dict else UNKNOWN_PEER,
    }
    if type(discovered.get("instructions")) is str:
        told["instructions"] = discovered["instructions"]
    return told


def initialize_request(message_id: str, meta: dict[str, Any]) -> Request:
    """The handshake with a server, on behalf of a client that said this of itself."""
    params = {
        "protocolVersion": HANDSHAKE_VERSION,
        "capabilities": offered_to_handshake(meta.get(CAPABILITIES_KEY)),
        "clientInfo": meta.get(CLIENT_KEY) or UNKNOWN_PEER,
    }
    return Request(id=message_id, method=INITIALIZE, params=params)


def as_handshake(request: Request, server_id: MessageId) -> Request:
    """A stateless client's request, without what only its era puts into one."""
    if type(request.params) is not dict:
        return request if same_id(request.id, server_id) else replace(request, id=server_id)
    params = {name: value for name, value in request.params.items() if name not in ROUND_PARAMS}
    kept = {name: value for name, value in meta_of(request).items() if name not in REQUEST_KEYS}
    if kept:
        params["_meta"] = kept
    else:
        params.pop("_meta", None)
    return replace(request, id=server_id, params=params)


def offered_to_handshake(capabilities: Any) -> dict[str, Any]:
    """A stateless client's capabilities: it has no way to say that its roots changed."""
    offered = without_tasks(capabilities)
    if type(offered.get("roots")) is dict:
        offered["roots"] = {k: v for k, v in offered["roots"].items() if k != "listChanged"}
    return offered


def without_tasks(capabilities: Any) -> dict[str, Any]:
    """Capabilities of either side, without tasks, which are not bridged."""
    kept = {name: value for name, value in members_of(capabilities).items() if name != TASKS}
    extensions = kept.get("extensions")
    if type(extensions) is dict and TASKS_EXTENSION in extensions:
        kept["extensions"] = {k: v for k, v in extensions.items() if k != TASKS_EXTENSION}
    return kept


def _schema_breaks(tool: Any) -> bool:
    schema = members_of(tool).get("outputSchema")
    return schema is not None and members_of(schema).get("type") != "object"


def _without_schema(tool: Any) -> Any:
    if not _schema_breaks(tool):
        return tool
    return {name: value for name, value in tool.items() if name != "outputSchema"}
