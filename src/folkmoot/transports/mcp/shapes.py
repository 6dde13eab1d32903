"""What a backend answered, as each era writes it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from folkmoot.core.errors import (
    AuthenticationRequired,
    CapabilityDenied,
    FolkmootError,
    InputStateInvalid,
    MessageError,
    TokenRefused,
    UnknownTool,
)
from folkmoot.core.message import ErrorObject, MessageId, Response
from folkmoot.gateway.asking import CALL
from folkmoot.gateway.service import tool_error
from folkmoot.mcp.eras.shapes import for_handshake
from folkmoot.mcp.wire import CACHEABLE, COMPLETE, INPUT_REQUIRED, SERVER_KEY, refusal
from folkmoot.tools.dispatch import failure

STATELESS_ALONE: Final = frozenset(("resultType", "ttlMs", "cacheScope"))
"""Members of a result that the handshake era does not have."""
OF_THE_PROTOCOL: Final = (UnknownTool, MessageError, InputStateInvalid)
"""What is no tool's fault: it is told as an error of the request, and not as a tool's result."""
AS_POLICY_SAYS: Final = (CapabilityDenied, AuthenticationRequired, TokenRefused)
"""What is refused in the same words, whoever's tool it is."""


def stateless_result(method: str, result: Any, server: dict[str, Any]) -> Any:
    """A result with all that the stateless era wants of one; what a backend said of itself stays.

    What one person may read is not for a cache that others share.
    """
    if type(result) is not dict:
        return result
    shaped = {"resultType": COMPLETE, **result}
    if method in CACHEABLE and shaped["resultType"] != INPUT_REQUIRED:
        shaped.setdefault("ttlMs", 0)
        shaped["cacheScope"] = "private"
    meta = result.get("_meta")
    if meta is None:
        shaped["_meta"] = {SERVER_KEY: server}
    elif type(meta) is dict and meta.get(SERVER_KEY) is None:
        shaped["_meta"] = {**meta, SERVER_KEY: server}
    return shaped


def handshake_result(method: str, result: Any) -> Any:
    """A result without what only the stateless era has."""
    result = for_handshake(method, result)
    if type(result) is not dict:
        return result
    meta = result.get("_meta")
    told = {name: value for name, value in result.items() if name not in STATELESS_ALONE}
    if type(meta) is dict and SERVER_KEY in meta:
        told["_meta"] = {name: value for name, value in meta.items() if name != SERVER_KEY}
        if not told["_meta"]:
            del told["_meta"]
    return told


def refused(method: str, message_id: MessageId, error: FolkmootError) -> Response:
    """An error of ours as the answer to a request; a model reads those of its tools."""
    if method != CALL or isinstance(error, OF_THE_PROTOCOL):
        return refusal(message_id, error)
    if isinstance(error, AS_POLICY_SAYS):
        text = failure(error).text()
        told = {"content": [{"type": "text", "text": text}], "isError": True}
        return Response(id=message_id, result=told)
    payload = {**error.data, "error": error.message, "code": error.code}
    return Response(id=message_id, result=tool_error(payload))


def wire_answer(
    message_id: MessageId, method: str, response: Response, server: dict[str, Any] | None
) -> dict[str, Any]:
    """The message that answers a request; `server` is ours in the stateless era."""
    told: dict[str, Any] = {"jsonrpc": "2.0", "id": message_id}
    error = response.error
    if isinstance(error, ErrorObject):
        told["error"] = {"code": error.code, "message": error.message}
        if error.data is not UNSET:
            told["error"]["data"] = error.data
        return told
    result = response.result
    if server is None:
        told["result"] = handshake_result(method, result)
    else:
        told["result"] = stateless_result(method, result, server)
    return told
