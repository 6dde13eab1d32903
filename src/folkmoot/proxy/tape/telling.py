"""What a message says, in a line: the arguments of a call, the words of an answer, the progress.

A message may be anything that its sender liked, so nothing here relies on its shape; what is not
as it should be is told as the JSON it is. The line is not cut and not made safe for a terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

ENOUGH: Final = 400
"""Characters of one value that are looked at: more fits in no line."""


def call(method: str, params: Any) -> str:
    """What a request or a notification says besides its method and the name it calls."""
    if not isinstance(params, dict):
        return "" if params is None else compact(params)
    teller = _CALLS.get(method)
    return teller(params) if teller else compact(_without_meta(params))


def result(method: str, value: Any) -> str:
    """What a result says, given the method it answers."""
    if not isinstance(value, dict):
        return compact(value)
    teller = _RESULTS.get(method)
    told = teller(value) if teller else ""
    return told or compact(_without_meta(value))


def error(value: Any) -> str:
    """What an error says: its number and its words."""
    if not isinstance(value, dict):
        return compact(value)
    return f"{compact(value.get('code'))}: {_text(value.get('message'))}"


def name_of(method: str, params: Any) -> str:
    """The tool, prompt or resource that a call is about, if it is about one."""
    where = _NAMES.get(method)
    if where is None or not isinstance(params, dict):
        return ""
    if method == "completion/complete":
        ref = params.get("ref")
        params = ref if isinstance(ref, dict) else {}
        where = "name" if "name" in params else "uri"
    return _text(params.get(where))


def compact(value: Any) -> str:
    """A value as JSON in a line; long texts in it are cut, and nothing is told of nothing."""
    if value in (None, {}, []):
        return ""
    return msgspec.json.encode(_cut(value, 4)).decode()


def _cut(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= ENOUGH else value[:ENOUGH] + "…"
    if isinstance(value, dict):
        if depth == 0 and value:
            return "…"
        inside = list(value.items())[:32]
        return {name: _cut(item, depth - 1) for name, item in inside}
    if isinstance(value, list | tuple):
        return ["…"] if depth == 0 and value else [_cut(item, depth - 1) for item in value[:32]]
    return value


def _text(value: Any) -> str:
    return value[:ENOUGH] if isinstance(value, str) else compact(value)


def _words(*values: Any) -> str:
    return " ".join(filter(None, map(_text, values)))


def _without_meta(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != "_meta"}


def _within(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _party(member: str) -> Callable[[dict[str, Any]], str]:
    """Who introduces themselves, and which version of the protocol they speak."""

    def told(value: dict[str, Any]) -> str:
        who = value.get(member)
        return _words(_within(who, "name"), _within(who, "version"), value.get("protocolVersion"))

    return told


def _counted(member: str, noun: str, name: str = "name") -> Callable[[dict[str, Any]], str]:
    """How many things are listed, and their names."""

    def told(value: dict[str, Any]) -> str:
        items = value.get(member)
        if not isinstance(items, list):
            return ""
        names = ", ".join(_text(_within(item, name)) for item in items[:32])
        count = f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"
        more = ", and more to come" if value.get("nextCursor") else ""
        return f"{count}: {names}{more}" if items else count

    return told


def content(value: Any) -> str:
    """One piece of content: its text, or what it is where it is no text."""
    kind = _within(value, "type")
    if not isinstance(value, dict):
        return compact(value)
    if isinstance(value.get("text"), str):
        return str(value["text"][:ENOUGH])
    if kind in ("image", "audio") or "blob" in value:
        data = value.get("data") or value.get("blob")
        length = len(data) * 3 // 4 if isinstance(data, str) else 0
        return f"[{_words(kind or 'blob', value.get('mimeType'))}, about {length:,} bytes]"
    if kind == "resource":
        return content(value.get("resource"))
    if kind == "resource_link":
        return f"[link {_words(value.get('uri'))}]"
    return compact(value)


def _contents(member: str) -> Callable[[dict[str, Any]], str]:
    def told(value: dict[str, Any]) -> str:
        items = value.get(member)
        if not isinstance(items, list) or not items:
            return compact(value.get("structuredContent"))
        return " ".join(map(content, items[:8]))

    return told


def _prompt(value: dict[str, Any]) -> str:
    items = value.get("messages")
    if not isinstance(items, list):
        return ""
    said = (_words(_within(item, "role")) + ": " + content(_within(item, "content")) for item in
            items[:8])  # fmt: skip
    return " ".join(said)


def _progress(value: dict[str, Any]) -> str:
    of = f"/{compact(value['total'])}" if "total" in value else ""
    return f"{compact(value.get('progress')) or 0}{of} {_text(value.get('message'))}".rstrip()


def _log(value: dict[str, Any]) -> str:
    return f"{_words(value.get('level'), value.get('logger'))}: {_text(value.get('data'))}"


def _cancelled(value: dict[str, Any]) -> str:
    reason = _text(value.get("reason"))
    return f"request {compact(value.get('requestId'))}" + (f": {reason}" if reason else "")


def _sampling(value: dict[str, Any]) -> str:
    return _prompt(value) if value.get("messages") else compact(value)


def _elicited(value: dict[str, Any]) -> str:
    return f"{_text(value.get('action'))} {compact(value.get('content'))}".rstrip()


def _arguments(value: dict[str, Any]) -> str:
    return compact(value.get("arguments"))


def _nothing(_: dict[str, Any]) -> str:
    return ""


_NAMES: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "completion/complete": "ref",
    "notifications/resources/updated": "uri",
}
"""The member of the params that says what a call is about."""

_CALLS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "initialize": _party("clientInfo"),
    "tools/call": _arguments,
    "prompts/get": _arguments,
    "resources/read": _nothing,
    "resources/subscribe": _nothing,
    "resources/unsubscribe": _nothing,
    "completion/complete": lambda value: compact(value.get("argument")),
    "logging/setLevel": lambda value: _text(value.get("level")),
    "sampling/createMessage": _sampling,
    "elicitation/create": lambda value: _text(value.get("message")),
    "notifications/progress": _progress,
    "notifications/message": _log,
    "notifications/cancelled": _cancelled,
    "notifications/resources/updated": _nothing,
}

_RESULTS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "initialize": _party("serverInfo"),
    "tools/list": _counted("tools", "tool"),
    "prompts/list": _counted("prompts", "prompt"),
    "resources/list": _counted("resources", "resource", "uri"),
    "resources/templates/list": _counted("resourceTemplates", "template", "uriTemplate"),
    "roots/list": _counted("roots", "root", "uri"),
    "tools/call": _contents("content"),
    "resources/read": _contents("contents"),
    "prompts/get": _prompt,
    "sampling/createMessage": lambda value: content(value.get("content")),
    "elicitation/create": _elicited,
}
