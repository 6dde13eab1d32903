"""How much there is to read in some JSON, told without reading it.

To read a value costs the same however short it is: `{},{},{},` takes a hundred times as long as a
text of the same length, and a number of thousands of digits takes longer still. All that time
nobody else is served.
"""

from __future__ import annotations

from typing import Final

DIGITS: Final = b"0123456789"
STARTS: Final = (b",", b"{", b"[")
"""Before a value stands one of these, but for those of members, which have a name before them."""
LONG: Final = 400
FEW: Final = 8
"""Digits of a number that is overlong, and that are worth a closer look."""


def is_too_much(raw: bytes, most: int) -> bool:
    """Whether there are more than so many values in what may be JSON, or overlong numbers."""
    many = len(raw) > 2 * most and _count(raw) > most
    if not many and not _has_long_number(raw):
        return False
    # They may stand in texts. A value has one name at most, so it has four quotes at most.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * most:
        return True
    outside = b"".join(plain.split(b'"')[::2])
    return _count(outside) > most or _has_long_number(outside)


def _count(raw: bytes) -> int:
    return sum(map(raw.count, STARTS))


def _has_long_number(raw: bytes) -> bool:
    """Whether there are so many digits in a row: then one of every so many bytes is one of them."""
    for place in range(LONG - 1, len(raw), LONG):
        if raw[place : place + FEW].isdigit() or raw[place - FEW + 1 : place + 1].isdigit():
            before, after = raw[place - LONG + 1 : place], raw[place : place + LONG]
            left = len(before) - len(before.rstrip(DIGITS))
            right = len(after) - len(after.lstrip(DIGITS))
            if left + right >= LONG:
                return True
    return False
