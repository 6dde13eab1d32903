"""Canonical names in spellings that are safe for model APIs, and short forms in settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable


NameStyle: TypeAlias = Literal["safe", "canonical"]
STYLES: tuple[NameStyle, ...] = ("safe", "canonical")

RESERVED_NAMESPACES = frozenset({"ask", "msg", "room", "chat", "mmp", "folkmoot"})
"""The hub's own, joined to a tool by `/`; every other namespace is joined by `:`."""

NAME_KEY = "folkmoot/name"
"""The member of `_meta` in which a hub says what the canonical name is."""

MOST_CHARACTERS = 64
DIGITS = 8

OURS = re.compile(rf"({'|'.join(sorted(RESERVED_NAMESPACES))})/([A-Za-z0-9_-]+)")
THEIRS = re.compile(r"([a-z][a-z0-9]*):([A-Za-z0-9_-]+)")
UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def safe_name(canonical: str) -> str:
    """The safe spelling of a name.

    A name that is too long, or that would not split back into itself, ends in digits of its own
    hash instead, which stay the same for as long as the name does.
    """
    return _plain(canonical) or _marked(canonical)


def _marked(canonical: str, attempt: int = 0) -> str:
    import hashlib  # costs more than everything else here

    # A name made to look like another's marked spelling cannot foresee all the attempts.
    salted = f"{attempt}:{canonical}" if attempt else canonical
    mark = hashlib.sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
    return f"{UNSAFE.sub('_', canonical)[: MOST_CHARACTERS - DIGITS - 1]}_{mark}"


def _plain(canonical: str) -> str | None:
    """The name with its separator written as an underscore, where that can be read back."""
    parts = OURS.fullmatch(canonical) or THEIRS.fullmatch(canonical)
    if parts is None or len(canonical) > MOST_CHARACTERS:
        return None
    if parts.re is THEIRS and parts[1] in RESERVED_NAMESPACES:
        return None
    return f"{parts[1]}_{parts[2]}"


class WireNames:
    """The table of one catalogue: each name has exactly one spelling in each style."""

    def __init__(self, names: Iterable[str]) -> None:
        # Those that need no hash come first, so nothing takes a plain spelling from its owner.
        wanted = sorted(set(names), key=lambda name: (_plain(name) is None, name))
        self._safe = dict.fromkeys(wanted, "")
        self._canonical: dict[str, str] = {}
        for name in wanted:
            spelled, attempt = safe_name(name), 0
            while spelled in self._canonical or spelled in self._safe:
                attempt += 1
                spelled = _marked(name, attempt)
            self._safe[name] = spelled
            self._canonical[spelled] = name

    def spell(self, canonical: str, style: NameStyle) -> str:
        """A name of the catalogue as the style writes it."""
        return self._safe[canonical] if style == "safe" else canonical

    def canonical(self, wire: str) -> str | None:
        """The name a spelling stands for, in either style; None when it is nobody's."""
        return wire if wire in self._safe else self._canonical.get(wire)


COMBINATORS = ("oneOf", "anyOf", "allOf")


def without_combinators(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without combinators, which model APIs refuse."""
    return {key: value for key, value in schema.items() if key not in COMBINATORS}


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

_SHORT = re.compile(
    r"(!?)((?:[a-z][a-z0-9]{2,19}(://|:)|(?:ask|msg|room|folkmoot)(/)).*)", re.DOTALL
)
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
