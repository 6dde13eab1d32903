"""Short forms of capabilities: `files`, `files:read_*`, `files_read_file`, `msg/send`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from folkmoot.names.wire import DIGITS, RESERVED_NAMESPACES

SHORT: Final = {
    "://": "mcp.request.resources/*:",
    ":": "mcp.request.tools/call:",
    "/": "mcp.request.tools/call:",
}
"""What stands before the name of a resource, of a backend's tool, and of a tool of the hub's."""

OF_A_BACKEND: Final = (
    "mcp.request.tools/call:{}:*",
    "mcp.request.prompts/get:{}:*",
    "mcp.request.resources/*:{}://*",
    "mcp.request.completion/complete:{}:*",
    "mcp.request.completion/complete:{}://*",
)
"""All that can be asked of a backend, by its namespace."""

_SHORT = re.compile(r"(!?)((?:[a-z][a-z0-9]{2,19}(://|:)|(?:msg|room|folkmoot)(/)).*)", re.DOTALL)
_APP = re.compile(r"(!?)(ui://.*)", re.DOTALL)
_SAFE = re.compile(r"([a-z][a-z0-9]{2,19})_(.+)", re.DOTALL)
_HASHED = re.compile(rf"!?([a-z][a-z0-9]{{2,19}})_(?:.+_)?[0-9a-f]{{{DIGITS}}}", re.DOTALL)


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
    """The patterns that texts of an operator's stand for; a backend's name is all that it offers.

    A tool may be written as clients list it, `files_read_file`; `canonical` knows those whose names
    were cut.
    """
    for text in texts:
        denies, name = ("!", text[1:]) if text.startswith("!") else ("", text)
        safe = _SAFE.fullmatch(name)
        if name in namespaces:
            yield from (f"{denies}{pattern.format(name)}" for pattern in OF_A_BACKEND)
        elif safe is not None and safe[1] in RESERVED_NAMESPACES:
            yield full_pattern(f"{denies}{canonical(name) or f'{safe[1]}/{safe[2]}'}")
        elif safe is not None and safe[1] in namespaces:
            yield full_pattern(f"{denies}{canonical(name) or f'{safe[1]}:{safe[2]}'}")
        else:
            yield full_pattern(text)


def is_hashed(text: str, namespaces: Collection[str]) -> bool:
    """Whether a tool is written as clients list it, and may end in digits of a hash."""
    found = _HASHED.fullmatch(text)
    return found is not None and found[1] in {*namespaces, *RESERVED_NAMESPACES}
