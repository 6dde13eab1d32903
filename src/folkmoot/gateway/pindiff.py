"""How a tool differs from what it was, for whoever is to accept it."""

from __future__ import annotations

import difflib
import json
from typing import Any, Final

from msgspec import Struct

from folkmoot.gateway.judging import NEVER, pinned_name
from folkmoot.gateway.model import Definition
from folkmoot.gateway.queries_pins import Changed

MOST_COMPARED: Final = 2_000
MOST_LINES: Final = 500
"""Lines of a definition that are compared, and of a difference that are told."""


class PinDiff(Struct, frozen=True, kw_only=True):
    """A tool that has changed, or is new."""

    namespace: str
    name: str
    """The backend's own."""
    canonical: str
    new: bool
    """Whether it came after the first inventory of its backend; `pinned` is empty then."""
    pinned: Definition
    changed: Definition
    changed_hash: str
    since: int
    """When the change was first seen, in seconds of the epoch."""
    lines: list[str]
    """The difference as a person reads it."""


def difference(each: Changed) -> PinDiff:
    """What there is to be accepted of one tool."""
    pinned, changed = json.loads(each.definition), json.loads(each.changed_definition)
    lines = difflib.unified_diff(
        _readable(pinned) if pinned else [],
        _readable(changed),
        "pinned",
        "changed" if pinned else "new",
        lineterm="",
    )
    return PinDiff(
        namespace=each.namespace,
        name=each.name,
        canonical=pinned_name(each.namespace, each.name),
        new=each.hash == NEVER,
        pinned=pinned,
        changed=changed,
        changed_hash=each.changed_hash,
        since=each.changed_at,
        lines=list(lines)[:MOST_LINES],
    )


def _readable(definition: dict[str, Any]) -> list[str]:
    """Lines of JSON; what a terminal would not show as it is, is written out."""
    text = json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False)
    return [
        "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
        for line in text.split("\n")[:MOST_COMPARED]
    ]
