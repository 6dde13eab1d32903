"""Capabilities as an operator types them: where a mistake is, and what covers nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from folkmoot.core.capability import Capability, capability
from folkmoot.core.errors import PatternSyntax
from folkmoot.gateway.settled import DEFAULTS
from folkmoot.names.wire import OF_A_BACKEND, full_pattern

PARTS: Final = 3
"""Protocol, operation and method; only a pattern that has all of them can have a context."""

_NAMESPACE = re.compile(r"([a-z][a-z0-9]{2,19}):")
_NOT_IN_NAME = re.compile(r"[^a-z0-9*-]")
_NOT_IN_METHOD = re.compile(r"[^!-9;-~]")
_NOT_IN_CONTEXT = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def compiled(text: str) -> Capability:
    """The capability an operator means; a `PatternSyntax` tells at which character it is wrong."""
    full = full_pattern(text)
    try:
        return capability(full)
    except PatternSyntax as error:
        position = fault_at(full)
        raise PatternSyntax(
            f"{error.message} The error is at character {position}.",
            **{**error.data, "position": position},
        ) from None


def fault_at(text: str) -> int:
    """The character at which a text stops being a pattern, counted from 1."""
    place = 1 + text.startswith("!")
    base, colon, context = text[place - 1 :].partition(":")
    parts = base.split(".", PARTS - 1)
    for number, part in enumerate(parts, 1):
        wrong = (_NOT_IN_METHOD if number == PARTS else _NOT_IN_NAME).search(part)
        if wrong is not None or not part:
            return place + (wrong.start() if wrong is not None else 0)
        place += len(part) + 1
    if not colon or len(parts) < PARTS:
        return place - 1  # the colon that may not be there, or the end of something too long
    wrong = _NOT_IN_CONTEXT.search(context)
    return place + (wrong.start() if wrong is not None else 0)


def covers_nothing(asked: Capability, namespaces: Iterable[str]) -> str | None:
    """Why a capability speaks of nothing that can be asked of this hub, if it does not."""
    here = sorted(namespaces)
    named = _NAMESPACE.match(asked.context.pattern)
    if asked.denies and (named is None or named[1] in here):
        # Inside rooms a deny of the hub's holds for any kind of message.
        return None
    there_is = [
        *DEFAULTS,
        *(pattern.format(namespace) for namespace in here for pattern in OF_A_BACKEND),
    ]
    if any(asked.intersects(capability(each)) for each in there_is):
        return None
    if named is None or named[1] in here:
        return f"{asked.source} matches nothing that this hub offers."
    near = difflib.get_close_matches(named[1], here, 1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"{asked.source} covers nothing yet: no backend is called {named[1]}{hint}"
