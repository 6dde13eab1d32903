"""URIs of other schemes as clients are shown them: `type/id` of the grammar of names, and back.

    file:///a/README.md  →  file/-/-/a/--r--e--a--d--m--e.md
    demo://x/1?raw=true  →  demo/-/x/1?raw=true
    urn:isbn:1           →  uri/-/urn--03aisbn--03a1

The segment `-` after the type says that this is such a URI. An empty segment is written `-` too,
an upper-case letter as `--` and the lower-case one, and any other character that the grammar does
not have as `--0` and two hexadecimal digits for each of its bytes.
"""

from __future__ import annotations

import re
from typing import Final

from folkmoot.names.grammar import EXPRESSION, QUERY_EXPRESSION, query_fault

WHOLE: Final = "uri"
"""The type of a URI that stands there whole, since its scheme is no type or nothing follows it."""

_WIRE: Final = re.compile(r"([a-z][a-z0-9_]+)/-/(.+)", re.DOTALL)
_SCHEME: Final = re.compile(r"([a-z][a-z0-9]+)://(.*)", re.DOTALL)
_SLASH: Final = re.compile(r"/(?![^{}]*\})")
_HYPHEN: Final = r"-(?=[^a-z0-9_.])"
"""A hyphen before something that is written with hyphens, or before another one."""
_WRITTEN: Final = re.compile(rf"{_HYPHEN}|[^a-z0-9_.-]")
_WRITTEN_IN_TEMPLATE: Final = re.compile(
    rf"({EXPRESSION.pattern}|{QUERY_EXPRESSION.pattern})|{_HYPHEN}|[^a-z0-9_.-]"
)
_READ: Final = re.compile(r"((?:--0[0-9a-f]{2})+)|--([a-z])")
_EMPTY: Final = "-"
_NO_SEGMENT: Final = frozenset({"-", ".", ".."})
"""Segments that the grammar does not have, or that stand for something else."""


def is_wire(uri: str, start: int = 0) -> bool:
    """Whether what follows `ns://`, at `start`, looks as if it was written by `write_wire`."""
    return _WIRE.fullmatch(uri, start) is not None


def write_wire(own: str, *, template: bool = False) -> str:
    """What follows `ns://` for a URI or a template of another scheme."""
    found = _SCHEME.fullmatch(own)
    kind, rest = (WHOLE, own) if found is None or found[1] == WHOLE else found.groups()
    path, query = _without_query(rest, template=template)
    segments = [_segment(each, template=template) for each in _segments(path, template=template)]
    return f"{kind}/-/{'/'.join(segments)}{query}"


def read_wire(text: str) -> str | None:
    """The server's own URI of what follows `ns://`; None if it was not written by `write_wire`.

    Characters that are not escaped stand for themselves: clients fill in templates as they like.
    """
    found = _WIRE.fullmatch(text)
    if found is None:
        return None
    path, mark, query = found[2].partition("?")
    segments = ("" if each == _EMPTY else _READ.sub(_plain, each) for each in path.split("/"))
    rest = f"{'/'.join(segments)}{mark}{query}"
    return rest if found[1] == WHOLE else f"{found[1]}://{rest}"


def _without_query(rest: str, *, template: bool) -> tuple[str, str]:
    """The path, and the query with its `?` where it obeys the grammar."""
    path, mark, query = rest.partition("?")
    filled = EXPRESSION.sub("x", query) if template else query
    inside = template and path.rfind("{") > path.rfind("}")
    if not mark or inside or query_fault(filled) is not None:
        return rest, ""
    return path, f"?{query}"


def _segments(path: str, *, template: bool) -> list[str]:
    return _SLASH.split(path) if template else path.split("/")


def _segment(text: str, *, template: bool) -> str:
    if not text:
        return _EMPTY
    if text in _NO_SEGMENT:
        return "".join(map(_escaped, text))
    if template:
        return _WRITTEN_IN_TEMPLATE.sub(lambda found: found[1] or _escaped(found[0]), text)
    return _WRITTEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    if "A" <= character <= "Z":
        return f"--{character.lower()}"
    return "".join(f"--0{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _plain(found: re.Match[str]) -> str:
    if found[2] is not None:
        return found[2].upper()
    try:
        return bytes.fromhex(found[1].replace("--0", "")).decode()
    except UnicodeDecodeError:
        return found[0]
