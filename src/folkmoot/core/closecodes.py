"""Close codes: why the hub closes a WebSocket, and what the client should do."""

from __future__ import annotations

from enum import IntEnum


class CloseCode(IntEnum):
    """WebSocket close codes: ours from 4000 on, and the standard ones we use."""

    PROTOCOL_ERROR = 1002
    NOT_TEXT = 1003
    NOT_UTF8 = 1007
    TOO_BIG = 1009
    INTERNAL = 1011
    RESTARTING = 1012
    TOO_SLOW = 4008
    REPLACED = 4009
    OVER_RATE = 4029
    BAD_REQUEST = 4400
    NOT_AUTHENTICATED = 4401
    NOT_ALLOWED = 4403
    NO_SUCH_ROOM = 4404
    PONG_TIMEOUT = 4408


CLOSE_REASONS: dict[CloseCode, str] = {
    CloseCode.PROTOCOL_ERROR: "The frames break the rules of the WebSocket protocol.",
    CloseCode.NOT_TEXT: "The hub accepts only text messages.",
    CloseCode.NOT_UTF8: "A text message was not valid UTF-8.",
    CloseCode.TOO_BIG: "A message was larger than the hub accepts.",
    CloseCode.INTERNAL: "The hub failed; reconnect and resume.",
    CloseCode.RESTARTING: "The hub is restarting; resume in a moment.",
    CloseCode.TOO_SLOW: "The connection could not keep up; it may resume.",
    CloseCode.REPLACED: "The same connection id came back on another connection.",
    CloseCode.OVER_RATE: "Too many frames in a short time.",
    CloseCode.BAD_REQUEST: "The request or message could not be understood.",
    CloseCode.NOT_AUTHENTICATED: "No valid token was given.",
    CloseCode.NOT_ALLOWED: "You may not enter this room, or may no longer be in it.",
    CloseCode.NO_SUCH_ROOM: "There is no such room.",
    CloseCode.PONG_TIMEOUT: "No pong arrived in time.",
}
