"""What a message says, in a line: the arguments of a call, the words of an answer, the progress.

A message may be anything that its sender liked, so nothing here relies on its shape; what is not
as it should be is told as the JSON it is. The line is not cut and not made safe for a terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from folkmoot.mcp.wire import (
    CANCELLED,
    COMPLETION,
    ELICIT,
    INITIALIZE,
    LOGGED,
    PROGRESS,
    PROMPTS_GET,
    PROMPTS_LIST,
    RESOURCES_LIST,
    RESOURCES_READ,
    ROOTS_LIST,
    SAMPLE,
    SET_LEVEL,
    SUBSCRIBE,
    TEMPLATES_LIST,
    TOOLS_CALL,
    TOOLS_LIST,
    UNSUBSCRIBE,
    UPDATED,
)

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
    """An error in words: its code and message."""
    if not isinstance(value, dict):
        return compact(value)
    return f"{compact(value.get('code'))}: {_text(value.get('message'))}"


def name_of(method: str, params: Any) -> str:
    """The tool, prompt or resource that a call is about, if it is about one."""
    where = _NAMES.get(method)
    if where is None or not isinstance(params, dict):
        return ""
    if method == COMPLETION:
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
    """One piece of content: its text, or its type."""
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
    TOOLS_CALL: "name",
    PROMPTS_GET: "name",
    RESOURCES_READ: "uri",
    SUBSCRIBE: "uri",
    UNSUBSCRIBE: "uri",
    COMPLETION: "ref",
    UPDATED: "uri",
}
"""The member of the params that says what a call is about."""

_CALLS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    INITIALIZE: _party("clientInfo"),
    TOOLS_CALL: _arguments,
    PROMPTS_GET: _arguments,
    RESOURCES_READ: _nothing,
    SUBSCRIBE: _nothing,
    UNSUBSCRIBE: _nothing,
    COMPLETION: lambda value: compact(value.get("argument")),
    SET_LEVEL: lambda value: _text(value.get("level")),
    SAMPLE: _sampling,
    ELICIT: lambda value: _text(value.get("message")),
    PROGRESS: _progress,
    LOGGED: _log,
    CANCELLED: _cancelled,
    UPDATED: _nothing,
}

_RESULTS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    INITIALIZE: _party("serverInfo"),
    TOOLS_LIST: _counted("tools", "tool"),
    PROMPTS_LIST: _counted("prompts", "prompt"),
    RESOURCES_LIST: _counted("resources", "resource", "uri"),
    TEMPLATES_LIST: _counted("resourceTemplates", "template", "uriTemplate"),
    ROOTS_LIST: _counted("roots", "root", "uri"),
    TOOLS_CALL: _contents("content"),
    RESOURCES_READ: _contents("contents"),
    PROMPTS_GET: _prompt,
    SAMPLE: lambda value: content(value.get("content")),
    ELICIT: _elicited,
}
