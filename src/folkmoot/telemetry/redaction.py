"""Makes whatever a caller logs fit to be written: no secret, one line, of bounded size.

What a secret is stands in the table of `folkmoot.core.redaction`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from folkmoot.core.redaction import (
    FORMS,
    NAMED_FORMS,
    Form,
    are_secrets,
    is_secret_name,
    may_hold_secret,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MASK = "[redacted]"
SHORTEST = 7
"""Nothing shorter can hold a secret: `token=x` is the shortest that does."""
MOST = 1_024
"""Values that are hidden at once: a hub has a few of its own, and each backend may have some."""
MOST_KEPT = 128
"""Of them, the first: they are always hidden, and the hub's own are among them."""
MOST_HARMLESS = 4_096
LONGEST_HARMLESS = 128
"""How many texts of which length are remembered that have no secret in them."""

_PERCENT = re.compile("%[0-9A-F]{2}")

ALL = (*NAMED_FORMS, *FORMS)
IN_JSON = tuple(form for form in FORMS if not form.over_lines)


def _mask(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return f"{groups.get('kept') or ''}{groups.get('quote') or ''}{MASK}"


class Redactor:
    """Replaces secrets in text. Values that no pattern knows are hidden by naming them once."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._hidden: dict[str, tuple[str, ...]] = {}
        self._spellings: tuple[str, ...] = ()
        self.harmless: set[str] = set()
        """Short texts in which there is nothing to mask, nor anything that cannot be seen."""
        self.lines: dict[tuple[Any, ...], str] = {}
        """Lines of records that come again and again, as they may be written."""
        self.hide(*values)

    def hide(self, *values: str) -> None:
        """Hide these values from now on, however they are spelled; very short ones are ignored."""
        new = {
            value: tuple(spellings(value))
            for value in values
            if len(value) >= SHORTEST and value not in self._hidden
        }
        if new:
            self._hidden |= new
            excess = max(0, len(self._hidden) - MOST)
            for old in tuple(self._hidden)[MOST_KEPT : MOST_KEPT + excess]:
                del self._hidden[old]
            self._spellings = tuple(dict.fromkeys(chain.from_iterable(self._hidden.values())))
            self.harmless, self.lines = set(), {}

    def redact(self, text: str) -> str:
        """The text with every secret masked, by its own form or by the name it stands behind."""
        if text in self.harmless:
            return text
        masked = self._apply(ALL, text)
        # Names, kinds and outcomes come again and again.
        if len(text) <= LONGEST_HARMLESS and masked == text and text.isprintable():
            if len(self.harmless) >= MOST_HARMLESS:
                self.harmless.clear()
            self.harmless.add(text)
        return masked

    def redact_forms(self, text: str) -> str:
        """The text with secrets masked that show by their own form; JSON stays valid."""
        return self._apply(IN_JSON, text)

    def _apply(self, forms: tuple[Form, ...], text: str) -> str:
        if len(text) < SHORTEST:
            return text
        for spelled in self._spellings:
            if spelled in text:
                text = text.replace(spelled, MASK)
        if not may_hold_secret(text):
            return text
        small = text.lower()
        for form in forms:
            for hint in form.hints:
                if hint in small:
                    if form.first is None or form.first.search(text):
                        text = form.pattern.sub(_mask, text)
                    break
        return text


def spellings(value: str) -> Iterator[str]:
    """A value as it stands in a text, in JSON, in a URL, and in what Python shows of it."""
    yield value
    if not (value.isascii() and value.isalnum()):
        for in_json in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
            yield in_json
            yield in_json.replace("/", "\\/")
        for in_url in (quote(value, ""), quote(value), quote_plus(value)):
            yield in_url
            yield _PERCENT.sub(lambda match: match[0].lower(), in_url)
        yield repr(value)[1:-1]


VALUE_LIMIT = 2_048
NAME_LIMIT = 128
ITEMS_LIMIT = 32
DEPTH_LIMIT = 4

NUMBERS = frozenset((bool, int, float))
_CUT = "… [cut]"
_TAIL = 128

CONTROLS = {
    code: repr(chr(code))[1:-1]
    for span in (
        range(0x20),
        range(0x7F, 0xA0),
        range(0x200B, 0x2010),
        range(0x2028, 0x202F),
        range(0x2066, 0x206A),
        range(0xD800, 0xE000),
        (0xFEFF,),
    )
    for code in span
}
"""What could break a line, hide in it or turn it around, and the visible spelling of each."""

redactor = Redactor()
"""The one every record passes through. `redactor.hide(value)` adds a secret no pattern knows."""


def clean(text: str, limit: int = VALUE_LIMIT) -> str:
    """One line of text: secrets masked, cut, and control characters spelled out."""
    if text in redactor.harmless:
        return text
    return visible(mask(text, limit))


def visible(text: str) -> str:
    """The text with control characters spelled out."""
    return text if text.isprintable() else text.translate(CONTROLS)


def mask(text: str, limit: int) -> str:
    """The text with its secrets masked, cut to about `limit` characters."""
    if len(text) <= limit:
        return redactor.redact(text)
    # A secret that straddles the first cut could escape its pattern: the second cut drops the end.
    return redactor.redact(text[: limit * 2])[:-_TAIL][:limit] + _CUT


def plain(value: Any, depth: int = 0) -> Any:
    """A value as bounded JSON-ready data in which every string is clean."""
    if type(value) in NUMBERS or value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return clean(bytes(value[:VALUE_LIMIT]).decode("utf-8", "backslashreplace"))
    if depth < DEPTH_LIMIT and isinstance(value, dict):
        return fields(value, depth + 1)
    if depth < DEPTH_LIMIT and isinstance(value, list | tuple | set | frozenset):
        items = [plain(item, depth + 1) for item, _ in zip(value, range(ITEMS_LIMIT), strict=False)]
        return [*items, _CUT] if len(value) > ITEMS_LIMIT else items
    return clean(text_of(value))


def fields(values: Mapping[Any, Any], depth: int = 0) -> dict[str, Any]:
    """Named values made plain; a value whose name is a secret's is masked whole."""
    out: dict[str, Any] = {}
    harmless = redactor.harmless
    for name, value in islice(values.items(), ITEMS_LIMIT):
        key, secret, several = _key(name if type(name) is str else text_of(name))
        if secret or (several and type(value) not in NUMBERS):
            out[key] = MASK
        elif type(value) in NUMBERS or (type(value) is str and value in harmless):
            out[key] = value
        elif type(value) is str and len(value) <= LONGEST_HARMLESS and value.isprintable():
            out[key] = redactor.redact(value)
        else:
            out[key] = plain(value, depth)
    if len(values) > ITEMS_LIMIT:
        out["cut"] = len(values) - ITEMS_LIMIT
    return out


@lru_cache(maxsize=1024)
def _key(name: str) -> tuple[str, bool, bool]:
    """A name made clean, and whether it names a secret, or several: names come again and again."""
    return clean(name, NAME_LIMIT), is_secret_name(name), are_secrets(name)


def text_of(value: object) -> str:
    """`str(value)`, or its type's name when the value fails at that."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a record is written whatever its values do
        return f"<{type(value).__name__} that cannot be shown>"
