"""The answer to what cannot be carried: a JSON-RPC error with the request's id, if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from folkmoot.core import strict
from folkmoot.core.glimpse import Glimpse
from folkmoot.core.message import JSONRPC, ErrorObject, Response, is_message_id

if TYPE_CHECKING:
    from folkmoot.core.errors import FolkmootError
    from folkmoot.core.message import MessageId

READABLE = 1024 * 1024
"""Longer messages are not searched for their id."""


class _Call(msgspec.Struct):
    id: Any = None
    method: Any = None


_glimpse = Glimpse(b"method", b"params")
_decode = msgspec.json.Decoder(_Call).decode


def refusal(error: FolkmootError, message_id: MessageId | None = None) -> bytes:
    """The bytes of the response that says why."""
    return strict.encode({"jsonrpc": JSONRPC, "id": message_id, "error": error.as_jsonrpc()})


def refused(error: FolkmootError, message_id: MessageId) -> Response:
    """The response that says why, as a message."""
    told = error.as_jsonrpc()
    return Response(id=message_id, error=ErrorObject(told["code"], told["message"], told["data"]))


def readable_id(raw: bytes) -> MessageId | None:
    """The id of the request that some bytes were meant to be, if that can be read."""
    if len(raw) > READABLE:
        return None
    try:
        call = _decode(raw)
    except (ValueError, RecursionError):
        return _glimpse.id_of(raw)
    # Without a method it may be an answer, whose id is one of the server's.
    if call.method is None or not is_message_id(call.id):
        return None
    return call.id  # type: ignore[no-any-return]
