"""Makes whatever a caller logs fit to be written: no secret, one line, of bounded size."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from folkmoot.telemetry.redaction import MASK, Redactor, is_secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        key, secret = _key(name if type(name) is str else text_of(name))
        if secret:
            out[key] = MASK
        elif type(value) in NUMBERS or (type(value) is str and value in harmless):
            out[key] = value
        else:
            out[key] = plain(value, depth)
    if len(values) > ITEMS_LIMIT:
        out["cut"] = len(values) - ITEMS_LIMIT
    return out


@lru_cache(maxsize=1024)
def _key(name: str) -> tuple[str, bool]:
    """A name made clean, and whether its value is a secret: names come again and again."""
    return clean(name, NAME_LIMIT), is_secret_name(name)


def text_of(value: object) -> str:
    """`str(value)`, or its type's name when the value fails at that."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a record is written whatever its values do
        return f"<{type(value).__name__} that cannot be shown>"
