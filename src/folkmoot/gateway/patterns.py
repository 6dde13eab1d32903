"""Capabilities as an operator types them: short forms, where a mistake is, what covers nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from folkmoot.core.capability import Capability, capability
from folkmoot.core.errors import PatternSyntax
from folkmoot.gateway.mapping import canonical_pattern
from folkmoot.gateway.settled import DEFAULTS, OF_A_BACKEND
from folkmoot.names.wire import RESERVED_NAMESPACES

SHORT: Final = {
    "://": "mcp.request.resources/*:",
    ":": "mcp.request.tools/call:",
    "/": "mcp.request.tools/call:",
}
"""What stands before the name of a resource, of a backend's tool, and of a tool of the hub's."""

PARTS: Final = 3
"""Protocol, operation and method; only a pattern that has all of them can have a context."""

_SHORT = re.compile(r"(!?)((?:[a-z][a-z0-9]{2,19}(://|:)|(?:msg|room|folkmoot)(/)).*)", re.DOTALL)
_APP = re.compile(r"(!?)(ui://.*)", re.DOTALL)
_SAFE = re.compile(r"([a-z][a-z0-9]{2,19})_(.+)", re.DOTALL)
_NAMESPACE = re.compile(r"([a-z][a-z0-9]{2,19}):")
_NOT_IN_NAME = re.compile(r"[^a-z0-9*-]")
_NOT_IN_METHOD = re.compile(r"[^!-9;-~]")
_NOT_IN_CONTEXT = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def full_pattern(text: str) -> str:
    """The pattern that a short form stands for: `files:read_*`, `files://*`, `!msg/send`.

    No pattern looks like one of these, so nothing else is meant by them.
    """
    app = _APP.fullmatch(text)
    if app is not None:
        return f"{app[1]}{SHORT['://']}{app[2]}"
    found = _SHORT.fullmatch(text)
    if found is None:
        return text
    denies, name, separator, own = found.groups()
    return f"{denies}{SHORT[separator or own]}{name}"


def spelled_out(
    texts: Iterable[str],
    namespaces: Collection[str],
    canonical: Callable[[str], str | None] = lambda _: None,
) -> Iterator[str]:
    """Texts of an operator's, in canonical names; a backend's alone stands for all it offers.

    A tool may be written as clients list it, `files_read_file`; `canonical` knows those whose names
    were cut.
    """
    for text in texts:
        denies, name = ("!", text[1:]) if text.startswith("!") else ("", text)
        safe = _SAFE.fullmatch(name)
        if name in namespaces:
            yield from (f"{denies}{pattern.format(name)}" for pattern in OF_A_BACKEND)
        elif safe is not None and safe[1] in RESERVED_NAMESPACES:
            yield f"{denies}{canonical(name) or f'{safe[1]}/{safe[2]}'}"
        elif safe is not None and safe[1] in namespaces:
            yield f"{denies}{canonical(name) or f'{safe[1]}:{safe[2]}'}"
        else:
            yield canonical_pattern(full_pattern(text), namespaces)


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
