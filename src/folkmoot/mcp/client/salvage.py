"""Whom a message is about, where it can only be read in part or says so in its params."""

from __future__ import annotations

from typing import Any

import msgspec

from folkmoot.core.glimpse import Glimpse
from folkmoot.core.message import MessageId, Notification, ProtocolMessage, is_message_id
from folkmoot.mcp.wire import CANCELLED


class _Answer(msgspec.Struct):
    id: Any = None
    method: Any = None


_glimpse = Glimpse(b"result", b"error")
_decode = msgspec.json.Decoder(_Answer).decode


def answered_id(raw: bytes) -> MessageId | None:
    """The id of the request that some bytes were meant to answer, if that can be read."""
    try:
        answer = _decode(raw)
    except (ValueError, RecursionError):
        return _glimpse.id_of(raw)
    if answer.method is not None or not is_message_id(answer.id):
        return None
    return answer.id  # type: ignore[no-any-return]


def cancelled_id(message: ProtocolMessage) -> MessageId | None:
    """The id of the request that a notification cancels, if it is one that does."""
    if type(message) is not Notification or message.method != CANCELLED:
        return None
    params = message.params
    found = params.get("requestId") if isinstance(params, dict) else None
    return found if is_message_id(found) else None
