"""Redact: values hidden from the other side, by their place or their form."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.glob import Glob, glob
from folkmoot.core.message import message_from
from folkmoot.core.verdict import CONTINUE, Modify, Verdict
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.proxy.interceptors.base import Action, Means, MessageView, OptionInvalid, Options
from folkmoot.proxy.jsonpath import MISSING, JsonPath

DEEPEST_TEXT: Final = 4
"""How many times JSON is looked for inside a string of JSON inside a string."""
EDITABLE: Final = frozenset({"params", "result", "error"})

_WORD = re.compile(r"[^\s\"'`,;<>()\[\]{}=&?|]+")
"""What patterns are held against, within a longer text."""


class RedactOptions(Options, frozen=True, kw_only=True):
    """The paths, member names and forms of secrets."""

    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    replacement: str = "[redacted]"


class Redact(Action):
    """Puts a replacement where a secret is, in arguments and in results.

    Its cost grows with the size of the message and the number of globs.
    """

    def __init__(self, options: RedactOptions, _means: Means) -> None:
        if not (options.paths or options.names or options.patterns):
            raise OptionInvalid("needs 'paths', 'names' or 'patterns'")
        self._paths = tuple(editable(text) for text in options.paths)
        self._names = tuple(glob(name.lower()) for name in options.names)
        self._patterns = tuple(glob(pattern) for pattern in options.patterns)
        self._replacement = options.replacement

    async def look(self, view: MessageView) -> Verdict:
        """Let the message go on without what is secret."""
        body = view.body
        for path in self._paths:
            if path.root in body:
                body = path.edit(body, self._replaced)
        if self._names or self._patterns:
            for name in EDITABLE & body.keys():
                body = _put(body, name, self._searched(view, name, body[name]))
        return CONTINUE if body is view.body else Modify(message_from(body))

    def _replaced(self, value: Any) -> Any:
        return MISSING if value is MISSING else self._replacement

    def _searched(self, view: MessageView, name: str, value: Any) -> Any:
        if name == "params" and view.key.method == TOOLS_CALL and isinstance(value, dict):
            # What a call names must stay what rules and servers know it by.
            found = value.get("arguments")
            return value if found is None else _put(value, "arguments", self._clean(found, 0))
        return self._clean(value, 0)

    def _clean(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._clean_text(value, depth)
        if isinstance(value, dict):
            members = {
                name: self._replacement if _fits(name.lower(), self._names)
                else self._clean(inner, depth)
                for name, inner in value.items()
            }  # fmt: skip
            return members if any(members[name] is not value[name] for name in value) else value
        if isinstance(value, list):
            items = [self._clean(inner, depth) for inner in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        return value

    def _clean_text(self, text: str, depth: int) -> str:
        if depth < DEEPEST_TEXT and text.lstrip()[:1] in ("{", "["):
            try:
                inside = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                inside = None
            if inside is not None:
                cleaned = self._clean(inside, depth + 1)
                return text if cleaned is inside else msgspec.json.encode(cleaned).decode()
        if not self._patterns:
            return text
        cleaned = _WORD.sub(self._word, text)
        return text if cleaned == text else cleaned

    def _word(self, word: re.Match[str]) -> str:
        return self._replacement if _fits(word[0], self._patterns) else word[0]


def editable(text: str) -> JsonPath:
    """A path to something that may be changed about a message."""
    try:
        path = JsonPath(text)
    except e.PathSyntax as error:
        raise OptionInvalid(error.message) from None
    if path.root not in EDITABLE:
        raise OptionInvalid(
            f"{text!r} must begin with $.params, $.result or $.error: nothing else is changed"
        )
    return path


def _put(members: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return members if value is members.get(name) else {**members, name: value}


def _fits(text: str, globs: tuple[Glob, ...]) -> bool:
    return any(each.matches(text) for each in globs)
