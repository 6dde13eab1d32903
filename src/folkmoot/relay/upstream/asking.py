"""What is wanted of a server as a request of the stateless era, in the hub's name."""

from __future__ import annotations

from typing import Any, Final

from folkmoot import __version__
from folkmoot.core.message import Request
from folkmoot.gateway.ports import Wanted
from folkmoot.mcp.eras.shapes import without_tasks
from folkmoot.mcp.wire import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVER,
    LEVEL_KEY,
    LISTEN,
    STATELESS_VERSION,
    VERSION_KEY,
)

CLIENT: Final = {"name": "folkmoot", "version": __version__}
OFFERED: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
"""What a server that shakes hands once for everyone is told; of each call, its caller's count.

Roots are never offered: the folders of someone's machine are not the hub's to tell.
"""
NEVER_OFFERED: Final = "roots"


def _meta(capabilities: dict[str, Any]) -> dict[str, Any]:
    return {
        VERSION_KEY: STATELESS_VERSION,
        CLIENT_KEY: CLIENT,
        CAPABILITIES_KEY: capabilities,
    }


def request_of(wanted: Wanted, message_id: int) -> Request:
    """The request; what a caller's `_meta` says of itself stays, but nothing of the protocol's."""
    meta = _meta(offered(wanted.capabilities))
    if wanted.log_level is not None:
        meta[LEVEL_KEY] = wanted.log_level
    if wanted.progress:
        meta["progressToken"] = message_id
    own = wanted.params.get("_meta")
    if type(own) is dict:
        meta = own | meta
        if not wanted.progress:
            meta.pop("progressToken", None)
        if wanted.log_level is None:
            meta.pop(LEVEL_KEY, None)
    return Request(id=message_id, method=wanted.method, params={**wanted.params, "_meta": meta})


def offered(capabilities: dict[str, Any]) -> dict[str, Any]:
    """What a caller's client can be asked for through the hub."""
    if not capabilities:
        return capabilities
    kept = without_tasks(capabilities)
    kept.pop(NEVER_OFFERED, None)
    return kept


def discover(message_id: int) -> Request:
    """The question what a server is."""
    return Request(id=message_id, method=DISCOVER, params={"_meta": _meta(OFFERED)})


def listen(message_id: int, notifications: dict[str, Any]) -> Request:
    """The wish to hear of changes."""
    params = {"notifications": notifications, "_meta": _meta({})}
    return Request(id=message_id, method=LISTEN, params=params)
