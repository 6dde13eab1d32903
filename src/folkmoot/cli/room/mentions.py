"""Whom a text speaks to: the names behind an `@` of those who are in the room."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

NAMED: Final = re.compile(r"(?<![\w@])@([\w-]+)")


def mentioned(text: str, present: Container[str]) -> list[str] | None:
    """Those of the room whom a text names, each once; None where it names nobody."""
    names = (name.lower() for name in NAMED.findall(text))
    return [name for name in dict.fromkeys(names) if name in present] or None
