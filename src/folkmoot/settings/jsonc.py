"""JSON as programs keep it in files people edit: with comments and commas at the end."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

from msgspec import Struct

from folkmoot.settings.limits import MAX_JSON_DEPTH

BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*[\s\S]*?\*/)*")
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


class NotJson(Exception):
    """The text is not JSON, with or without comments; the message says where."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


class JsonMember(NamedTuple):
    """One member of an object, and where its name and value lie."""

    name: str
    at: int
    start: int
    end: int


class JsonObject(NamedTuple):
    """Where an object lies and what is in it; `tail` is where another member can be put."""

    start: int
    end: int
    members: list[JsonMember]
    tail: int
    comma: bool


class JsonReader(Struct, eq=False):
    """Reads JSON with comments and commas at the end, and remembers where things are."""

    text: str
    objects: dict[int, JsonObject] = {}

    def document(self) -> tuple[Any, int]:
        """The one value of the text, and where it begins."""
        start = self._blank(0)
        value, end = self._value(start, 0)
        if self._blank(end) != len(self.text):
            self._fail(self._blank(end))
        return value, start

    def line(self, at: int) -> int:
        """The line a position is on."""
        return self.text.count("\n", 0, at) + 1

    def _blank(self, at: int) -> int:
        match = BLANK.match(self.text, at)
        return match.end() if match else at

    def _fail(self, at: int) -> NoReturn:
        raise NotJson(self.line(at))

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_JSON_DEPTH:
            self._fail(at)
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        match = (STRING if first == '"' else SCALAR).match(self.text, at)
        if match is None:
            self._fail(at)
        try:
            return json.loads(match[0]), match.end()
        except ValueError:
            self._fail(at)

    def _object(self, start: int, depth: int) -> tuple[dict[str, Any], int]:
        value: dict[str, Any] = {}
        members: list[JsonMember] = []
        comma = False
        at, tail = start + 1, start + 1
        while self.text[(at := self._blank(at)) : at + 1] != "}":
            if members and not comma:
                self._fail(at)
            name, end = self._value(at, depth)
            if not isinstance(name, str):
                self._fail(at)
            colon = self._blank(end)
            if self.text[colon : colon + 1] != ":":
                self._fail(colon)
            begin = self._blank(colon + 1)
            value[name], end = self._value(begin, depth + 1)
            members.append(JsonMember(name, at, begin, end))
            at = self._blank(end)
            comma = self.text[at : at + 1] == ","
            at = at + 1 if comma else end
            tail = at
        # What lies behind the last member may be comments: another member goes behind those too.
        tail = start + len(self.text[start:at].rstrip()) if members else tail
        self.objects[start] = JsonObject(start, at, members, tail, comma)
        return value, at + 1

    def _array(self, start: int, depth: int) -> tuple[list[Any], int]:
        value: list[Any] = []
        comma = True
        at = start + 1
        while self.text[(at := self._blank(at)) : at + 1] != "]":
            if not comma:
                self._fail(at)
            item, at = self._value(at, depth + 1)
            value.append(item)
            at = self._blank(at)
            comma = self.text[at : at + 1] == ","
            at += comma
        return value, at + 1
