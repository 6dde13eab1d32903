"""Goes through a decoded message, also through JSON that stands in its strings, and redacts it.

Whatever is not secret stays the same object; order and structure stay in any case. `RedactedPaths`
say what else is to be left out: `$.params.arguments.ssn`, `$.result.*[*]`, `$..pin`. They lead on
into JSON that stands in a string, as if it stood there as itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from folkmoot.core.entity import Entity
from folkmoot.core.redaction import OTHER_KIND, are_secrets, is_secret_name, is_secret_option
from folkmoot.proxy.jsonpath import JsonPath, Place, Step, spelled
from folkmoot.proxy.redaction import mail
from folkmoot.proxy.redaction.placeholders import RedactedPlace
from folkmoot.proxy.redaction.text import SHORTEST_KNOWN, TextRedactor

_UNESCAPED: Final = re.compile(r"[\w$ .:@-]+", re.ASCII)
"""A name that JSON spells as it is."""


MAIL_KIND: Final = "mail"
PAIRS: Final = ("name", "key", "header", "variable")
"""Members that name what the `value` beside them is."""
_SCHEMA_TYPES: Final = frozenset(
    {"string", "object", "number", "integer", "array", "boolean", "null"}
)
_SCHEMA_MEMBERS: Final = ("$ref", "anyOf", "oneOf", "allOf", "properties", "enum")


class RedactedPaths:
    """The configured paths, compiled. Raises `PathSyntax` for one that is none."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.texts = tuple(paths)
        self._by_end: dict[Step | None, list[JsonPath]] = {}
        compiled = [JsonPath.below(path) for path in paths]
        for path in compiled:
            self._by_end.setdefault(path.steps[-1], []).append(path)
        self._hints = tuple(map(_hint, compiled))

    def __bool__(self) -> bool:
        return bool(self.texts)

    def may_lead_into(self, raw: bytes) -> bool:
        """Whether one of them may lead to something in these bytes; wrong only by saying yes."""
        return b"\\u" in raw or any(hint in raw for hint in self._hints)

    def lead_to(self, place: Place) -> bool:
        """Whether one of the paths ends at a place; those above it were asked about before."""
        for end in (place[-1], None):
            for path in self._by_end.get(end, ()):
                if path.covers(place):
                    return True
        return False


def _hint(path: JsonPath) -> bytes:
    """A name that is in every message the path leads into; nothing where it has none."""
    names = [step for step in path.steps if isinstance(step, str) and _UNESCAPED.fullmatch(step)]
    return names[-1].encode() if names else b""


DEEPEST: Final = 300
"""So deep a value is looked into, strings of JSON counted as levels; what is below goes whole."""
MOST_PLACES: Final = 256
"""So many places are told of one message at most."""

MOST_CHANGES: Final = 8192
"""So many changes are made to one message; then what is left goes whole, before it takes too long.
"""

MOST_MET: Final = 16
"""So many secrets that only their name told are looked for in the rest of the message."""

KEPT: Final[frozenset[Place]] = frozenset({("jsonrpc",), ("error", "code")})
"""What makes a message a message."""
NAMES: Final[frozenset[Place]] = frozenset({("method",), ("params", "name")})
"""What says what is asked for: nobody is to have that left out by sending it as a credential."""
SAID: Final[frozenset[Place]] = frozenset({("result", "content"), ("result", "contents")})
"""Where a result has its words."""

_CLOSING: Final = {"{": "}", "[": "]", '"': '"'}
_NOBODY: Final[mail.Names] = frozenset()


