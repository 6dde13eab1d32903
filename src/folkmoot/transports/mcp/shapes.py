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
from folkmoot.mcp.eras.shapes import for_handshake as handshake_result
from folkmoot.mcp.eras.shapes import for_stateless as stateless_result
from folkmoot.mcp.wire import refusal
from folkmoot.tools.dispatch import failure

__all__ = ["handshake_result", "refused", "stateless_result", "wire_answer"]

OF_THE_PROTOCOL: Final = (UnknownTool, MessageError, InputStateInvalid)
"""What is no tool's fault: it is told as an error of the request, and not as a tool's result."""
AS_POLICY_SAYS: Final = (CapabilityDenied, AuthenticationRequired, TokenRefused)
"""What is refused in the same words, whoever's tool it is."""


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
