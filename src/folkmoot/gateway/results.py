"""URIs inside what a server answers, put into the form they have here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from folkmoot.gateway.mapping import shown_uri

Mapper: TypeAlias = Callable[[Any, str], Any]
"""What becomes of a value for a namespace: the same object if nothing does."""

DEEPEST: Final = 8
"""How far contents within contents are followed."""


def map_result(method: str, result: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The result with the URIs a client could read; the same object where there are none.

    Data of a tool's own, `structuredContent` and texts, is left alone.
    """
    asks = result.get("resultType") == "input_required"
    for member, mapper in QUESTIONS if asks else RESULTS.get(method, ()):
        result = _member(result, member, mapper, namespace)
    return result


def map_meta(meta: Any, namespace: str) -> Any:
    """The `_meta` of a tool or of its result: an app that shows it is named by its URI."""
    if not isinstance(meta, dict):
        return meta
    for member, mapper in (("ui/resourceUri", _uri), ("ui", _app)):
        meta = _member(meta, member, mapper, namespace)
    return meta


def _member(value: Any, member: str, mapper: Mapper, namespace: str) -> Any:
    """An object with one of its members mapped; the same object if that changes nothing."""
    if not isinstance(value, dict) or member not in value:
        return value
    before = value[member]
    after = mapper(before, namespace)
    return value if after is before else {**value, member: after}


def _each(mapper: Mapper) -> Mapper:
    """The same for a list."""

    def mapped(values: Any, namespace: str) -> Any:
        if not isinstance(values, list):
            return values
        after = values
        for place, value in enumerate(values):
            mapped = mapper(value, namespace)
            if mapped is not value:
                after = list(values) if after is values else after
                after[place] = mapped
        return after

    return mapped


def _uri(value: Any, namespace: str) -> Any:
    if not isinstance(value, str):
        return value
    shown = shown_uri(namespace, value)
    return value if shown == value else shown


def _app(value: Any, namespace: str) -> Any:
    return _member(value, "resourceUri", _uri, namespace)


def _located(value: Any, namespace: str) -> Any:
    return _member(value, "uri", _uri, namespace)


def _content(value: Any, namespace: str, depth: int = 0) -> Any:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "resource_link":
        return _located(value, namespace)
    if kind == "resource":
        return _member(value, "resource", _located, namespace)
    if kind == "tool_result" and depth < DEEPEST:
        inner = _each(lambda each, ns: _content(each, ns, depth + 1))
        return _member(value, "content", inner, namespace)
    return value


_contents: Final = _each(_content)


def _message(value: Any, namespace: str) -> Any:
    one = isinstance(value, dict) and isinstance(value.get("content"), dict)
    return _member(value, "content", _content if one else _contents, namespace)


_messages: Final = _each(_message)


def _question(value: Any, namespace: str) -> Any:
    return _member(value, "params", lambda p, ns: _member(p, "messages", _messages, ns), namespace)


def _each_question(values: Any, namespace: str) -> Any:
    if not isinstance(values, dict):
        return values
    after = {key: _question(value, namespace) for key, value in values.items()}
    return values if all(after[key] is values[key] for key in values) else after


QUESTIONS: Final[tuple[tuple[str, Mapper], ...]] = (("inputRequests", _each_question),)
RESULTS: Final[dict[str, tuple[tuple[str, Mapper], ...]]] = {
    "tools/call": (("content", _contents), ("_meta", map_meta)),
    "resources/read": (("contents", _each(_located)),),
    "prompts/get": (("messages", _messages),),
}
"""Where URIs stand in the result of a method."""