class Walk(Entity):
    """One message, gone through once; `places` tells afterwards what was left out."""

    text: TextRedactor
    paths: RedactedPaths
    look_for_mail: bool
    definitions: bool = False
    """Whether it describes things, so that a name is followed by a description."""
    places: list[RedactedPlace] = []
    _met: set[str] = set()
    """Secrets that only their name or place told; elsewhere they stand without it."""
    _all_mail: bool = False
    """Whether what a result says in words that are no JSON is mail, too."""
    _unknown: bool = False
    """Whether JSON in a result, and its structured content, are mail as a whole, too."""
    _changes: int = 0
    _doors: list[int] = []
    """After how many steps each string of JSON was entered."""

    def message(self, value: dict[str, Any], names: mail.Names) -> Any:
        """A message without its secrets; in its result mail's words stand under these names."""
        failed = isinstance(result := value.get("result"), dict) and result.get("isError") is True
        self._all_mail = bool(names) and not failed
        if isinstance(names, mail.AllBut):
            # Of a tool that nobody knows: whatever it says, but what makes its answer an answer.
            self._unknown, names = not failed, _NOBODY
        redacted = self.value(value, (), names)
        if not self._met:
            return redacted
        self._changes = 0
        return self.value(redacted, (), names)

    def value(self, value: Any, place: Place = (), names: mail.Names = _NOBODY) -> Any:
        """The value without its secrets; below, mail's words stand under these names."""
        if self.paths and place and self.paths.lead_to(place):
            return self._leaves(value, place, "path")
        if not isinstance(value, str | dict | list):
            return value
        if self._changes > MOST_CHANGES and len(place) > 1:
            text = value if isinstance(value, str) else _encoded(value)
            return self._put(place, "many", self.text.of_kind(text, OTHER_KIND), text)
        if isinstance(value, str):
            return self._string(value, place, names)
        if self._is_too_deep(place):
            return self._put(place, "deep", self.text.whole(_encoded(value)))
        if isinstance(value, dict):
            return self._members(value, place, names)
        items: list[Any] = []
        behind_flag = False
        for at, item in enumerate(value):
            inner = (*place, at)
            if behind_flag and isinstance(item, str) and not item.startswith("-"):
                items.append(self._leaves(item, inner, "name"))
            else:
                items.append(self.value(item, inner, names))
            behind_flag = isinstance(item, str) and is_secret_option(item)
        return items if _differ(items, value) else value

    def _members(self, value: dict[str, Any], place: Place, names: mail.Names) -> Any:
        said: mail.Names | None = None
        if self.look_for_mail:
            if mail.is_mail(value) and isinstance(names, frozenset):
                names |= mail.RESULTS
            if (tool := mail.called(value)) is not None:
                said = mail.words_in_call(tool)
        named = self._named_beside(value)
        members: dict[str, Any] = {}
        for name, member in value.items():
            key = self.text.mask(name, forms_only=True)
            inner = (*place, key)
            if key is not name:
                self._tell(inner, "form")
            if self._is_secret(name, member) or (named and name == "value"):
                members[key] = self._leaves(member, inner, "name")
            elif self._is_said(name, member, inner, names):
                members[key] = self._leaves(member, inner, MAIL_KIND)
            elif said is not None and name in mail.ASKING:
                members[key] = self._arguments(member, inner, said)
            else:
                members[key] = self.value(member, inner, names)
        same = not _differ(list(members.values()), list(value.values()))
        return value if same and members.keys() == value.keys() else members

    def _is_said(self, name: str, member: Any, place: Place, names: mail.Names) -> bool:
        if self._unknown and place == ("result", "structuredContent"):
            return True
        return bool(names) and name.lower() in names and not isinstance(member, bool | int | float)

    def _arguments(self, value: Any, place: Place, said: mail.Names) -> Any:
        """What a tool of mail is called with; what is not in members with names may be all said."""
        inside = _json_in(value) if isinstance(value, str) else value
        if isinstance(inside, dict):
            return self.value(value, place, said)
        return self._leaves(value, place, MAIL_KIND)

    def _is_secret(self, name: str, member: Any) -> bool:
        if member is None or isinstance(member, bool):
            return False
        if isinstance(member, dict) and (self.definitions or _is_schema(member)):
            return False
        several = isinstance(member, str | list | dict) and are_secrets(name)
        return several or is_secret_name(name)

    def _named_beside(self, value: dict[str, Any]) -> bool:
        if "value" not in value:
            return False
        names = (value.get(pair) for pair in PAIRS)
        return any(isinstance(name, str) and is_secret_name(name) for name in names)

    def _string(self, text: str, place: Place, names: mail.Names) -> str:
        is_said = self._all_mail and place[:2] in SAID and place[-1:] == ("text",)
        inside = None if is_said and self._unknown else _json_in(text)
        if inside is not None:
            return self._entered(text, inside, place, names)
        if is_said:
            return self._put(place, MAIL_KIND, self.text.of_kind(text, MAIL_KIND), text)
        if place in NAMES:
            # What only the headers of some client called a secret is none here.
            return self._put(place, "form", self.text.mask(text, known=False), text)
        masked = self.text.mask(text, forms_only=self.definitions, also=self._met)
        return self._put(place, "form", masked, text)

    def _entered(self, text: str, inside: Any, place: Place, names: mail.Names) -> str:
        self._doors.append(len(place))
        changed = self.value(inside, place, names)
        self._doors.pop()
        if changed is inside:
            return text
        encoded = msgspec.json.encode(changed)
        return (msgspec.json.format(encoded, indent=2) if "\n" in text else encoded).decode()

    def _leaves(self, value: Any, place: Place, kind: str) -> Any:
        """A value whose every text and number is secret."""
        if place in KEPT:
            return value
        if isinstance(value, str):
            return self._put(place, kind, self._secret(value, kind), value)
        if isinstance(value, dict | list) and self._is_too_deep(place):
            return self._put(place, "deep", self.text.whole(_encoded(value)))
        if isinstance(value, dict):
            return {
                self.text.mask(name, forms_only=True): self._leaves(
                    member, (*place, self.text.mask(name, forms_only=True)), kind
                )
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._leaves(item, (*place, at), kind) for at, item in enumerate(value)]
        if value is None or isinstance(value, bool):
            return value
        return self._put(place, kind, self._secret(_encoded(value), kind))

    def _is_too_deep(self, place: Place) -> bool:
        return len(place) + len(self._doors) > DEEPEST

    def _secret(self, text: str, kind: str) -> str:
        if kind == MAIL_KIND:
            return self.text.of_kind(text, kind)
        if self._changes > MOST_CHANGES:
            return self.text.of_kind(text, OTHER_KIND)
        if len(text) >= SHORTEST_KNOWN and len(self._met) < MOST_MET:
            self._met.add(text)
        return self.text.whole(text)

    def _put(self, place: Place, kind: str, masked: str, text: str | None = None) -> str:
        if text is not None and masked == text:
            return text
        self._changes += 1
        self._tell(place, kind)
        return masked

    def _tell(self, place: Place, kind: str) -> None:
        if len(self.places) < MOST_PLACES:
            self.places.append(RedactedPlace(self._spelled(place), kind))
        elif len(self.places) == MOST_PLACES:
            self.places.append(RedactedPlace("$", "more"))

    def _spelled(self, place: Place) -> str:
        doors = [0, *self._doors, len(place)]
        return "::".join(spelled(place[a:b]) for a, b in pairwise(doors))


def _is_schema(value: dict[str, Any]) -> bool:
    """Whether an object describes a secret rather than holding one."""
    kind = value.get("type")
    known = kind in _SCHEMA_TYPES if isinstance(kind, str) else isinstance(kind, list)
    return known or any(member in value for member in _SCHEMA_MEMBERS)


def _json_in(text: str) -> Any:
    """What a string of JSON says; None where it is none, or only null."""
    bare = text.strip()
    if len(bare) < 2 or _CLOSING.get(bare[0]) != bare[-1]:
        return None
    try:
        return msgspec.json.decode(bare)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _differ(after: list[Any], before: list[Any]) -> bool:
    return any(a is not b for a, b in zip(after, before, strict=True))
