"""Another id or token in a message: those members change, and every other byte stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from folkmoot.core.message import Notification, Request, Response, members, message_from
from folkmoot.mcp.wire import SUBSCRIPTION_KEY

Path: TypeAlias = tuple[str, ...]
M = TypeVar("M", Request, Response, Notification)

ID: Final[Path] = ("id",)
ASKED_TOKEN: Final[Path] = ("params", "_meta", "progressToken")
TOLD_TOKEN: Final[Path] = ("params", "progressToken")
CANCELLED_ID: Final[Path] = ("params", "requestId")
SUBSCRIPTION: Final[Path] = ("params", "_meta", SUBSCRIPTION_KEY)
ANSWERED_SUBSCRIPTION: Final[Path] = (
    "result",
    "_meta",
    SUBSCRIPTION_KEY,
)

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def renamed(message: M, changes: Mapping[Path, Any]) -> M:
    """The message with other values at places where it has some."""
    value: Any = members(message)
    raw = message.raw
    for path, new in changes.items():
        value = _put(value, path, new)
        raw = None if raw is None else _put_raw(raw, path, new)
    return message_from(value, raw)  # type: ignore[return-value]


def found(message: Request | Response | Notification, path: Path) -> Any:
    """The value at a place, or None."""
    value: Any = getattr(message, path[0], None)
    for name in path[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _put(value: dict[str, Any], path: Path, new: Any) -> dict[str, Any]:
    name, *rest = path
    return {**value, name: _put(value[name], tuple(rest), new) if rest else new}


def _put_raw(raw: bytes | msgspec.Raw, path: Path, new: Any) -> bytes:
    name, *rest = path
    value = _object(raw)
    value[name] = msgspec.Raw(_put_raw(value[name], tuple(rest), new) if rest else _encode(new))
    return _encode(value)
