"""ProtocolMessage: what JSON-RPC says, as Request, Response or Notification.

Also the id of a message that cannot be decoded, if it is in one of the usual places.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias, TypeVar, final

import msgspec
from msgspec import UNSET, UnsetType

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.limits import MAX_ID_DISTANCE
from folkmoot.core.strict import DEFAULT_LIMITS, Limits, same

MessageId: TypeAlias = str | int
Params: TypeAlias = dict[str, Any] | list[Any] | UnsetType | None

JSONRPC: Final = "2.0"


class _Message(msgspec.Struct, frozen=True, gc=False, eq=False, kw_only=True):
    extra: dict[str, Any] | None = None
    """Members that JSON-RPC does not name, in their order."""
    raw: bytes | None = msgspec.field(default=None)
    """The bytes the message came as; no part of its value."""

    def __eq__(self, other: object) -> bool:
        """Equal in type and in every member, ids and numbers with their type."""
        return type(self) is type(other) and same(members(self), members(other))  # type: ignore[arg-type]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Who and what, never the params: a message in a log must not tell what was said."""
        names = ("id", "method") if not isinstance(self, Response) else ("id",)
        shown = ", ".join(f"{n}={getattr(self, n)!r}" for n in names if hasattr(self, n))
        return f"{type(self).__name__}({shown})"


@final
class Request(_Message, frozen=True, gc=False, eq=False):
    """A call that wants an answer."""

    id: MessageId = msgspec.field()
    method: str = msgspec.field()
    params: Params = UNSET


@final
class Notification(_Message, frozen=True, gc=False, eq=False):
    """A call that wants none."""

    method: str = msgspec.field()
    params: Params = UNSET


class ErrorObject(msgspec.Struct, frozen=True, gc=False):
    """Why a request failed."""

    code: int
    message: str
    data: Any = UNSET
    extra: dict[str, Any] | None = None


@final
class Response(_Message, frozen=True, gc=False, eq=False):
    """The answer to a request: a result or an error, never both.

    `id` is None only in an error that could not be tied to a request.
    """

    id: MessageId | None = msgspec.field()
    result: Any = UNSET
    error: ErrorObject | UnsetType = UNSET


ProtocolMessage: TypeAlias = Request | Response | Notification
M = TypeVar("M", Request, Response, Notification)

_CALL_MEMBERS = frozenset(("jsonrpc", "id", "method", "params"))
_RESPONSE_MEMBERS = frozenset(("jsonrpc", "id", "result", "error"))
_MEMBERS = _CALL_MEMBERS | _RESPONSE_MEMBERS
_ERROR_MEMBERS = frozenset(("code", "message", "data"))
_PARAMS = (dict, list, type(None), UnsetType)


def decode_message(raw: bytes, limits: Limits = DEFAULT_LIMITS) -> ProtocolMessage:
    """Decode the bytes of one message, strictly, and keep them beside it."""
    return message_from(strict.decode_object(raw, limits), raw)


def message_from(value: dict[str, Any], raw: bytes | None = None) -> ProtocolMessage:
    """Classify a decoded object by the presence of `id`, `method`, `result` and `error`."""
    if value.get("jsonrpc") != JSONRPC:
        raise e.InvalidVersion('"jsonrpc" must be "2.0".')
    if "method" in value:
        if "result" in value or "error" in value:
            raise e.Unclassifiable("A message has either a method or a result or error, not both.")
        return _call_from(value, raw)
    if "result" in value or "error" in value:
        return _response_from(value, raw)
    raise e.Unclassifiable("A message needs a method, a result or an error.")


def encode_message(message: ProtocolMessage) -> bytes:
    """The bytes to pass on: those that came, or new ones where the message is ours or changed."""
    return message.raw if message.raw is not None else strict.encode(members(message))


def replace(message: M, **changes: Any) -> M:
    """A changed copy, which no longer claims the bytes of the original."""
    return msgspec.structs.replace(message, raw=None, **changes)


def members(message: ProtocolMessage) -> dict[str, Any]:
    """The message as the JSON object it is on the wire."""
    value: dict[str, Any]
    if type(message) is Response:
        if (message.result is UNSET) is (message.error is UNSET):
            raise e.InvalidResponse("A response has either a result or an error.")
        value = {"jsonrpc": JSONRPC, "id": message.id}
        if isinstance(message.error, ErrorObject):
            value["error"] = _error_members(message.error)
        else:
            value["result"] = message.result
    else:
        if type(message) is Request:
            value = {"jsonrpc": JSONRPC, "id": message.id, "method": message.method}
        else:
            value = {"jsonrpc": JSONRPC, "method": message.method}
        if message.params is not UNSET:
            value["params"] = message.params
    if message.extra:
        value.update(_others(message.extra, _MEMBERS))
    return value


