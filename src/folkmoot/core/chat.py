"""Room chat in its equivalent spellings: two kinds, the tool call and its proposal.

`chat.message[.format]` and the notification `notifications/chat/message` are one thing. A deny on
either denies both, and `chat.say` as well, whichever way a message is spelled; so the body of a
chat message is found first, and then shown in the form of each spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.kinds import Kind, parse

Body: TypeAlias = dict[str, Any]

METHOD: Final = "notifications/chat/message"
TOOL: Final = "chat.say"
FORMATS: Final = {"plain": "plain", "text": "plain", "markdown": "markdown"}
"""What a chat kind's method or a body's format may say, and what it means."""

REPLACES: Final = "replaces"
"""The member of a body that names an earlier message of its sender, which it takes the place of."""
DELETED: Final = "deleted"
"""True in a body that takes a message away; what its text says is for those who don't know that."""

GONE: Final = "This message was deleted."

PATTERNS: Final = (
    "chat.message",
    f"mcp.notification.{METHOD}",
    f"mcp.request.tools/call:{TOOL}",
    f"mcp.proposal.tools/call:{TOOL}",
)
"""Everything that is chat, as patterns; the first two are the equal spellings."""

SHORT: Final = {word: parse(f"chat.message.{word}") for word in FORMATS}
"""The short form by what is said of the format."""

_NOTIFICATION: Final = parse(f"mcp.notification.{METHOD}")


def check_body(body: Any) -> str | None:
    """Refuse a body without text or with a format that is none; what it says of its format."""
    text = body.get("text") if type(body) is dict else None
    if type(text) is not str:
        raise e.PayloadInvalid("A chat message needs a text that is a string.")
    if not text or text.isspace():
        raise e.PayloadInvalid("The text of a chat message must not be empty.")
    said = body.get("format")
    if said is not None and (type(said) is not str or said not in FORMATS):
        raise e.PayloadInvalid('The format of a chat message is "plain" or "markdown".')
    return said


def spellings(kind: Kind, payload: Any) -> list[tuple[Kind, Any]]:
    """The equal spellings of a chat message, each with its payload; empty for other kinds."""
    found = _BODIES.get(kind.base)
    if found is None or (kind.context is not None and kind.context != TOOL):
        return []
    body = found(payload if type(payload) is dict else {})
    said = _format_of(kind, body)
    notified = {"jsonrpc": "2.0", "method": METHOD, "params": body}
    return [
        (_NOTIFICATION, notified),
        *((short, body) for word, short in SHORT.items() if said in (None, FORMATS[word])),
    ]


def replaced_by(kind: Kind, payload: Any) -> str | None:
    """The id of the message that chat takes the place of, in either spelling; else None."""
    if kind.base not in _SAID:
        return None
    replaced = _BODIES[kind.base](payload if type(payload) is dict else {}).get(REPLACES)
    return replaced if type(replaced) is str else None


def _format_of(kind: Kind, body: Body) -> str | None:
    """The format; None, which is every format, when what is said is none."""
    word = kind.method if kind.protocol == "chat" and kind.method else body.get("format")
    if word is None:
        return "plain"
    return FORMATS.get(word) if type(word) is str else None


def _itself(payload: Body) -> Body:
    return payload


def _params(payload: Body) -> Body:
    params = payload.get("params")
    return params if type(params) is dict else {}


def _arguments(payload: Body) -> Body:
    arguments = _params(payload).get("arguments")
    return arguments if type(arguments) is dict else {}


_BODIES: Final[dict[str, Callable[[Body], Body]]] = {
    "chat.message": _itself,
    **{short.base: _itself for short in SHORT.values()},
    _NOTIFICATION.base: _params,
    "mcp.request.tools/call": _arguments,
    "mcp.proposal.tools/call": _arguments,
}
"""The bases under which chat is said, and where each keeps its body."""
_SAID: Final = frozenset({"chat.message", _NOTIFICATION.base, *(it.base for it in SHORT.values())})
