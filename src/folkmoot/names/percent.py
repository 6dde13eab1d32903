"""Percent-encoding of the values in a query."""

from __future__ import annotations

import re

PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def encoded(value: str) -> str | None:
    """The value as it stands in a query; None for text that UTF-8 cannot write."""
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return None
    return "".join(chr(byte) if byte in PLAIN else f"%{byte:02X}" for byte in raw)


def decoded(text: str) -> str | None:
    """The value behind an ASCII text of a query; None where its bytes are not UTF-8."""
    try:
        raw = ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode("ascii"))
        return raw.decode()
    except UnicodeError:
        return None