def is_message_id(value: Any) -> bool:
    """Whether a value may be the id of a request: a string, or an integer of 64 bits, no bool."""
    kind = type(value)
    return kind is str or (kind is int and -(2**63) <= value < 2**63)


def same_id(a: MessageId | None, b: MessageId | None) -> bool:
    """Whether two ids are one: `1` and `"1"` are not."""
    return type(a) is type(b) and a == b


def _call_from(value: dict[str, Any], raw: bytes | None) -> Request | Notification:
    method = value["method"]
    if type(method) is not str or not method:
        raise e.InvalidMethod('"method" must be a non-empty string.')
    params = value.get("params", UNSET)
    if type(params) not in _PARAMS:
        raise e.InvalidParams('"params" must be an object or an array.')
    known = 2 + (params is not UNSET)
    if "id" not in value:
        extra = None if len(value) == known else _others(value, _CALL_MEMBERS)
        return Notification(method=method, params=params, extra=extra, raw=raw)
    identity = value["id"]
    if not is_message_id(identity):
        raise e.InvalidId('"id" must be a string or an integer of at most 64 bits.')
    extra = None if len(value) == known + 1 else _others(value, _CALL_MEMBERS)
    return Request(id=identity, method=method, params=params, extra=extra, raw=raw)


def _response_from(value: dict[str, Any], raw: bytes | None) -> Response:
    result = value.get("result", UNSET)
    failed = "error" in value
    if failed and result is not UNSET:
        raise e.InvalidResponse("A response has either a result or an error, not both.")
    identity = value.get("id")
    if identity is None:
        if not failed:
            raise e.InvalidResponse("A result must carry the id of its request.")
    elif not is_message_id(identity):
        raise e.InvalidId('"id" must be a string or an integer of at most 64 bits.')
    error = _error_from(value["error"]) if failed else UNSET
    known = 2 + ("id" in value)
    extra = None if len(value) == known else _others(value, _RESPONSE_MEMBERS)
    return Response(id=identity, result=result, error=error, extra=extra, raw=raw)


def _error_from(value: Any) -> ErrorObject:
    if type(value) is not dict:
        raise e.InvalidResponse('"error" must be an object.')
    code, message = value.get("code"), value.get("message")
    if type(code) is not int or type(message) is not str:
        raise e.InvalidResponse('"error" must have an integer "code" and a string "message".')
    extra = _others(value, _ERROR_MEMBERS) or None
    return ErrorObject(code, message, value.get("data", UNSET), extra)


def _error_members(error: ErrorObject) -> dict[str, Any]:
    value: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not UNSET:
        value["data"] = error.data
    return value | _others(error.extra or {}, _ERROR_MEMBERS)


def _others(value: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in known}


_START: Final = rb"(?:\xef\xbb\xbf)?\s*\{\s*"
_JSONRPC: Final = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
_ID: Final = rb'"id"\s*:\s*(-?[0-9]{1,19}|"[^"\\\x00-\x1f]{0,256}")\s*'
_TAIL: Final = re.compile(rb"," + rb"\s*" + _ID + rb'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class Glimpse:
    """Finds the id of a message that has one of these members, without decoding the rest.

    Only places are looked at that no text inside the message can imitate.
    """

    def __init__(self, *members: bytes) -> None:
        named = rb'"(?:' + b"|".join(members) + rb')"\s*:'
        self._before = re.compile(_START + _JSONRPC + _ID + rb",\s*" + _JSONRPC + named)
        self._after = re.compile(_START + _JSONRPC + named)

    def id_of(self, raw: bytes) -> MessageId | None:
        """The id, or None where it is not in such a place."""
        found = self._before.match(raw[:MAX_ID_DISTANCE])
        if found is None and self._after.match(raw[:MAX_ID_DISTANCE]):
            found = _TAIL.search(raw[-MAX_ID_DISTANCE:])
        if found is None:
            return None
        try:
            message_id = msgspec.json.decode(found[1])
        except ValueError:
            return None
        return message_id if is_message_id(message_id) else None
