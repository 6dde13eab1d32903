"""Strict JSON: accepts only what every strict parser accepts, with the same meaning.

Also equality that keeps JSON's types apart: `1`, `1.0`, `true` and `"1"` are four values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.amount import LONG, is_too_much


def same(a: Any, b: Any) -> bool:
    """Whether two decoded JSON values are the same value of the same type, at every depth."""
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return len(a) == len(b) and all(name in b and same(a[name], b[name]) for name in a)
    if type(a) is list:
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


class Limits(msgspec.Struct, frozen=True, gc=False):
    """How much one message may ask of its reader."""

    message_bytes: int = 1024 * 1024
    nesting: int = 64
    values: int = 0
    """Objects, lists, texts and so on, however short, and then no overlong numbers either; 0 for
    as many as the bytes hold.
    """
    settings: tuple[str, str, str] = ("", "", "")
    """The settings that the three come from, for the data of errors; empty if from none."""


DEFAULT_LIMITS: Final = Limits()

T = TypeVar("T")

SHALLOW: Final = 8
"""How deep most messages are at most, the message itself and an object in it included."""


def _nested(scalar: Any, levels: int) -> Any:
    """The type of a value that is nested no deeper than so many levels."""
    value = scalar
    for _ in range(levels):
        value = scalar | list[value] | dict[str, value]  # type: ignore[valid-type]
    return value


if TYPE_CHECKING:
    ShallowObject: TypeAlias = dict[str, Any]
else:
    ShallowObject = dict[str, _nested(None | bool | int | str, SHALLOW - 2)]
    """An object inside a message that reading proves to be shallow and to hold no fractions."""

_decode = msgspec.json.Decoder().decode
_decode_shallow = msgspec.json.Decoder(_nested(None | bool | int | float | str, SHALLOW - 2)).decode
encode = msgspec.json.Encoder().encode
"""Encodes a value compactly, members in their order."""


def learnt(shape: type[T]) -> type[T]:
    """Have msgspec learn a type that `convert` makes, as a decorator.

    It would else do so at the first use, and two threads that use a type first at the same moment
    crash the process.
    """
    msgspec.json.Decoder(shape)
    return shape


def check_amount(raw: bytes, limits: Limits) -> None:
    """Refuse a message with too many values, or with overlong numbers, before it is decoded."""
    # A shorter message can have neither.
    looked_at = limits.values and (len(raw) >= LONG or len(raw) > 2 * limits.values)
    if looked_at and is_too_much(raw, limits.values):
        raise e.MessageTooLarge(
            f"The message has more than {limits.values:,} values, or a number with hundreds "
            "of digits.",
            **_setting(limits.settings[2]),
        )


def decode_whole(
    raw: bytes, limits: Limits, read: Callable[[bytes], T], *, counted: bool = False
) -> T | None:
    """Decode one strict JSON object into a struct if that proves to leave nothing out.

    None is no refusal: the message must be read in another way. Its values may have been `counted`
    before. `read` is the decoder of a struct
    that omits its defaults and whose members are strings, lists of them and `ShallowObject`s.
    Encoding makes no string and no whole number longer, so where the length is the same nothing
    was dropped: no duplicate, and no member that the struct does not know.
    """
    if len(raw) > limits.message_bytes or limits.nesting < SHALLOW:
        return None
    # A value has one byte at least, so most messages need not be looked at.
    if not counted and 0 < limits.values < len(raw) and is_too_much(raw, limits.values):
        return None
    try:
        value = read(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    encoded = encode(value)
    whole = len(encoded) == len(raw) or _kept_every_string(raw, encoded)
    return value if whole else None


def decode(raw: bytes, limits: Limits = DEFAULT_LIMITS, *, counted: bool = False) -> Any:
    """Decode one strict JSON value: valid UTF-8, no duplicate names, within the limits."""
    if len(raw) > limits.message_bytes:
        raise e.MessageTooLarge(
            f"The message has {len(raw):,} bytes; at most {limits.message_bytes:,} are accepted.",
            **_setting(limits.settings[0]),
        )
    if not counted:
        check_amount(raw, limits)
    try:
        value = _decode_shallow(raw) if limits.nesting >= SHALLOW else _decode_deep(raw, limits)
    except msgspec.ValidationError:
        value = _decode_deep(raw, limits)
    except (msgspec.DecodeError, UnicodeDecodeError) as refusal:
        _explain(raw, limits, refusal)
    encoded = encode(value)
    if encoded != raw and not _kept_every_string(raw, encoded):
        _read_slowly(raw, limits)
    return value


def decode_object(
    raw: bytes, limits: Limits = DEFAULT_LIMITS, *, counted: bool = False
) -> dict[str, Any]:
    """Decode one strict JSON object; an array, which would be a JSON-RPC batch, is refused."""
    value = decode(raw if raw[:1] == b"{" else check_single(raw), limits, counted=counted)
    if type(value) is dict:
        return value
    raise e.NotAnObject("The message must be one JSON object.")


def check_single(raw: bytes) -> bytes:
    """Refuse what begins an array, which would be a JSON-RPC batch, without decoding it."""
    if raw[:1] != b"{" and raw.lstrip(b" \t\r\n")[:1] == b"[":
        raise e.BatchRefused("JSON-RPC batches are not accepted; send one message at a time.")
    return raw


def _decode_deep(raw: bytes, limits: Limits) -> Any:
    try:
        value = _decode(raw)
    except RecursionError:
        raise _too_deep(limits) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as refusal:
        _explain(raw, limits, refusal)
    if raw.count(b"{") + raw.count(b"[") > limits.nesting and _depth(value) > limits.nesting:
        raise _too_deep(limits)
    return value


def _kept_every_string(raw: bytes, encoded: bytes) -> bool:
    """Whether the quotes prove that decoding dropped no member.

    A dropped duplicate takes at least the two quotes of its name with it, and no string has more
    quotes when it is encoded again, unless one of its quotes was written as an escape.
    """
    escaped = b"\\" in raw and b"\\u0022" in raw
    return not escaped and raw.count(b'"') == encoded.count(b'"')


def _depth(value: Any) -> int:
    depth = 0
    level = [value]
    while level:
        deeper: list[Any] = []
        containers = 0
        for item in level:
            if type(item) is dict:
                containers += 1
                deeper.extend(item.values())
            elif type(item) is list:
                containers += 1
                deeper.extend(item)
        if not containers:
            break
        depth += 1
        level = deeper
    return depth


def _too_deep(limits: Limits) -> e.NestingTooDeep:
    return e.NestingTooDeep(
        f"Objects and arrays are nested more than {limits.nesting} levels deep.",
        nesting=limits.nesting,
        **_setting(limits.settings[1]),
    )


def _setting(name: str) -> dict[str, str]:
    return {"setting": name} if name else {}


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            cut = name if len(name) <= 64 else name[:64] + "…"
            shown = cut.encode("utf-8", "backslashreplace").decode()
            raise e.DuplicateKey(
                f"The member {json.dumps(shown)} occurs twice in one object.", member=shown
            )
        members[name] = value
    return members


def _constant(name: str) -> NoReturn:
    raise e.NumberOutOfRange(f"{name} is not a JSON number.")


_SLOW = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _read_slowly(raw: bytes, limits: Limits) -> None:
    """Read with the standard library, which can be asked to notice duplicates."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise e.InvalidUtf8(
            f"The message is not valid UTF-8 (byte {error.start}).", position=error.start
        ) from None
    try:
        value = _SLOW.decode(text)
    except json.JSONDecodeError as error:
        raise e.InvalidJson(
            f"The message is not valid JSON: {error.msg} (character {error.pos}).",
            position=error.pos,
        ) from None
    except RecursionError:
        raise _too_deep(limits) from None
    except ValueError:
        raise e.NumberOutOfRange("A number is too large to be kept exactly.") from None
    if _depth(value) > limits.nesting:
        raise _too_deep(limits)
    if "\\ud" in text.lower() and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise e.LoneSurrogate("A string holds half of a surrogate pair.")


def _explain(raw: bytes, limits: Limits, refusal: Exception) -> NoReturn:
    """Say why msgspec refused the message, as exactly as a second, slower reading can tell."""
    _read_slowly(raw, limits)
    fault = e.NumberOutOfRange if isinstance(refusal, msgspec.ValidationError) else e.InvalidJson
    raise fault(f"The message cannot be read: {refusal}.") from None
