"""Requests, results and capabilities of one era in the shape that the other wants.

What the protocol itself added to results in the stateless era does not reach the handshake era;
what a server added of its own stays, unless a strict reader would break at it.
"""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.message import (
    MessageId,
    Notification,
    Request,
    replace,
    same_id,
)
from folkmoot.mcp import wire
from folkmoot.mcp.wire import members_of, meta_of, params_of

UNKNOWN_PEER: Final = {"name": "unknown", "version": "unknown"}
"""Who a side is that did not say, where the other era must be told."""
ROUND_PARAMS: Final = frozenset(("inputResponses", wire.REQUEST_STATE))
TASKS: Final = "tasks"
CACHING: Final = ("ttlMs", "cacheScope")
"""How long a result may be kept and by whom, which only the stateless era says."""


def for_stateless(method: str, result: Any, server: Any) -> Any:
    """A result with all that the stateless era requires of it; what a server said of itself stays.

    What one person may read is not for a cache that others share.
    """
    if type(result) is not dict:
        return result
    shaped = {wire.RESULT_TYPE: wire.COMPLETE, **result}
    if method in wire.CACHEABLE and shaped[wire.RESULT_TYPE] != wire.INPUT_REQUIRED:
        shaped.setdefault("ttlMs", 0)
        shaped["cacheScope"] = "private"
    meta = result.get("_meta")
    if meta is None:
        shaped["_meta"] = {wire.SERVER_KEY: server}
    elif type(meta) is dict and meta.get(wire.SERVER_KEY) is None:
        shaped["_meta"] = {**meta, wire.SERVER_KEY: server}
    return shaped


def for_handshake(method: str, result: Any) -> Any:
    """A result without what the handshake era does not have; itself if there is nothing of it.

    Structured content and its schema may be of any type since 2026-07-28; before, both were
    objects, and one tool with another schema would make the whole list unreadable.
    """
    if type(result) is not dict:
        return result
    gone = {wire.RESULT_TYPE, *CACHING} if method in wire.CACHEABLE else {wire.RESULT_TYPE}
    if method == wire.TOOLS_CALL and type(result.get("structuredContent", {})) is not dict:
        gone.add("structuredContent")
    changed: dict[str, Any] = {}
    tools = result.get("tools")
    if method == wire.TOOLS_LIST and type(tools) is list and any(map(_schema_breaks, tools)):
        changed["tools"] = [_without_schema(tool) for tool in tools]
    meta = result.get("_meta")
    if type(meta) is dict and wire.SERVER_KEY in meta:
        if len(meta) == 1:
            gone.add("_meta")
        else:
            changed["_meta"] = {k: v for k, v in meta.items() if k != wire.SERVER_KEY}
    if not changed and gone.isdisjoint(result):
        return result
    kept = {name: value for name, value in result.items() if name not in gone}
    return kept | changed if changed else kept


def without_key(notice: Notification, key: str) -> Notification:
    """A notice whose `_meta` does not have a key, nor is there where it has no other."""
    params = params_of(notice)
    meta = {name: value for name, value in meta_of(notice).items() if name != key}
    kept = {name: value for name, value in params.items() if name != "_meta"}
    return replace(notice, params={**kept, "_meta": meta} if meta else kept)


def discover_result(initialized: dict[str, Any], *, tasks: bool = False) -> dict[str, Any]:
    """What a handshake server said of itself, as an answer to `server/discover`."""
    capabilities = initialized.get("capabilities")
    told = {
        **wire.UNCACHED,
        "supportedVersions": [wire.STATELESS_VERSION],
        "capabilities": members_of(capabilities) if tasks else without_tasks(capabilities),
        "_meta": {wire.SERVER_KEY: initialized.get("serverInfo", UNKNOWN_PEER)},
    }
    if type(initialized.get("instructions")) is str:
        told["instructions"] = initialized["instructions"]
    return told


def initialize_result(
    discovered: dict[str, Any], version: str, *, tasks: bool = False
) -> dict[str, Any]:
    """What a stateless server said of itself, as an answer to `initialize`.

    One that was asked for this very client may say of `tasks` what the handshake era knows of them.
    """
    capabilities = discovered.get("capabilities")
    server = members_of(discovered.get("_meta")).get(wire.SERVER_KEY)
    told = {
        "protocolVersion": version,
        "capabilities": members_of(capabilities) if tasks else without_tasks(capabilities),
        "serverInfo": server if type(server) is dict else UNKNOWN_PEER,
    }
    if type(discovered.get("instructions")) is str:
        told["instructions"] = discovered["instructions"]
    return told


def initialize_request(message_id: str, meta: dict[str, Any]) -> Request:
    """The handshake with a server, on behalf of a client that said this of itself."""
    params = {
        "protocolVersion": wire.HANDSHAKE_VERSION,
        "capabilities": offered_to_handshake(meta.get(wire.CAPABILITIES_KEY)),
        "clientInfo": meta.get(wire.CLIENT_KEY) or UNKNOWN_PEER,
    }
    return Request(id=message_id, method=wire.INITIALIZE, params=params)


def as_handshake(request: Request, server_id: MessageId) -> Request:
    """A stateless client's request without the members of its era."""
    if type(request.params) is not dict:
        return request if same_id(request.id, server_id) else replace(request, id=server_id)
    params = {name: value for name, value in request.params.items() if name not in ROUND_PARAMS}
    kept = {
        name: value for name, value in meta_of(request).items() if name not in wire.REQUEST_KEYS
    }
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
    if type(extensions) is dict and wire.TASKS_EXTENSION in extensions:
        kept["extensions"] = {k: v for k, v in extensions.items() if k != wire.TASKS_EXTENSION}
    return kept


def _schema_breaks(tool: Any) -> bool:
    schema = members_of(tool).get("outputSchema")
    return schema is not None and members_of(schema).get("type") != "object"


def _without_schema(tool: Any) -> Any:
    if not _schema_breaks(tool):
        return tool
    return {name: value for name, value in tool.items() if name != "outputSchema"}
