"""How many values some JSON has, counted without decoding it.

To read a value costs the same however short it is: `{},{},{},` takes a hundred times as long as a
text of the same length, and a number of thousands of digits takes longer still. All that time
nobody else is served.
"""

from __future__ import annotations

from typing import Final

DIGITS: Final = b"0123456789"
STARTS: Final = b",{["
"""Before a value stands one of these, but for those of members, which have a name before them."""
BEGINNING: Final = 8
LONG: Final = 400
FEW: Final = 8
"""Digits of a number that is overlong, and that are worth a closer look."""


def is_too_much(raw: bytes | bytearray, most: int) -> bool:
    """Whether there are more than so many values in what may be JSON, or overlong numbers."""
    many = len(raw) > 2 * most and count_starts(raw) > most
    if not many and not has_long_number(raw):
        return False
    # A beginning that is too much tells of the whole, and sooner.
    size = BEGINNING * most
    while size < len(raw):
        if _is_too_much_outside_texts(raw[:size], most):
            return True
        size *= BEGINNING
    return _is_too_much_outside_texts(raw, most)


def _is_too_much_outside_texts(raw: bytes | bytearray, most: int) -> bool:
    # A value has one name at most, so it has four quotes at most.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in raw else raw
    if plain.count(b'"') > 4 * most:
        return True
    outside = b"".join(plain.split(b'"')[::2])
    return count_starts(outside) > most or has_long_number(outside)


def count_starts(raw: bytes | bytearray) -> int:
    """How many values there may be, those that texts seem to hold included."""
    # One pass for all of them: `bytes.count` would take one for each.
    return len(raw) - len(raw.translate(None, STARTS))


def has_long_number(raw: bytes | bytearray) -> bool:
    """Whether a run of digits is too long; sampling every n-th byte finds any such run."""
    for place in range(LONG - 1, len(raw), LONG):
        if raw[place : place + FEW].isdigit() or raw[place - FEW + 1 : place + 1].isdigit():
            before, after = raw[place - LONG + 1 : place], raw[place : place + LONG]
            left = len(before) - len(before.rstrip(DIGITS))
            right = len(after) - len(after.lstrip(DIGITS))
            if left + right >= LONG:
                return True
    return False
