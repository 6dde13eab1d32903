"""How a rule says what it found; which severity that has is the table's business."""

from __future__ import annotations

from typing import NamedTuple

from folkmoot.names.lint.model import Declared, Edit, Place


class Told(NamedTuple):
    """One thing that a rule found."""

    rule: str
    message: str
    place: Place | None
    name: str = ""
    lines: tuple[int, int] | None = None
    fix: Edit | None = None


def told(each: Declared, rule: str, message: str, *, fix: Edit | None = None) -> Told:
    """Something about a declared name."""
    return Told(rule, message, each.place, each.name, each.lines, fix)
